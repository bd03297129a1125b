"""The same step for all, or each method's best: how much of a speed-up is the step's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fism.paper.contest import CONTESTANTS, in_workers
from fism.paper.location import BOUND, STEPS, Instance
from fism.paper.output import legend, new_folder, plot, write_table
from fism.problem import Problem
from fism.solving import solve
from fism_common.sets import Box
from fism_common.steps import PowerSteps
from fism_server.outer import SquaredDistance

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from fism_common.vectors import Vector

GAMMAS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
ROUNDS = 4000
NEAR = 1e-5
"""The relative F gap to reach: the stop rule would stop short steps early, wherever they are."""


@dataclass(frozen=True)
class Row:
    """How long a method with one step takes to come near the least F; nothing if it does not."""

    method: str
    gamma: float
    rounds: int | None
    seconds: float | None
    best: bool


def gammas(folder: Path, *, quick: bool = False, tick: Callable[[str, int, int], None] = lambda *_: None) -> list[Row]:
    """Try all steps on one instance of the location problem; write a table and a plot to ``folder``."""
    new_folder(folder)
    m, values = (1000, GAMMAS[4:8]) if quick else (10_000, GAMMAS)
    tasks = [(m, i, gamma) for gamma in values for i in range(len(CONTESTANTS))]
    courses: dict[tuple[int, float], tuple[Vector, Vector]] = {}
    for i, gamma, inner, critical in in_workers(follow, tasks):
        courses[i, gamma] = inner, critical
        tick("steps", len(courses), len(tasks))
    limit = min(float(inner.min()) for inner, _ in courses.values()) * (1 + NEAR)
    rows = []
    for i, one in enumerate(CONTESTANTS):
        reached = {gamma: found for gamma in values if (found := _reached(*courses[i, gamma], limit)) is not None}
        best = min(reached, key=lambda gamma: reached[gamma], default=None)  # used at once
        for gamma in values:
            rounds, seconds = reached.get(gamma, (None, None))
            rows.append(Row(one.name, gamma, rounds, seconds, gamma == best))
    write_table(folder, "gamma", rows)
    draw(folder, rows)
    return rows


def follow(m: int, i: int, gamma: float) -> tuple[int, float, Vector, Vector]:
    """Return F before every round of a method with one step, and the seconds of its critical path until then."""
    given, one = Instance.of(10, m, 0), CONTESTANTS[i]
    problem = Problem("ball-distance", Box(-BOUND, BOUND), SquaredDistance(given.anchor))
    steps = PowerSteps(gamma=gamma, a=STEPS.a, lam=STEPS.lam_1, b=STEPS.b)
    result = solve(problem, one.share(given.balls), steps=steps, rounds=ROUNDS, start=given.start, method=one.method)
    return i, gamma, result.history["inner"], np.cumsum(result.history["critical"]) - result.history["critical"]


def _reached(inner: Vector, seconds: Vector, limit: float) -> tuple[int, float] | None:
    below = np.flatnonzero(inner <= limit)
    return (int(below[0]), float(seconds[below[0]])) if below.size else None


def draw(folder: Path, rows: Sequence[Row]) -> None:
    """Draw rounds and seconds to come near against the step."""
    with plot(folder, "gamma", 2) as axes:
        for ax, field in zip(axes, ("rounds", "seconds"), strict=True):
            for one in CONTESTANTS:
                its = [row for row in rows if row.method == one.name and row.rounds is not None]
                ax.loglog(
                    [row.gamma for row in its], [getattr(row, field) for row in its], label=one.name, ms=4, **one.style
                )
            ax.set(title=f"to a relative F gap of {NEAR:g}", xlabel="first step gamma")
            ax.set_ylabel("rounds" if field == "rounds" else "seconds, critical path")
        legend(axes)
