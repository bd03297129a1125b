"""The moments of a client's columns, and its rows standardised by the moments of the whole federation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fism_client.data.memory import fresh
from fism_client.data.shard import Shard, SparseRows
from fism_common.data.columns import Missing, Standardise
from fism_common.data.moments import MOMENTS, ColumnMoments
from fism_common.errors import DataError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fism_common.data.columns import Recipe
    from fism_common.data.moments import Scaling

_COLUMNS = 64
"""Columns processed at once."""
_ROWS = 4096
"""Rows standardised at once."""


def check_form(shard: Shard, recipe: Recipe, where: str) -> None:
    """Raise DataError if standardising would make sparse rows dense."""
    if isinstance(shard.rows, SparseRows) and recipe.standardise is Standardise.FULL:
        raise DataError(
            f"{where} is sparse, and centring would make it dense: the federation must standardise by scale only, "
            'data.standardise = "scale"'
        )


def moments_of(shard: Shard, numeric: NDArray[np.bool_]) -> ColumnMoments:
    """Return the moments of the ``numeric`` columns; 0 for the others, to reveal nothing about them."""
    rows = shard.rows
    moments = _sparse(shard, rows) if isinstance(rows, SparseRows) else _dense(shard, rows)
    return ColumnMoments(*(np.where(numeric, getattr(moments, name), 0.0) for name in MOMENTS))


def standardised(shard: Shard, recipe: Recipe, scaling: Scaling) -> Shard:
    """Return the shard standardised by the recipe: missing values filled in, columns centred and scaled."""
    center, scale = recipe.standardise is Standardise.FULL, recipe.standardise is not Standardise.NO
    spread = scaling.spread if scale else np.ones_like(scaling.spread)
    rows = shard.rows
    if isinstance(rows, SparseRows):
        return Shard(
            rows._replace(data=np.multiply(rows.data, shard.scale, dtype=np.float64) / spread[rows.indices]),
            shard.labels,
            1.0,
        )
    filled = np.zeros_like(spread) if center else (scaling.mean + scaling.rest) / spread
    made = fresh(rows.shape, np.dtype(np.float64))
    for begin in range(0, shard.count, _ROWS):
        part = made[begin : begin + _ROWS]
        np.multiply(rows[begin : begin + _ROWS], shard.scale, out=part, dtype=np.float64)
        if center:
            part -= scaling.mean
            part -= scaling.rest
        part /= spread
        if recipe.missing is Missing.MEAN:
            np.copyto(part, filled, where=np.isnan(part))
    return Shard(made, shard.labels, 1.0)


def _dense(shard: Shard, rows: NDArray[np.uint8 | np.float32 | np.float64]) -> ColumnMoments:
    made = ColumnMoments(*np.zeros((4, shard.columns)))
    for begin in range(0, shard.columns, _COLUMNS):
        block = slice(begin, begin + _COLUMNS)
        values = shard.scale * np.ascontiguousarray(rows[:, block].T, np.float64)
        present = ~np.isnan(values)
        count = present.sum(axis=1)
        least = np.maximum(count, 1)
        mean = values.sum(axis=1, where=present) / least
        away = values - mean[:, None]
        rest = away.sum(axis=1, where=present) / least
        away -= rest[:, None]
        for name, part in (
            ("count", count),
            ("mean", mean),
            ("rest", rest),
            ("squares", np.square(away, out=away).sum(axis=1, where=present)),
        ):
            getattr(made, name)[block] = part
    return made


def _sparse(shard: Shard, rows: SparseRows) -> ColumnMoments:
    """Return the moments of sparse rows: their zeros count, too."""
    values, n = np.multiply(rows.data, shard.scale, dtype=np.float64), rows.columns
    count = np.full(n, float(shard.count))
    mean = np.bincount(rows.indices, values, n) / shard.count
    away = values - mean[rows.indices]
    zeros = shard.count - np.bincount(rows.indices, minlength=n)
    rest = (np.bincount(rows.indices, away, n) - zeros * mean) / shard.count
    squares = np.bincount(rows.indices, (away - rest[rows.indices]) ** 2, n) + zeros * (mean + rest) ** 2
    return ColumnMoments(count, mean, rest, squares)
