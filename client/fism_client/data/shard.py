"""A site's rows and labels: checked once, stored in the narrowest type that holds them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fism_common.errors import DataError
from fism_common.vectors import Vector, positive, real_numbers

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["Shard"]

_WIDEST = 8
_EXACT_IN_FLOAT32 = 2**24

Entries: TypeAlias = NDArray[np.uint8] | NDArray[np.float32] | NDArray[np.float64]


@runtime_checkable
class SparseMatrix(Protocol):
    """Any scipy sparse matrix."""

    def tocsr(self) -> csr_array:
        """Return the matrix in compressed sparse rows."""


class SparseRows(NamedTuple):
    """Compressed sparse rows as an argument of kernels: columns sorted, none twice in a row."""

    data: Entries
    indices: NDArray[np.int32]
    indptr: NDArray[np.int64]
    columns: int

    def part(self, begin: int, end: int) -> SparseRows:
        """Return the rows from ``begin`` to ``end``, without copying entries."""
        return self._replace(indptr=self.indptr[begin : end + 1])

    def take(self, which: slice | NDArray[np.bool_]) -> SparseRows:
        """Return a copy of some of the rows, in their order."""
        lengths = np.diff(self.indptr)
        chosen = np.zeros(lengths.size, bool)
        chosen[which] = True
        entries = np.repeat(chosen, lengths)
        indptr = np.concatenate([[0], np.cumsum(lengths[chosen])]).astype(np.int64)
        return SparseRows(self.data[entries], self.indices[entries], indptr, self.columns)


@dataclass(frozen=True, slots=True, eq=False)
class Shard:
    """One client's private rows, times ``scale``, and its labels."""

    rows: Entries | SparseRows
    labels: Vector
    scale: float

    @classmethod
    def of(
        cls,
        rows: ArrayLike | SparseMatrix,
        labels: ArrayLike,
        *,
        scale: float = 1.0,
        where: str = "the shard",
        missing: bool = False,
    ) -> Shard:
        """Return a checked shard; raise DataError that names ``where``, the row and the column.

        ``rows`` is dense or any scipy sparse matrix. Entries are stored in the narrowest of uint8, float32 and float64
        that holds them exactly: a pass is bound by memory. ``scale`` multiplies every entry (1 / 255 for pixels).
        With ``missing``, dense rows may have NaN, which must be filled in before a pass.
        """
        kept, count = _sparse(rows, where) if isinstance(rows, SparseMatrix) else _dense(rows, where, missing=missing)
        return cls(kept, _labels(labels, count, where), positive(scale, f"{where}: the scale", DataError))

    def split(self, parts: int) -> list[Shard]:
        """Split the rows, in order, into ``parts`` shards whose sizes differ by at most one."""
        if not 1 <= parts <= self.count:
            raise DataError(f"{self.count} rows cannot be split into {parts} shards; each needs a row")
        ends = np.cumsum([part.size for part in np.array_split(np.arange(self.count), parts)])
        return [self.take(slice(end - size, end)) for end, size in zip(ends, np.diff(ends, prepend=0), strict=True)]

    def hold_out(self, share: float, seed: int) -> tuple[Shard, Shard | None]:
        """Return the rows to train on and those held out: a random ``share`` of all, the same for the same seed."""
        held = held_out_count(self.count, share)
        if held == 0:
            return self, None
        chosen = np.zeros(self.count, bool)
        chosen[np.random.default_rng(seed).choice(self.count, held, replace=False)] = True
        return self.take(~chosen), self.take(chosen)

    def take(self, which: slice | NDArray[np.bool_]) -> Shard:
        """Return some of the rows, in their order."""
        rows = self.rows.take(which) if isinstance(self.rows, SparseRows) else self.rows[which]
        return Shard(rows, self.labels[which], self.scale)

    def scores(self, x: Vector) -> Vector:
        """Return <row, x> for every row."""
        if isinstance(self.rows, SparseRows):
            row_of_entry = np.repeat(np.arange(self.count), np.diff(self.rows.indptr))
            sums = np.bincount(row_of_entry, self.rows.data * x[self.rows.indices], self.count)
            return self.scale * sums.astype(np.float64)
        return self.scale * np.asarray(self.rows @ x)

    def digest(self, salt: str) -> bytes:
        """Return a digest of rows and labels that only shows whether two shards in one run are equal."""
        digest = hashlib.sha256(salt.encode())
        parts = self.rows[:3] if isinstance(self.rows, SparseRows) else (self.rows,)
        for part in (*parts, self.labels, np.array(self.scale)):
            digest.update(f"{part.dtype}{part.shape}".encode())
            digest.update(np.ascontiguousarray(part).data)
        return digest.digest()

    @property
    def count(self) -> int:
        """I_i, the number of rows."""
        return self.labels.size

    @property
    def columns(self) -> int:
        """The number n of columns."""
        return self.rows.columns if isinstance(self.rows, SparseRows) else int(self.rows.shape[1])


def held_out_count(count: int, share: float) -> int:
    """Return how many of ``count`` rows are held out; raise DataError if none would be left."""
    held = round(share * count)
    if held == count:
        raise DataError(f"holding out {share:g} of {count} rows leaves none to train on")
    return held


def _dense(rows: ArrayLike, where: str, *, missing: bool) -> tuple[Entries, int]:
    table = _numbers(rows, f"{where}: rows", dimensions=2)
    _check_shape(table.shape, where)
    if not missing or np.isinf(table).any():
        _check_finite(table, where)
    return narrow(table), table.shape[0]


def _sparse(rows: SparseMatrix, where: str) -> tuple[SparseRows, int]:
    table = rows.tocsr()
    if len(table.shape) != 2:  # noqa: PLR2004
        raise DataError(f"{where}: rows must be of shape (rows, columns), not {table.shape}")
    try:
        table.check_format(full_check=True)
    except ValueError as cause:
        raise DataError(f"{where}: the sparse rows are broken: {cause}") from cause
    if not table.has_canonical_format:
        table = table.copy()  # do not change the caller's matrix
        table.sum_duplicates()
    _check_shape(table.shape, where)
    values = _numbers(table.data, f"{where}: rows", dimensions=1)
    indices, indptr = table.indices.astype(np.int32), table.indptr.astype(np.int64)
    _check_finite(values, where, indices, indptr)
    return SparseRows(narrow(values), indices, indptr, table.shape[1]), table.shape[0]


def _labels(labels: ArrayLike, count: int, where: str) -> Vector:
    values = _numbers(labels, f"{where}: labels", dimensions=1).astype(np.float64)
    if values.size != count:
        raise DataError(f"{where} has {count} rows but {values.size} labels; give one label per row")
    finite = np.isfinite(values)
    if not finite.all():
        row = int(np.argmin(finite))
        raise DataError(f"{where}: the label of row {row} is {values[row]}; drop the row or fill it in")
    return values


def _numbers(values: ArrayLike, what: str, *, dimensions: int) -> NDArray[Any]:
    array = real_numbers(values, what, DataError)
    if array.ndim != dimensions:
        shape = "(rows, columns)" if dimensions == 2 else "(rows,)"  # noqa: PLR2004
        raise DataError(f"{what} must be of shape {shape}, not {array.shape}")
    return array.astype(np.float64) if array.dtype.itemsize > _WIDEST else array


def _check_shape(shape: tuple[int, ...], where: str) -> None:
    count, columns = shape
    if count == 0 or columns == 0:
        raise DataError(f"{where} is empty: {count} rows, {columns} columns; leave this client out")
    if columns > np.iinfo(np.int32).max:
        raise DataError(f"{where} has {columns} columns; at most {np.iinfo(np.int32).max} are supported")


def _check_finite(
    values: NDArray[Any],
    where: str,
    indices: NDArray[np.int32] | None = None,
    indptr: NDArray[np.int64] | None = None,
) -> None:
    """Raise DataError for the first entry that is NaN or infinite; ``indices`` and ``indptr`` locate sparse ones."""
    finite = np.isfinite(values)
    if finite.all():
        return
    at = int(np.argmin(finite))
    if indices is None or indptr is None:
        row, column = divmod(at, values.shape[1])
    else:
        row, column = int(np.searchsorted(indptr, at, side="right")) - 1, int(indices[at])
    raise DataError(f"{where}: row {row}, column {column} is {values.flat[at]}; drop the row or fill it in")


def narrow(values: NDArray[Any]) -> Entries:
    """Return the same numbers in the narrowest of uint8, float32 and float64 that holds them exactly."""
    if values.size and values.min() >= 0 and values.max() <= np.iinfo(np.uint8).max and _fits(values, np.uint8):
        return np.ascontiguousarray(values, np.uint8)
    if _fits(values, np.float32):
        return np.ascontiguousarray(values, np.float32)
    return np.ascontiguousarray(values, np.float64)


def _fits(values: NDArray[Any], dtype: type[np.uint8 | np.float32]) -> bool:
    if values.dtype.kind in "iu":  # compared as floats, large integers would seem to fit
        return dtype is np.uint8 or bool(
            values.size == 0 or max(-int(values.min()), int(values.max())) <= _EXACT_IN_FLOAT32
        )
    # Most tables that do not fit show it in their first row: check that before copying the whole table.
    with np.errstate(over="ignore"):  # a value too large for float32 becomes inf, which is not equal
        return all(bool(np.all(part.astype(dtype) == part)) for part in (values[:1], values))
