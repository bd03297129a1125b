"""Section IV.B, Table I: the location problem, to find the point with the least total distance to all balls."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fism.methods import Method
from fism.paper import literal
from fism.paper.contest import CONTESTANTS, FEDERATED, Contestant, in_workers, mean_of, usual_runs
from fism.paper.federation import over_grpc
from fism.plotting import legend, new_folder, plot, write_table
from fism.problem import Problem
from fism.solving import solve
from fism_client.data.shard import Shard
from fism_common.errors import NumericalError
from fism_common.problem.sets import Box
from fism_server.algorithm.step_rules import PowerSteps
from fism_server.problem.outer import SquaredDistance

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from fism_common.vectors import Vector

BOUND = 10.0
TOLERANCE = 1e-5
MOST_ROUNDS = 1_000_000
STEPS = PowerSteps(gamma=1.0, a=0.8, lam=1.0, b=0.1)
AGREE = 1e-4
"""The relative difference in F allowed between methods on one instance; they solve the same problem."""

PAPER = {
    (10, 500): (16.92, 15.96, 5.95, 2.34, 1.39),
    (10, 1000): (42.88, 40.51, 13.47, 5.31, 2.76),
    (10, 5000): (374.42, 351.27, 120.96, 42.67, 18.12),
    (10, 10000): (849.49, 800.44, 295.64, 104.30, 38.62),
    (50, 500): (15.78, 14.77, 6.13, 3.37, 2.77),
    (50, 1000): (35.47, 33.20, 12.46, 5.06, 2.96),
    (50, 5000): (318.56, 298.60, 106.08, 36.96, 15.26),
    (50, 10000): (808.79, 760.02, 277.83, 98.70, 36.61),
    (100, 500): (17.33, 16.17, 8.31, 4.74, 3.91),
    (100, 1000): (34.73, 32.44, 12.90, 5.95, 4.10),
    (100, 5000): (292.83, 276.16, 97.92, 35.52, 14.08),
    (100, 10000): (768.78, 724.63, 256.56, 89.95, 35.93),
}
"""Table I, in seconds: for each (n, m), in the order of CONTESTANTS."""


@dataclass(frozen=True)
class Instance:
    """One random instance, reproducible from its numbers."""

    balls: Shard
    anchor: Vector
    start: Vector

    @classmethod
    def of(cls, n: int, m: int, run: int) -> Instance:
        """Return instance number ``run`` of a cell of the table."""
        rng = np.random.default_rng([n, m, run])
        centers, radii = rng.uniform(-BOUND, BOUND, (m, n)), rng.uniform(0.0, 1.0, m)
        return cls(Shard.of(centers, radii), rng.uniform(-BOUND, BOUND, n), rng.uniform(-BOUND, BOUND, n))

    @property
    def problem(self) -> Problem:
        """Minimise the summed distances to the balls; of the minimisers, select the one nearest to the anchor."""
        return Problem("ball-distance", Box(-BOUND, BOUND), SquaredDistance(self.anchor))


@dataclass(frozen=True)
class Measured:
    """One method on one instance."""

    n: int
    m: int
    run: int
    method: str
    rounds: int
    seconds: float
    critical: float
    numpy: float
    """Estimated seconds of the literal implementation: its time for one round, times the rounds."""
    F: float
    H: float


@dataclass(frozen=True)
class Row:
    """One method in one cell of the table: means over the runs, and one run over gRPC."""

    n: int
    m: int
    method: str
    rounds: float
    one_process: float
    critical_path: float
    grpc: float | None
    numpy: float
    paper: float
    F: float
    H: float


def location(
    folder: Path,
    *,
    quick: bool = False,
    runs: int | None = None,
    tick: Callable[[str, int, int], None] = lambda *_: None,
) -> list[Row]:
    """Measure Table I, or with ``quick`` a part of it; write the table, all runs and a plot to ``folder``.

    ``tick`` is called with the name of a part, how much of it is done, and its total.
    """
    new_folder(folder)
    cells = [(10, 500), (10, 1000)] if quick else list(PAPER)
    runs = runs or usual_runs(quick=quick)
    tasks = [(n, m, run) for run in range(runs) for n, m in cells]
    measured: list[Measured] = []
    for found in in_workers(measure, tasks):
        measured += found
        tick("in one process", len(measured) // len(CONTESTANTS), len(tasks))
    measured.sort(key=lambda one: (one.n, one.m, one.run))
    grpc: dict[tuple[int, int, str], float] = {}
    over_grpc_cells = cells[-1:] if quick else cells
    for n, m in over_grpc_cells:
        for one in FEDERATED:
            grpc[n, m, one.name] = federate(n, m, one, next(x for x in measured if _is(x, n, m, one)))
            tick("over gRPC", len(grpc), len(over_grpc_cells) * len(FEDERATED))
    rows = [_row(n, m, i, measured, grpc) for n, m in cells for i in range(len(CONTESTANTS))]
    write_table(folder, "location-runs", measured)
    write_table(folder, "location", rows)
    draw(folder, rows)
    return rows


def measure(n: int, m: int, run: int) -> list[Measured]:
    """Run every method on one instance in this process; raise if they do not agree on F."""
    given = Instance.of(n, m, run)
    found = []
    for one in CONTESTANTS:
        options = {"steps": STEPS, "rounds": MOST_ROUNDS, "tolerance": TOLERANCE, "start": given.start}
        result = solve(given.problem, one.share(given.balls), method=one.method, **options)  # type: ignore[arg-type]
        seconds, critical = (float(result.history[name].sum()) for name in ("seconds", "critical"))
        numpy = result.rounds * literal_round(given, one)
        found.append(Measured(n, m, run, one.name, result.rounds, seconds, critical, numpy, result.inner, result.outer))
    values = [one.F for one in found]
    if max(values) - min(values) > AGREE * min(values):
        raise NumericalError(f"the methods do not agree on F for n = {n}, m = {m}, run {run}: {values}")
    return found


def literal_round(given: Instance, one: Contestant) -> float:
    """Return the seconds that NumPy takes for one round, with the clients one after another."""
    x, h = given.start, given.start - given.anchor
    gamma, weight = STEPS.gamma(1), STEPS.lam(1) / given.balls.count
    began = time.perf_counter()
    for part in one.share(given.balls):
        rows = np.asarray(part.rows)
        if one.method is Method.IR_IG:
            literal.irig_ball_distance(rows, part.labels, x, given.anchor, gamma, weight, BOUND)
        else:
            literal.ball_distance(rows, part.labels, x, h, gamma, weight, BOUND)
    return time.perf_counter() - began


def federate(n: int, m: int, one: Contestant, expected: Measured) -> float:
    """Return the seconds of the first instance with real client processes; raise if rounds or F differ."""
    given = Instance.of(n, m, 0)
    table = {
        "federation": {"start": "start.npy"},
        "inner": {"loss": "ball-distance", "constraint": {"kind": "box", "lo": -BOUND, "hi": BOUND}},
        "outer": {"kind": "squared-distance", "anchor": "anchor.npy"},
        "steps": {"gamma": STEPS.gamma_1, "a": STEPS.a, "lambda": STEPS.lam_1, "b": STEPS.b},
        "stop": {"rounds": MOST_ROUNDS, "tolerance": TOLERANCE},
    }
    summary, _ = over_grpc(table, one.share(given.balls), start=given.start, anchor=given.anchor)
    if (summary["rounds"], summary["inner"]) != (expected.rounds, expected.F):
        raise NumericalError(
            f"n = {n}, m = {m}, {one.name}: {summary['rounds']} rounds to F = {summary['inner']!r} over gRPC, "
            f"{expected.rounds} rounds to F = {expected.F!r} in one process"
        )
    return float(summary["seconds"])


def _is(one: Measured, n: int, m: int, method: Contestant) -> bool:
    return (one.n, one.m, one.method) == (n, m, method.name)


def _row(n: int, m: int, i: int, measured: Sequence[Measured], grpc: dict[tuple[int, int, str], float]) -> Row:
    method = CONTESTANTS[i]
    its = [one for one in measured if _is(one, n, m, method)]
    return Row(
        n,
        m,
        method.name,
        rounds=mean_of(its, "rounds"),
        one_process=mean_of(its, "seconds"),
        critical_path=mean_of(its, "critical"),
        grpc=grpc.get((n, m, method.name)),
        numpy=mean_of(its, "numpy"),
        paper=PAPER[n, m][i],
        F=mean_of(its, "F"),
        H=mean_of(its, "H"),
    )


def draw(folder: Path, rows: Sequence[Row]) -> None:
    """Plot seconds against m for each n: ours on the critical path, and the paper's."""
    dimensions = sorted({row.n for row in rows})
    with plot(folder, "location", len(dimensions)) as axes:
        for ax, n in zip(axes, dimensions, strict=True):
            for one in CONTESTANTS:
                its = [row for row in rows if (row.n, row.method) == (n, one.name)]
                m = [row.m for row in its]
                ax.loglog(m, [row.critical_path for row in its], label=one.name, ms=4, **one.style)
                ax.loglog(m, [row.paper for row in its], ms=3, alpha=0.35, **one.style)
            ax.set(title=f"n = {n}", xlabel="balls m", ylabel="seconds to the stop")
            sizes = sorted({row.m for row in rows})
            ax.set_xticks(sizes, [str(size) for size in sizes])
            ax.minorticks_off()
        legend(axes, "ours, by critical path;\npale: the paper's")
