"""A shard from a file: .npz with A and b, or with data, indices, indptr, shape and b for compressed sparse rows."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING

import numpy as np

from fism_client.shard import Shard
from fism_common.errors import DataError

if TYPE_CHECKING:
    from pathlib import Path

_DENSE = ("A", "b")
_SPARSE = ("data", "indices", "indptr", "shape", "b")


def read_shard(path: Path) -> Shard:
    """Return the shard in an .npz file, checked; raise DataError that names the file."""
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except FileNotFoundError:
        raise DataError(f"there is no file {path}") from None
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise DataError(f"{path} is not an .npz file of arrays: {error}") from error
    scale = float(arrays.pop("scale", np.array(1.0)))
    if set(arrays) == set(_DENSE):
        return Shard.of(arrays["A"], arrays["b"], scale=scale, where=str(path))
    if set(arrays) != set(_SPARSE):
        raise DataError(
            f"{path} has the arrays {sorted(arrays)}; it must have A and b, or data, indices, indptr, shape and b"
        )
    from scipy.sparse import csr_array

    try:
        rows = csr_array((arrays["data"], arrays["indices"], arrays["indptr"]), shape=tuple(arrays["shape"]))
    except (TypeError, ValueError) as error:
        raise DataError(f"{path} does not hold compressed sparse rows: {error}") from error
    return Shard.of(rows, arrays["b"], scale=scale, where=str(path))
