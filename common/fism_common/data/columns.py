"""The federation's columns: what clients have, and how every client turns them into rows. All of it is public."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

from fism_common.errors import MismatchError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

INTERCEPT = "intercept"
OTHER = "other"


class Kind(StrEnum):
    """What a column holds."""

    NUMBER = "number"
    TEXT = "text"
    TIME = "time"


class Missing(StrEnum):
    """What to do with a missing number, other than filling in a given one."""

    REFUSE = "refuse"
    MEAN = "mean"


class Unknown(StrEnum):
    """What to do with a level that is not listed."""

    REFUSE = "refuse"
    OTHER = "other"


class Standardise(StrEnum):
    """How to standardise columns of numbers; empty means not at all, and is also the value in old messages."""

    NO = ""
    FULL = "full"
    SCALE = "scale"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a client's table."""

    name: str
    kind: Kind


@dataclass(frozen=True, slots=True)
class Entry:
    """A column of the model: a column of numbers, one level of a category, or the intercept."""

    name: str
    source: str
    level: str | None = None


@dataclass(frozen=True)
class Recipe:
    """How a client's columns become rows."""

    features: tuple[Column, ...] = ()
    """In the federation's order; empty if columns have no names, as in an array."""
    levels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The levels of every categorical column: each level becomes a column of zeros and ones."""
    unknown: Unknown = Unknown.REFUSE
    missing: Missing | float = Missing.REFUSE
    intercept: bool = False
    """Whether the last column is all ones."""
    standardise: Standardise = Standardise.NO

    @property
    def measured(self) -> bool:
        """Whether means and spreads of the whole federation are needed."""
        return self.standardise is not Standardise.NO or self.missing is Missing.MEAN

    def entries(self) -> list[Entry]:
        """Return the model's columns; none if they have no names."""
        found = []
        for column in self.features:
            if column.name in self.levels:
                found += [Entry(f"{column.name}={level}", column.name, level) for level in self.levels_of(column.name)]
            else:
                found.append(Entry(column.name, column.name))
        return [*found, Entry(INTERCEPT, "")] if found and self.intercept else found

    def levels_of(self, name: str) -> list[str]:
        """Return the levels of a category, including the one for unlisted levels."""
        return [*self.levels[name], *([OTHER] if self.unknown is Unknown.OTHER else [])]

    def numeric(self, width: int) -> NDArray[np.bool_]:
        """Return which of the model's columns are numbers, not levels of a category or the intercept."""
        if self.features:
            return np.array([entry.level is None and entry.source != "" for entry in self.entries()])
        return np.arange(width) < width - self.intercept

    def width(self, columns: int) -> int:
        """Return how many columns the model has, for data with ``columns`` columns."""
        return len(self.entries()) if self.features else columns + self.intercept


def agree(recipe: Recipe, given: Sequence[Column], client: str, order: Sequence[str] = ()) -> Recipe:
    """Return the recipe with the columns of a client, in the federation's ``order``.

    Raises MismatchError with a table of the differences from the known columns, or from the listed categories.
    """
    expected = {column.name: _description(column, recipe.levels) for column in recipe.features}
    if not expected:
        expected = dict.fromkeys(order, "")
        if given:  # unnamed columns have no categories either
            expected |= dict.fromkeys(recipe.levels, "category")
    if not given and (recipe.features or order or recipe.levels):
        raise MismatchError(f"{client!r} has unnamed columns; this federation's columns are {', '.join(expected)}")
    decided = bool(recipe.features or order)
    found = {column.name: _description(column, recipe.levels) for column in given}
    different = [
        (name, expected.get(name, "-"), found.get(name, "-"))
        for name in dict.fromkeys([*expected, *found])
        if (name not in found or (name not in expected and decided) or not _fits(expected.get(name, ""), found[name]))
    ]
    if different:
        raise MismatchError(f"the columns of {client!r} differ from this federation's:\n{_table(different, client)}")
    if recipe.features or not given:
        return recipe
    kinds = {column.name: column for column in given}
    return replace(recipe, features=tuple(kinds[name] for name in (order or kinds)))


def _fits(expected: str, found: str) -> bool:
    return found != _UNLISTED and expected in {"", found}


_UNLISTED = "text, its levels not listed"


def _description(column: Column, levels: Mapping[str, object]) -> str:
    if column.name in levels and column.kind is not Kind.TIME:
        return "category"
    return _UNLISTED if column.kind is Kind.TEXT else str(column.kind)


def _table(rows: Sequence[tuple[str, str, str]], client: str) -> str:
    shown = [(name[:_WIDEST], expected or "any", found) for name, expected, found in rows[:_MOST_SHOWN]]
    table = [("column", "federation", client), *shown]
    widths = [max(len(row[i]) for row in table) for i in (0, 1)]
    lines = [f"  {row[0]:<{widths[0]}}  {row[1]:<{widths[1]}}  {row[2]}" for row in table]
    return "\n".join(lines + ([f"  and {len(rows) - _MOST_SHOWN} more"] if len(rows) > _MOST_SHOWN else []))


_MOST_SHOWN = 20
_WIDEST = 40
