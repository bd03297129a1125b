"""Write an experiment's tables as CSV and Markdown, and its plots as PNG and SVG in one style."""

from __future__ import annotations

import csv
import importlib.util
from contextlib import contextmanager
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any, cast

from fism_common.errors import ConfigError
from fism_common.files import write_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_STYLE: dict[str, Any] = {
    "figure.constrained_layout.use": True,
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "lines.linewidth": 1.4,
    "svg.hashsalt": "fism",  # the same figure gives the same bytes
    "svg.fonttype": "none",
}


def new_folder(folder: Path) -> Path:
    """Create the folder for an experiment's files; raise now for what would otherwise fail after the last run."""
    if importlib.util.find_spec("matplotlib") is None:
        raise ConfigError("plots need matplotlib: pip install 'fism[pictures]'")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"cannot create the folder {folder}: {error.strerror}") from error
    return folder


def write_table(folder: Path, name: str, rows: Sequence[Any]) -> None:
    """Write dataclass objects, one per row, to NAME.csv with all digits and NAME.md with four."""
    names = [field.name for field in fields(rows[0])]
    cells = [asdict(row) for row in rows]
    with (folder / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(cells)
    write_bytes(folder / f"{name}.md", (markdown(names, [[row[one] for one in names] for row in cells])).encode())


def markdown(names: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a Markdown table with aligned columns."""
    texts = [[name.replace("_", " ") for name in names], *[[_text(cell) for cell in row] for row in rows]]
    widths = [max(len(row[i]) for row in texts) for i in range(len(names))]
    lines = [
        "| " + " | ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in texts
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 1) + ":" for width in widths) + "|")
    return "\n".join(lines) + "\n"


def _text(cell: object) -> str:
    if cell is None:
        return ""
    return f"{cell:.4g}" if isinstance(cell, float) else str(cell)


@contextmanager
def plot(
    folder: Path, name: str, columns: int = 1, rows: int = 1, *, size: tuple[float, float] = (3.6, 3.0)
) -> Iterator[list[Axes]]:
    """Yield the axes of a figure's panels, row by row, each ``size`` inches; then write NAME.png and NAME.svg."""
    import matplotlib as mpl
    from matplotlib.figure import Figure as NewFigure

    with mpl.rc_context(cast("Any", _STYLE)):  # its type lists every key as a literal
        figure: Figure = NewFigure(figsize=(size[0] * columns, size[1] * rows))
        yield [figure.add_subplot(rows, columns, i + 1) for i in range(rows * columns)]
        figure.savefig(folder / f"{name}.png", dpi=200)
        figure.savefig(folder / f"{name}.svg", metadata={"Date": None})


def legend(axes: Sequence[Axes], title: str | None = None) -> None:
    """Add one legend for all panels at the right, with the lines of the first."""
    lines = axes[0].get_legend_handles_labels()
    axes[0].figure.legend(*lines, loc="outside right center", fontsize=8, title=title, title_fontsize=8)
