"""Compare methods with the same step, and each with its best: how much of the speed-up comes from the step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fism.paper.contest import CONTESTANTS, in_workers
from fism.paper.location import STEPS, TOLERANCE, Instance
from fism.plotting import legend, new_folder, plot, write_table
from fism.solving import solve
from fism_server.algorithm.record import Stop
from fism_server.algorithm.step_rules import PowerSteps

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from fism_common.vectors import Vector

SHARES = (0.002, 0.003, 0.004, 0.005, 0.006, 0.007, 0.008, 0.01, 0.014, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
"""gamma / S: averaging over S clients moves x like a step of this size, so one grid suits all methods."""
PAPER = 1.0
"""The paper's gamma, for every S."""
ROUNDS = 4000
NEAR = 1e-5
"""The gap to reach, relative to the least F of all runs. The stop rule is no measure: it stops short steps anywhere."""


@dataclass(frozen=True)
class Row:
    """The cost for a method with one step to come near the least F, and to the paper's stop; None if never reached."""

    method: str
    gamma: float
    gamma_per_client: float
    rounds: int | None
    seconds: float | None
    """On the critical path: the rounds times the median of one round."""
    best: bool
    rounds_to_the_stop: int | None


@dataclass(frozen=True, eq=False)
class Course:
    """A run with one step: F after 0, 1, 2, ... rounds, seconds per round, and rounds to the paper's stop."""

    contestant: int
    gamma: float
    inner: Vector
    seconds: float
    stopped: int | None

    def rounds_to(self, limit: float) -> int | None:
        """Return after how many rounds F is at most ``limit``."""
        below = np.flatnonzero(self.inner <= limit)
        return int(below[0]) if below.size else None


def gammas(folder: Path, *, quick: bool = False, tick: Callable[[str, int, int], None] = lambda *_: None) -> list[Row]:
    """Try all steps on one instance of the location problem; write a table and a plot to ``folder``."""
    new_folder(folder)
    m, shares = (1000, (0.02, 0.04, 0.06, 0.1, 0.2)) if quick else (10_000, SHARES)
    values = [sorted({PAPER, *(round(one.clients * share, 6) for share in shares)}) for one in CONTESTANTS]
    tasks = [(m, i, gamma) for i in range(len(CONTESTANTS)) for gamma in values[i]]
    courses: dict[tuple[int, float], Course] = {}
    for found in in_workers(follow, tasks):
        courses[found.contestant, found.gamma] = found
        tick("steps", len(courses), len(tasks))
    limit = min(float(course.inner.min()) for course in courses.values()) * (1 + NEAR)
    rows = []
    for i, one in enumerate(CONTESTANTS):
        near = {gamma: rounds for gamma in values[i] if (rounds := courses[i, gamma].rounds_to(limit)) is not None}
        best = min(near, key=lambda gamma: (near[gamma], gamma), default=None)
        for gamma in values[i]:
            course, rounds = courses[i, gamma], near.get(gamma)
            seconds = None if rounds is None else rounds * course.seconds
            rows.append(Row(one.name, gamma, gamma / one.clients, rounds, seconds, gamma == best, course.stopped))
    write_table(folder, "gamma", rows)
    draw(folder, rows)
    return rows


def follow(m: int, i: int, gamma: float) -> Course:
    """Run a method with one step; return its course."""
    given, one = Instance.of(10, m, 0), CONTESTANTS[i]
    problem = given.problem
    steps = PowerSteps(gamma=gamma, a=STEPS.a, lam=STEPS.lam_1, b=STEPS.b)
    shards = one.share(given.balls)
    result = solve(problem, shards, steps=steps, rounds=ROUNDS, start=given.start, method=one.method)
    stopped = solve(
        problem, shards, steps=steps, rounds=ROUNDS, start=given.start, method=one.method, tolerance=TOLERANCE
    )
    return Course(
        i,
        gamma,
        inner=np.append(result.history["inner"], result.inner),
        seconds=float(np.median(result.history["critical"])),
        stopped=stopped.rounds if stopped.stopped is Stop.TOLERANCE else None,
    )


def draw(folder: Path, rows: Sequence[Row]) -> None:
    """Plot the rounds and seconds to reach the gap against the step."""
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
