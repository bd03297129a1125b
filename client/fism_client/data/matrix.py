"""Rows whose columns have no names: arrays, sparse or dense."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np

from fism_client.data.shard import Shard, SparseRows
from fism_common.data.columns import Column, Missing
from fism_common.errors import DataError

if TYPE_CHECKING:
    from fism_client.data.shard import Entries
    from fism_common.data.columns import Recipe
    from fism_common.vectors import Vector


@dataclass
class Matrix:
    """A shard as read from a file; an intercept may be added to it."""

    where: str
    shard: Shard
    """Missing numbers are NaN."""
    first_row = 0
    """Rows of arrays are numbered from here."""

    @property
    def count(self) -> int:
        """The number of rows."""
        return self.shard.count

    @property
    def labels(self) -> Vector:
        """The labels."""
        return self.shard.labels

    @property
    def schema(self) -> tuple[Column, ...]:
        """Empty: the columns have no names."""
        return ()

    @property
    def width(self) -> int:
        """The number of columns."""
        return self.shard.columns

    def doubts(self) -> list[str]:
        """Return an empty list: all entries are numbers."""
        return []

    def encode(self, recipe: Recipe) -> Shard:
        """Return the rows encoded by the recipe; raise DataError that names the row and the column."""
        shard = self.shard
        if recipe.features:
            raise DataError(f"{self.where} has columns without names; use a table that has them, such as a CSV file")
        if recipe.missing is not Missing.MEAN and not isinstance(shard.rows, SparseRows):
            rows, scale = shard.rows, shard.scale
            if isinstance(recipe.missing, float) and np.isnan(rows).any():
                rows, scale = np.where(np.isnan(rows), recipe.missing, np.multiply(rows, scale, dtype=np.float64)), 1.0
            shard = Shard.of(rows, shard.labels, scale=scale, where=self.where)
        return with_intercept(shard) if recipe.intercept else shard


def with_intercept(shard: Shard) -> Shard:
    """Return the shard with a last column of ones."""
    rows, scale = shard.rows, shard.scale
    one = np.round(1 / scale)
    exact = one * scale == 1.0
    if isinstance(rows, SparseRows):
        data = rows.data if exact else np.multiply(rows.data, scale, dtype=np.float64)
        return Shard(_with_last(rows._replace(data=data), one if exact else 1.0), shard.labels, scale if exact else 1.0)
    if not exact or (rows.dtype == np.uint8 and one > np.iinfo(np.uint8).max):
        rows, scale, one = np.multiply(rows, scale, dtype=np.float64), 1.0, np.float64(1.0)
    ones = np.full((rows.shape[0], 1), one, rows.dtype)
    return Shard(np.hstack([rows, ones]), shard.labels, scale)


def _with_last(rows: SparseRows, one: float) -> SparseRows:
    ends = rows.indptr[1:]
    wide = rows.data if one <= np.iinfo(np.uint8).max else rows.data.astype(np.float64)
    data = cast("Entries", np.insert(wide, ends, one))
    indices = np.insert(rows.indices, ends, rows.columns)
    return SparseRows(data, indices, rows.indptr + np.arange(rows.indptr.size), rows.columns + 1)
