"""The sections about rounds: F and H, and where the time goes."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from fism_server.report.downsample import stretches, thinned
from fism_server.report.numbers import number, numbers, spread
from fism_server.report.view import Kind, Plot, Scale, Section, Series, Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fism_server.archive.snapshot import Snapshot

_STRETCHES = 240
_PARTS = ("slowest client", "network", "server")


def progress_section(run: Snapshot) -> Section | None:
    """Return F, H and the change of x over the rounds."""
    rounds = run.rounds
    if not len(rounds["round"]):
        return None
    elapsed = rounds["seconds"].cumsum() - rounds["seconds"]  # when the round began: F and H are from before it

    def curve(key: str, title: str, label: str, scale: Scale = Scale.CHOSEN) -> Plot:
        kept = thinned(rounds[key])
        series = [Series(title, numbers(rounds[key][kept]))]
        at, seconds = numbers(rounds["round"][kept]), numbers(elapsed[kept])
        return Plot(key, title, Kind.LINES, label, series, at, seconds, scale=scale)

    chosen = spread(len(elapsed))
    cells = [
        [
            f"{int(rounds['round'][i]):,}",
            f"{elapsed[i]:.3g}",
            *(number(rounds[key][i]) for key in ("inner", "outer")),
            f"{rounds['change'][i]:.2e}",
        ]
        for i in chosen
    ]
    return Section(
        "progress",
        "F and H",
        ["The run minimises F, and among the minimisers of F, it minimises H. Both values are from before the round."],
        [
            curve("inner", "F, the sum that all clients minimise", "F"),
            curve("outer", "H, the private preference", "H"),
            curve("change", "Change of x in a round", "|x_k+1 - x_k| / (|x_k| + 1)", Scale.LOG),
        ],
        [Table("Rounds", ["round", "seconds", "F", "H", "change"], cells)],
    )


def time_section(run: Snapshot) -> Section | None:
    """Return where the time of a round goes."""
    if not len(run.timed):
        return None
    ms = 1e3 * run.split
    elapsed = run.rounds["seconds"].cumsum()[run.timed.astype(int) - 1]
    edges = stretches(len(ms), _STRETCHES) if len(ms) > _STRETCHES else np.arange(len(ms) + 1)
    medians = np.array([np.median(ms[a:b], axis=0) for a, b in pairwise(edges)])
    last = edges[1:] - 1
    plot = Plot(
        "split",
        "Milliseconds per round, by where they were spent",
        Kind.AREAS,
        "time per round (ms, medians)",
        [Series(name, numbers(medians[:, i])) for i, name in enumerate(_PARTS)],
        numbers(run.timed[last]),
        numbers(elapsed[last]),
        top=_top(medians.sum(axis=1)),
    )
    whole = 1e3 * run.rounds["seconds"]
    columns = [*(ms[:, i] for i in range(len(_PARTS))), whole]
    cells = [
        [name, *(f"{np.quantile(values, q):.3g}" for q in (0.5, 0.95)), f"{values.max():.3g}"]
        for name, values in zip([*_PARTS, "whole round"], columns, strict=True)
    ]
    text = "A round waits for its slowest client: its computing, its messages both ways, and the server's own work."
    table = Table("Milliseconds per round", ["part", "median", "95th percentile", "maximum"], cells)
    return Section("time", "Where the time goes", [text], [plot], [table])


def _top(totals: NDArray[np.float64]) -> float | None:
    """Return where to end the axis, if a few slow rounds, often the first, would flatten all others."""
    usual = 1.25 * float(np.quantile(totals, 0.98))
    return None if totals.max() <= 2 * usual else float(f"{usual:.2g}")
