"""The federation's columns: what clients have, and what becomes of it in every client alike. All of it is public."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from fism_common.errors import MismatchError
from fism_common.wire.pb import federation_pb2 as pb

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

INTERCEPT = "intercept"
OTHER = "other"


class Kind(StrEnum):
    """What a column holds."""

    NUMBER = "number"
    TEXT = "text"
    TIME = "time"


class Missing(StrEnum):
    """What to do with a missing number, but for filling in one that is given."""

    REFUSE = "refuse"
    MEAN = "mean"


class Unknown(StrEnum):
    """What to do with a level that is not listed."""

    REFUSE = "refuse"
    OTHER = "other"


class Standardise(StrEnum):
    """What to do to columns of numbers; the empty word is nothing, and also what an old message says."""

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
    """How rows are made from a client's columns."""

    features: tuple[Column, ...] = ()
    """In the federation's order; none where columns have no names, as in an array."""
    levels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Of the columns that are categories: each level becomes a column of zeros and ones."""
    unknown: Unknown = Unknown.REFUSE
    missing: Missing | float = Missing.REFUSE
    intercept: bool = False
    """Whether the last column is ones."""
    standardise: Standardise = Standardise.NO

    @property
    def measured(self) -> bool:
        """Whether means and spreads of the whole federation are needed."""
        return self.standardise is not Standardise.NO or self.missing is Missing.MEAN

    def entries(self) -> list[Entry]:
        """Return the model's columns, if they have names."""
        found = []
        for column in self.features:
            if column.name in self.levels:
                found += [Entry(f"{column.name}={level}", column.name, level) for level in self.levels_of(column.name)]
            else:
                found.append(Entry(column.name, column.name))
        return [*found, Entry(INTERCEPT, "")] if found and self.intercept else found

    def levels_of(self, name: str) -> list[str]:
        """Return the levels of a category, with the one for those that are not listed."""
        return [*self.levels[name], *([OTHER] if self.unknown is Unknown.OTHER else [])]

    def numeric(self, width: int) -> list[bool]:
        """Return which of the model's columns are numbers, and not levels of a category or the intercept."""
        if self.features:
            return [entry.level is None and entry.source != "" for entry in self.entries()]
        return [True] * (width - self.intercept) + [False] * self.intercept

    def width(self, columns: int) -> int:
        """Return how many columns the model has, for data of so many."""
        return len(self.entries()) if self.features else columns + self.intercept


def agree(recipe: Recipe, given: Sequence[Column], client: str, order: Sequence[str] = ()) -> Recipe:
    """Return the recipe with the columns of a client, in the federation's ``order``.

    Raises MismatchError with a table of what differs from the columns that are known, or from the listed categories.
    """
    expected = {column.name: _told(column, recipe.levels) for column in recipe.features}
    if not expected:
        expected = dict.fromkeys(order, "")
        if given:  # what has no names has no categories either
            expected |= dict.fromkeys(recipe.levels, "category")
    if not given and (recipe.features or order or recipe.levels):
        raise MismatchError(f"{client!r} has columns without names; this federation's are {', '.join(expected)}")
    decided = bool(recipe.features or order)
    found = {column.name: _told(column, recipe.levels) for column in given}
    different = [
        (name, expected.get(name, "-"), found.get(name, "-"))
        for name in dict.fromkeys([*expected, *found])
        if (name not in found or (name not in expected and decided) or not _fits(expected.get(name, ""), found[name]))
    ]
    if different:
        raise MismatchError(f"{client!r} has other columns than this federation:\n{_table(different, client)}")
    if recipe.features or not given:
        return recipe
    kinds = {column.name: column for column in given}
    return replace(recipe, features=tuple(kinds[name] for name in (order or kinds)))


def _fits(expected: str, found: str) -> bool:
    return found != _UNLISTED and expected in {"", found}


_UNLISTED = "text, its levels not listed"


def _told(column: Column, levels: Mapping[str, object]) -> str:
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
_LONGEST_NAME = 200


def column_messages(columns: Sequence[Column]) -> list[pb.Column]:
    """Return columns as messages."""
    return [pb.Column(name=column.name, kind=str(column.kind)) for column in columns]


def read_columns(messages: Sequence[pb.Column]) -> tuple[Column, ...]:
    """Return the columns in messages; raise MismatchError for those that cannot be."""
    names = [message.name for message in messages]
    if len(set(names)) != len(names):
        raise MismatchError("columns must have different names")
    if not all(name and name.isprintable() and len(name) <= _LONGEST_NAME for name in names):
        raise MismatchError(f"a column's name has 1 to {_LONGEST_NAME} printable characters")
    try:
        return tuple(Column(message.name, Kind(message.kind)) for message in messages)
    except ValueError as error:
        raise MismatchError(f"{error}; there are {', '.join(Kind)}") from None


def recipe_message(recipe: Recipe) -> pb.Recipe:
    """Return the recipe as a message."""
    filled = None if isinstance(recipe.missing, Missing) else recipe.missing
    return pb.Recipe(
        features=column_messages(recipe.features),
        levels={name: pb.Levels(level=levels) for name, levels in recipe.levels.items()},
        unknown=str(recipe.unknown),
        missing="" if filled is not None else str(recipe.missing),
        fill=filled,
        intercept=recipe.intercept,
        standardise=str(recipe.standardise),
    )


def read_recipe(message: pb.Recipe) -> Recipe:
    """Return the recipe in a message; raise MismatchError for one that this version does not know."""
    try:
        return Recipe(
            features=read_columns(message.features),
            levels={name: tuple(levels.level) for name, levels in message.levels.items()},
            unknown=Unknown(message.unknown or Unknown.REFUSE),
            missing=message.fill if message.HasField("fill") else Missing(message.missing or Missing.REFUSE),
            intercept=message.intercept,
            standardise=Standardise(message.standardise),
        )
    except ValueError as error:
        raise MismatchError(f"the server makes rows in a way that this client does not know: {error}") from None
