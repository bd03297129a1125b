"""A client's data from whatever it has: the one door to the readers of files."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeAlias, Union

import numpy as np

from fism_client.data.arrays import read_npy, read_npz
from fism_client.data.idx import read_idx
from fism_client.data.labels import positives
from fism_client.data.matrix import Matrix
from fism_client.data.svmlight import read_svmlight
from fism_client.shard import Shard
from fism_common.errors import DataError

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from fism_client.data.table import Table
    from fism_common.source import Reading, Source

Data: TypeAlias = Union["Table", Matrix]

_SVMLIGHT = (".svm", ".svmlight", ".libsvm", ".t")
_KNOWN = (
    "tables (.csv, .tsv, .parquet, .json, .jsonl, .ndjson), arrays (.npz, .npy), svmlight (.svm, .svmlight, .libsvm, "
    ".t) and IDX (-ubyte, .idx); all but .npz, .npy and .parquet may be gzipped"
)


def load(source: Source, reading: Reading, folder: Path, *, labelled: bool = True) -> Data:
    """Return a client's data; raise DataError that names the file, the row and the column, and what was expected.

    Paths are relative to ``folder``. Without ``labelled`` rows without labels are good enough.
    """
    from fism_client.data.duck import read_table, select_all  # noqa: PLC0415  # slow to load, and not always needed

    if source.data is None:
        assert source.query is not None  # noqa: S101  # the settings allow exactly one
        return read_table(source.query, reading, folder, "the query", labelled=labelled)
    path = folder / source.data
    if not path.is_file():
        raise DataError(f"there is no file {path}")
    query = select_all(path)
    if query is not None:
        return read_table(query, reading, folder, str(path), labelled=labelled)
    for name in ("label", "features", "drop"):
        if getattr(reading, name):
            raise DataError(f"{path} has columns without names: {name} is for tables")
    shard = _array(path, source, reading, folder, labelled=labelled)
    if reading.positive is not None:
        shard = Shard(shard.rows, positives(shard.labels, reading.positive, f"{path}: the label"), shard.scale)
    return Matrix(str(path), shard)


def _array(path: Path, source: Source, reading: Reading, folder: Path, *, labelled: bool) -> Shard:
    name = path.name.lower().removesuffix(".gz")
    if name.endswith(_SVMLIGHT):
        return read_svmlight(path, reading)
    if name.endswith(".npz"):
        return read_npz(path, reading.scale, labelled=labelled)
    if not name.endswith((".npy", "-ubyte", ".idx")):
        raise DataError(f"{path}: the end of its name says nothing of its form; there are {_KNOWN}")
    rows = _read(path)
    if source.labels is not None:
        labels = _read(folder / source.labels)
    elif labelled:
        raise DataError(f"{path} has no labels in it; name the file that has them (labels)")
    else:
        labels = np.zeros(rows.shape[:1])
    if rows.ndim > 2:  # noqa: PLR2004  # images are rows of pixels
        rows = rows.reshape(rows.shape[0], math.prod(rows.shape[1:]))
    return Shard.of(rows, labels, scale=reading.scale, where=str(path), missing=True)


def _read(path: Path) -> NDArray[Any]:
    return read_npy(path) if path.name.lower().endswith(".npy") else read_idx(path)
