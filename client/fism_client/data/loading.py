"""A client's data from any source: the only entry point to the file readers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeAlias, Union

import numpy as np

from fism_client.data.labels import positives
from fism_client.data.matrix import Matrix
from fism_client.data.readers.arrays import read_npy, read_npz
from fism_client.data.readers.idx import read_idx
from fism_client.data.readers.svmlight import read_svmlight
from fism_client.data.shard import Shard
from fism_common.data.source import Reading
from fism_common.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet
    from pathlib import Path

    from numpy.typing import NDArray

    from fism_client.data.table import Table
    from fism_common.data.source import Source

Data: TypeAlias = Union["Table", Matrix]

_SVMLIGHT = (".svm", ".svmlight", ".libsvm", ".t")
_KNOWN = (
    "tables (.csv, .tsv, .parquet, .json, .jsonl, .ndjson), arrays (.npz, .npy), svmlight (.svm, .svmlight, .libsvm, "
    ".t) and IDX (-ubyte, .idx); all but .npz, .npy and .parquet may be gzipped"
)

_FORMS = {
    "label": "tables",
    "features": "tables",
    "drop": "tables",
    "labels": ".npy and IDX files",
    "scale": "arrays",
    "columns": "svmlight",
    "zero_based": "svmlight",
}
"""Settings that only some formats use."""
_OF_TABLES = {"label", "features", "drop"}
_OF_SVMLIGHT = {"scale", "columns", "zero_based"}


def load(source: Source, reading: Reading, folder: Path, *, labelled: bool = True) -> Data:
    """Return a client's data; raise DataError that names the file, the row and the column, and what was expected.

    Paths are relative to ``folder``. Without ``labelled``, rows need no labels.
    """
    # Slow to load, and not always needed.
    from fism_client.data.readers.duck import Selection, select_all  # noqa: PLC0415
    from fism_client.data.readers.query import read_table  # noqa: PLC0415

    if source.data is None:
        assert source.query is not None  # noqa: S101  # the settings allow exactly one
        _refuse_unused(source, reading, "the query", _OF_TABLES)
        return read_table(Selection.by(source.query), reading, folder, "the query", labelled=labelled)
    path = folder / source.data
    if not path.is_file():
        raise DataError(f"there is no file {path}")
    selection = select_all(path)
    if selection is not None:
        _refuse_unused(source, reading, str(path), _OF_TABLES)
        return read_table(selection, reading, folder, str(path), labelled=labelled)
    shard = _array(path, source, reading, folder, labelled=labelled)
    if reading.positive is not None:
        shard = Shard(shard.rows, positives(shard.labels, reading.positive, f"{path}: the label"), shard.scale)
    return Matrix(str(path), shard)


def is_svmlight(path: Path) -> bool:
    """Whether a file is in the svmlight format, by its name."""
    return path.name.lower().removesuffix(".gz").endswith(_SVMLIGHT)


def brings_labels(path: Path) -> bool:
    """Whether a file contains the labels of its rows, so that they need not be named."""
    return is_svmlight(path) or path.name.lower().endswith(".npz")


def _refuse_unused(source: Source, reading: Reading, where: str, used: AbstractSet[str]) -> None:
    """Raise DataError for settings that the data's format does not use."""
    given = {name: getattr(reading, name) for name in Reading.model_fields} | {"labels": source.labels}
    unset = Reading()
    for name, form in _FORMS.items():
        if name not in used and given[name] != getattr(unset, name, None):
            raise DataError(f"{where}: {name} is for {form} only; remove it")


def _array(path: Path, source: Source, reading: Reading, folder: Path, *, labelled: bool) -> Shard:
    name, where = path.name.lower().removesuffix(".gz"), str(path)
    if is_svmlight(path):
        _refuse_unused(source, reading, where, _OF_SVMLIGHT)
        return read_svmlight(path, reading)
    if name.endswith(".npz"):
        _refuse_unused(source, reading, where, {"scale"})
        return read_npz(path, reading.scale, labelled=labelled)
    if not name.endswith((".npy", "-ubyte", ".idx")):
        raise DataError(f"{path}: unknown file extension; supported are {_KNOWN}")
    _refuse_unused(source, reading, where, {"scale", "labels"})
    rows = _read(path)
    if source.labels is not None:
        labels = _read(folder / source.labels)
    elif labelled:
        raise DataError(f"{path} has no labels in it; name the file that has them (labels)")
    else:
        labels = np.zeros(rows.shape[:1])
    if rows.ndim > 2:  # noqa: PLR2004  # images are rows of pixels
        rows = rows.reshape(rows.shape[0], math.prod(rows.shape[1:]))
    return Shard.of(rows, labels, scale=reading.scale, where=where, missing=True)


def _read(path: Path) -> NDArray[Any]:
    return read_npy(path) if path.name.lower().endswith(".npy") else read_idx(path)
