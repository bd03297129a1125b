"""The sections about the model, and how it does on held-out rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fism_server.report.downsample import thinned
from fism_server.report.numbers import number, numbers, spread
from fism_server.report.view import Kind, Plot, Section, Series, Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fism_common.vectors import Vector
    from fism_server.archive.snapshot import Snapshot

_MOST_COEFFICIENTS = 20
_MEANS = {"weighted": "k-weighted mean", "average": "step-weighted mean"}


def quality_section(run: Snapshot) -> Section | None:
    """Return how the model does on held-out rows, if clients hold out any."""
    if not run.qualities:
        return None
    counted = run.qualities[0].right is not None
    values = np.array([(one.right or 0) / one.rows if counted else one.loss / one.rows for one in run.qualities])
    at = np.array([one.round for one in run.qualities], float)
    elapsed = run.rounds["seconds"].cumsum() - run.rounds["seconds"]
    kept = thinned(values)
    seconds = elapsed[np.minimum(at[kept].astype(int), len(elapsed)) - 1]
    title = "Share of held-out rows classified correctly" if counted else "Mean loss on held-out rows"
    label = "share of rows (%)" if counted else "mean loss"
    shown = 100 * values if counted else values
    plot = Plot(
        "quality",
        title,
        Kind.LINES,
        label,
        [Series(title, numbers(shown[kept]))],
        numbers(at[kept]),
        numbers(seconds),
    )
    cells = [
        [
            f"{one.round:,}",
            f"{one.rows:,}",
            *([f"{one.right / one.rows:.2%}"] if one.right is not None else []),
            number(one.loss / one.rows),
        ]
        for one in (run.qualities[i] for i in spread(len(at)))
    ]
    columns = ["round", "rows", *(["correct"] if counted else []), "mean loss"]
    text = "Clients hold out rows that are not used for training, and report how the model does on them."
    return Section("quality", "Held-out quality", [text], [plot], [Table("On held-out rows", columns, cells)])


def model_section(run: Snapshot) -> Section | None:
    """Return the largest coefficients, and how the averaged iterates compare."""
    state = run.state
    if state is None or not run.means:
        return None
    points = {"last x": state.x, **{_MEANS.get(name, name): mean for name, mean in run.means.items()}}
    fitted = run.fitted
    entries = fitted.recipe.entries() if fitted is not None else []
    largest = _largest(state.x)
    names = [entries[i].name if entries else f"column {i}" for i in largest]
    plot = Plot(
        "coefficients",
        f"The largest {len(largest)} of {state.x.size:,} coefficients"
        if len(largest) < state.x.size
        else "Coefficients",
        Kind.MARKED,
        "coefficient" if fitted is None or fitted.scaling is None else "coefficient (of standardised columns)",
        [Series(name, numbers(x[largest])) for name, x in points.items()],
        categories=names,
    )
    cells = [[name, *(number(x[i]) for x in points.values())] for name, i in zip(names, largest, strict=True)]
    columns = ["column", *points]
    if fitted is not None and fitted.scaling is not None:
        original, constant = fitted.in_original_units()
        columns.append("in original units")
        for row, i in zip(cells, largest, strict=True):
            row.append(number(original[i]) if i < original.size else number(constant))
        if not fitted.recipe.intercept:
            cells.append(["constant", *("0" for _ in points), number(constant)])
    return Section(
        "model",
        "The model",
        [
            "The last x is the answer. The two means are over all rounds, including the first, so they lag behind.",
            "Agreement of the means with the last x does not by itself prove convergence.",
        ],
        [plot],
        [Table("Largest coefficients", columns, cells), _iterates(run, points)],
    )


def _iterates(run: Snapshot, points: dict[str, Vector]) -> Table:
    last = points["last x"]
    H = run.objective
    cells = []
    for name, x in points.items():
        away = float(np.linalg.norm(x - last) / (np.linalg.norm(last) + 1.0))
        small = 1e-6 * max(1.0, float(np.abs(x).max(initial=0.0)))
        size, entries = float(np.linalg.norm(x)), int((np.abs(x) > small).sum())
        cells.append([name, "" if H is None else number(H.value(x)), number(size), f"{entries:,}", f"{away:.2e}"])
    columns = ["point", "H", "|x|", "nonzero entries", "distance to last x / (|x| + 1)"]
    return Table("Last and averaged iterates", columns, cells)


def _largest(x: Vector) -> NDArray[np.intp]:
    """Return the indices of the entries that are largest in absolute value, in that order."""
    sizes, most = np.abs(x), min(_MOST_COEFFICIENTS, x.size)
    found = np.argpartition(-sizes, most - 1)[:most]
    return found[np.lexsort((found, -sizes[found]))]
