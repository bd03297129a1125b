"""Compiles every kernel that a client may need, before a run. Importing this imports numba."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from fism_client.compute import kernel_cache
from fism_client.compute.local_pass import LocalPass
from fism_client.data.readers.svmlight import read_svmlight
from fism_client.data.shard import Shard
from fism_common.data.source import Reading
from fism_common.problem.losses import Squared
from fism_common.problem.sets import Ball, Box, Simplex

_ENTRIES = (1.0, 0.5, 0.1)
"""One that fits uint8, one that fits float32, and one that needs float64."""


def warm() -> Path:
    """Compile the passes for all row types, dense and sparse, on all sets; return the folder with the kernels."""
    from scipy.sparse import csr_array

    loss = Squared()  # all built-in losses share one kernel
    for entry in _ENTRIES:
        for rows in (np.array([[entry]]), csr_array([[entry]])):
            for constraint in (Box(-1.0, 1.0), Ball(1.0), Simplex()):
                LocalPass(Shard.of(rows, [1.0]), loss, constraint).warm_points()
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "one.svm"
        file.write_text("1 1:1\n")
        read_svmlight(file, Reading())
    return kernel_cache.folder()
