"""Columns with names, and the rows that the federation's recipe makes of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from fism_client.data.fresh import fresh
from fism_client.data.labels import is_true, text_of
from fism_client.shard import Shard
from fism_common.columns import OTHER, Column, Kind, Missing, Unknown
from fism_common.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from fism_common.columns import Recipe
    from fism_common.vectors import Vector

_BLOCK = 4096
"""Rows that are put together at once: what they fill stays in a cache meanwhile."""


@dataclass
class Table:
    """A client's columns and labels. Numbers that are missing are NaN, texts None; times are seconds since 1970."""

    where: str
    columns: dict[str, NDArray[Any]]
    kinds: dict[str, Kind]
    labels: Vector

    @property
    def count(self) -> int:
        """The number of rows."""
        return self.labels.size

    @property
    def schema(self) -> tuple[Column, ...]:
        """The names and kinds of the columns, all that is ever told of them."""
        return tuple(Column(name, self.kinds[name]) for name in self.columns)

    @property
    def width(self) -> int:
        """The number of columns."""
        return len(self.columns)

    def encode(self, recipe: Recipe) -> Shard:
        """Return the rows that the recipe makes of the columns; raise DataError that names the row and the column.

        Where missing numbers are to be filled in with the federation's mean, they are NaN.
        """
        parts: list[NDArray[Any]] = []
        for column in recipe.features:
            values = self.columns[column.name]
            if column.name in recipe.levels:
                parts += self._one_hot(column.name, values, recipe)
            else:
                parts.append(self._numbers(column.name, values, recipe.missing))
        if recipe.intercept:
            parts.append(np.ones(self.count, np.uint8))
        rows = fresh((self.count, len(parts)), np.result_type(*parts))
        for begin in range(0, self.count, _BLOCK):
            block = slice(begin, begin + _BLOCK)
            for j, part in enumerate(parts):
                rows[block, j] = part[block]
        del parts
        return Shard.of(rows, self.labels, where=self.where, missing=recipe.missing is Missing.MEAN)

    def doubts(self) -> list[str]:
        """Return which columns are texts by a few of their values alone, and where the first of these is."""
        found = []
        for name, values in self.columns.items():
            if self.kinds[name] is Kind.TEXT:
                numbers = sum(text is not None and _is_number(text) for text in values)
                if 2 * numbers > len(values):
                    found.append(f"{self._not_a_number(name, values)}, as in {numbers} of {len(values)} rows")
        return found

    def _numbers(self, name: str, values: NDArray[Any], missing: Missing | float) -> NDArray[Any]:
        if values.dtype.kind == "O":
            raise self._not_a_number(name, values)
        if values.dtype.kind != "f":
            return values
        finite = np.isfinite(values)
        if finite.all():
            return values
        infinite = np.isinf(values)
        if infinite.any():
            row = int(np.argmax(infinite))
            raise DataError(f"{self._at(row, name)} is {values[row]}; a number must be finite")
        if missing is Missing.REFUSE:
            row = int(np.argmin(finite))
            raise DataError(
                f"{self._at(row, name)} is missing; leave the row out, or let the federation state a rule for it "
                "(data.missing)"
            )
        return values if missing is Missing.MEAN else np.where(finite, values, missing)

    def _one_hot(self, name: str, values: NDArray[Any], recipe: Recipe) -> Iterator[NDArray[np.uint8]]:
        levels = recipe.levels_of(name)
        place: dict[str | None, int] = {level: i for i, level in enumerate(recipe.levels[name])}
        other = len(levels) - 1 if recipe.unknown is Unknown.OTHER else -1
        if values.dtype.kind == "b":  # which one federation may list as yes and no, another as true and false
            place |= {text_of(is_true(level)): i for i, level in enumerate(levels) if is_true(level) is not None}
        codes = np.fromiter((place.get(text, -1) for text in _texts(values)), np.int32, self.count)
        if other >= 0:
            codes[codes < 0] = other
        elif (codes < 0).any():
            row = int(np.argmax(codes < 0))
            text = next(islice(_texts(values), row, None))
            known = ", ".join(map(repr, levels))
            what = "is missing" if text is None else f"is {text!r}"
            raise DataError(
                f"{self._at(row, name)} {what}; the federation lists {known}. Add the level to its configuration "
                f"(data.levels), or let those that are not listed count as {OTHER!r} (data.unknown)"
            )
        for i in range(len(levels)):
            yield (codes == i).astype(np.uint8)

    def _not_a_number(self, name: str, values: NDArray[Any]) -> DataError:
        row, text = next(((i, text) for i, text in enumerate(values) if not _is_number(text)), (0, values[0]))
        return DataError(f"{self._at(row, name)} is {text!r}, where a number is expected")

    def _at(self, row: int, name: str) -> str:
        return f"{self.where}: row {row + 1}, column {name!r}"


def _texts(values: NDArray[Any]) -> Iterator[str | None]:
    """Yield values as texts, as levels are written: whole numbers without a point."""
    if values.dtype.kind == "O":
        yield from values
    elif values.dtype.kind == "f":
        for value in values:
            yield None if np.isnan(value) else text_of(float(value))
    else:
        yield from (text_of(value.item()) for value in values)


def seconds_since_1970(times: NDArray[np.datetime64]) -> NDArray[np.float64]:
    """Return times as numbers, NaN for those that are missing."""
    return np.where(np.isnat(times), np.nan, times.astype("datetime64[us]").astype(np.int64) / 1e6)


def _is_number(text: str | None) -> bool:
    try:
        return text is None or math.isfinite(float(text))
    except ValueError:
        return False
