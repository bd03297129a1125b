"""The content of the page, as data: text, plots and tables. The page decides how they look."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

Numbers = list[float | None]


class Kind(StrEnum):
    """The kinds of plots."""

    LINES = "lines"
    """Curves over rounds, or over seconds."""
    AREAS = "areas"
    """The same, stacked."""
    BARS = "bars"
    """One horizontal bar for each category, with its parts stacked."""
    MARKED = "marked"
    """One horizontal bar for each category, and a marker for each of the other series."""


class Scale(StrEnum):
    """The scale of the value axis."""

    LINEAR = "linear"
    LOG = "log"
    CHOSEN = "chosen"
    """The reader chooses."""


@dataclass(frozen=True)
class Series:
    """Numbers under a name."""

    name: str
    values: Numbers


@dataclass(frozen=True)
class Plot:
    """A plot."""

    id: str
    title: str
    kind: Kind
    label: str
    """The label of the value axis, with its unit."""
    series: list[Series]
    rounds: Numbers = field(default_factory=list)
    seconds: Numbers = field(default_factory=list)
    categories: list[str] = field(default_factory=list)
    scale: Scale = Scale.LINEAR
    top: float | None = None
    """Where the value axis ends; values beyond it are in the table."""


@dataclass(frozen=True)
class Table:
    """A table; its cells are formatted text."""

    caption: str
    columns: list[str]
    rows: list[list[str]]


@dataclass(frozen=True)
class Section:
    """A part of the page."""

    id: str
    title: str
    text: list[str] = field(default_factory=list)
    plots: list[Plot] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)


@dataclass(frozen=True)
class View:
    """The whole page."""

    title: str
    stage: str
    status: str
    """One sentence."""
    headline: list[tuple[str, str]]
    sections: list[Section]


def all_plots(view: View) -> Sequence[Plot]:
    """Return every plot of a page."""
    return [plot for section in view.sections for plot in section.plots]
