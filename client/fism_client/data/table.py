"""Columns with names, and the rows that the federation's recipe encodes them to."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fism_client.data.labels import is_number, is_true
from fism_client.data.memory import fresh
from fism_client.data.readers.times import read_time
from fism_client.data.shard import Shard
from fism_common.data.columns import OTHER, Column, Kind, Missing, Unknown
from fism_common.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from fism_common.data.columns import Recipe
    from fism_common.vectors import Vector

_BLOCK = 4096
"""Rows assembled at once: few enough to stay in a CPU cache meanwhile."""
_DECIMAL = re.compile(r"-?\d+\.\d+")
_log = logging.getLogger(__name__)


@dataclass
class Table:
    """A client's columns and labels. Missing numbers are NaN, missing texts None; times are seconds since 1970."""

    where: str
    columns: dict[str, NDArray[Any]]
    kinds: dict[str, Kind]
    labels: Vector
    verbatim: Callable[[Sequence[str]], list[NDArray[Any]]]
    """Returns columns by name as texts, exactly as the source has them; None for a missing value."""
    first_row = 1
    """Rows of a table are numbered from here, as people count them."""

    @property
    def count(self) -> int:
        """The number of rows."""
        return self.labels.size

    @property
    def schema(self) -> tuple[Column, ...]:
        """The names and kinds of the columns: all that a request to join says about them."""
        return tuple(Column(name, self.kinds[name]) for name in self.columns)

    @property
    def width(self) -> int:
        """The number of columns."""
        return len(self.columns)

    def encode(self, recipe: Recipe) -> Shard:
        """Return the rows encoded by the recipe; raise DataError that names the row and the column.

        Missing numbers are NaN if they will be filled in with the federation's mean.
        """
        parts: list[NDArray[Any]] = []
        texts = self._texts([column.name for column in recipe.features if column.name in recipe.levels])
        for column in recipe.features:
            if column.name in texts:
                parts += self._one_hot(column.name, texts.pop(column.name), recipe)
            else:
                parts.append(self._numbers(column, recipe.missing))
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
        """Return which columns are texts only because of a few values, and where the first of these is."""
        found = []
        for column in self.schema:
            values = self.columns[column.name]
            if column.kind is not Kind.TEXT:
                continue
            for kind, is_one in _READS.items():
                fitting = sum(text is not None and is_one(text) for text in values)
                if 2 * fitting > len(values):
                    wrong = self._not_one(Column(column.name, kind), values)
                    found.append(f"{wrong}, as in {fitting} of {len(values)} rows")
        return found

    def _texts(self, names: Sequence[str]) -> dict[str, NDArray[Any]]:
        """Return columns as texts; other columns are read again, since a number does not show how it was written."""
        again = [name for name in names if self.kinds[name] is not Kind.TEXT]
        read = dict(zip(again, self.verbatim(again), strict=True)) if again else {}
        return {name: read[name] if name in read else self.columns[name] for name in names}

    def _numbers(self, column: Column, missing: Missing | float) -> NDArray[Any]:
        name, values = column.name, self.columns[column.name]
        if values.dtype.kind == "O":
            raise self._not_one(column, values)
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
                f"{self._at(row, name)} is missing; leave the row out, or let the federation set a rule for it "
                "(data.missing)"
            )
        return values if missing is Missing.MEAN else np.where(finite, values, missing)

    def _one_hot(self, name: str, texts: NDArray[Any], recipe: Recipe) -> Iterator[NDArray[np.uint8]]:
        listed, levels = recipe.levels[name], recipe.levels_of(name)
        places = {text: place_of(text, listed) for text in set(texts)}
        codes = np.fromiter((places[text] for text in texts), np.int32, self.count)
        unknown = codes < 0
        if unknown.any() and recipe.unknown is Unknown.REFUSE:
            row = int(np.argmax(unknown))
            known = ", ".join(map(repr, levels))
            what = "is missing" if texts[row] is None else f"is {texts[row]!r}"
            raise DataError(
                f"{self._at(row, name)} {what}; the federation lists {known}. Add the level to its configuration "
                f"(data.levels), or let unlisted levels count as {OTHER!r} (data.unknown)"
            )
        if unknown.all():
            known = ", ".join(map(repr, listed))
            _log.warning("%s: column %r is never one of %s: all rows count as %r", self.where, name, known, OTHER)
        codes[unknown] = len(levels) - 1
        for i in range(len(levels)):
            yield (codes == i).astype(np.uint8)

    def _not_one(self, column: Column, values: NDArray[Any]) -> DataError:
        """Return the error for the first text of a column that is not of the column's kind."""
        is_one, expected = _READS[column.kind], _EXPECTED[column.kind]
        row = next((i for i, text in enumerate(values) if text is not None and not is_one(text)), 0)
        return DataError(f"{self._at(row, column.name)} is {values[row]!r}, where {expected} is expected")

    def _at(self, row: int, name: str) -> str:
        return f"{self.where}: row {row + self.first_row}, column {name!r}"


_READS: dict[Kind, Callable[[str], bool]] = {
    Kind.NUMBER: is_number,
    Kind.TIME: lambda text: read_time(text) is not None,
}
_EXPECTED = {Kind.NUMBER: "a number", Kind.TIME: "a time such as 2025-12-31 or 2025-12-31T23:59:59Z"}


def place_of(text: str | None, levels: Sequence[str]) -> int:
    """Return the index of a text among the levels; -1 if it is not there.

    Tries the exact text, then an equal decimal (1.0 for 1), then for true and false a level with the same meaning.
    """
    if text is None:
        return -1
    if text in levels:
        return levels.index(text)
    short = _short(text)
    found = next((i for i, level in enumerate(levels) if _short(level) == short), -1)
    if found < 0 and text.lower() in {"true", "false"}:
        found = next((i for i, level in enumerate(levels) if is_true(level) is is_true(text)), -1)
    return found


def _short(text: str) -> str:
    """Return a decimal without trailing zeros, and any other text unchanged: 01 and 1e5 may be codes."""
    return text.rstrip("0").rstrip(".") if _DECIMAL.fullmatch(text) else text
