"""NumPy files: .npz with A and b, or with data, indices, indptr, shape and b for compressed sparse rows; .npy."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from fism_client.data.shard import Shard
from fism_common.errors import DataError
from fism_common.files import BROKEN_ARRAYS
from fism_common.vectors import real_numbers

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray
    from scipy.sparse import csr_array

_DENSE = {"A", "b"}
_SPARSE = {"data", "indices", "indptr", "shape", "b"}


def read_npz(path: Path, scale: float = 1.0, *, labelled: bool = True) -> Shard:
    """Return the shard in an .npz file; raise DataError that names the file.

    Without ``labelled``, the labels b are optional. Missing numbers are NaN.
    """
    try:
        with path.open("rb") as raw, _load(raw) as file:
            arrays: dict[str, NDArray[Any]] = {name: file[name] for name in file.files}
    except FileNotFoundError:
        raise DataError(f"there is no file {path}") from None
    except BROKEN_ARRAYS as error:
        raise DataError(f"{path} is not an .npz file of arrays: {error}") from error
    scale *= _number(arrays.pop("scale", np.array(1.0)), f"{path}: scale")
    has = set(arrays) | (set() if labelled else {"b"})
    if has == _DENSE:
        rows = arrays["A"]
        labels = arrays.get("b", np.zeros(rows.shape[:1]))
        return Shard.of(rows, labels, scale=scale, where=str(path), missing=True)
    if has != _SPARSE:
        raise DataError(
            f"{path} has the arrays {sorted(arrays)}; it must have A and b, or data, indices, indptr, shape and b"
        )
    sparse = _sparse(arrays, path)
    labels = arrays.get("b", np.zeros(sparse.shape[:1]))
    return Shard.of(sparse, labels, scale=scale, where=str(path))


def read_npy(path: Path) -> NDArray[Any]:
    """Return the array in an .npy file; raise DataError that names the file."""
    try:
        with path.open("rb") as raw:
            found = _load(raw)
            if not isinstance(found, np.ndarray):
                found.close()
    except FileNotFoundError:
        raise DataError(f"there is no file {path}") from None
    except BROKEN_ARRAYS as error:
        raise DataError(f"{path} is not an .npy file of numbers: {error}") from error
    if not isinstance(found, np.ndarray):
        raise DataError(f"{path} holds several arrays, like an .npz file; an .npy file holds one")
    return real_numbers(found, str(path), DataError)


def _load(file: BinaryIO) -> Any:  # noqa: ANN401  # an array, or a file of several
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about headers written by Python 2
        return np.load(file, allow_pickle=False)


def _sparse(arrays: dict[str, NDArray[Any]], path: Path) -> csr_array:
    from scipy.sparse import csr_array  # slow to load, and not always needed

    try:
        count, columns = (int(size) for size in arrays["shape"])
        return csr_array((arrays["data"], arrays["indices"], arrays["indptr"]), shape=(count, columns))
    except (TypeError, ValueError, IndexError, OverflowError) as error:
        raise DataError(f"{path} does not hold compressed sparse rows: {error}") from error


def _number(value: NDArray[Any], what: str) -> float:
    if value.size != 1:
        raise DataError(f"{what} must be a number, not an array of shape {value.shape}")
    return float(real_numbers(value.reshape(()), what, DataError))
