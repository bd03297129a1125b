"""``fism compare``: run several methods on one problem and compare them."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fism.methods import Method
from fism.plotting import legend, new_folder, plot, write_table
from fism.pooled import pool
from fism.problem import Problem
from fism.solving import solve
from fism_common.errors import MethodError, ProblemError
from fism_common.problem.losses import LOSSES, Loss
from fism_common.settings import load_object
from fism_common.vectors import vector

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from matplotlib.axes import Axes

    from fism.result import Result
    from fism_common.vectors import Vector
    from fism_server.problem.plan import Plan

_log = logging.getLogger(__name__)
_LONG_RUN = 20
"""Without a reference solution, FISM runs this many times the rounds to provide one."""
_X_AXES = ("rounds", "subgradients", "seconds")
_COLORS = dict(zip(Method, ("#d9541e", "#222222", "#1f6fb4", "#8a8a8a", "#2a8c5a", "#8a4fa3"), strict=True))


@dataclass(frozen=True)
class Row:
    """A method after its last round: F, H, and their gaps to the reference (negative if below it)."""

    method: str
    rounds: int
    subgradients: int
    seconds: float
    F: float
    F_gap: float
    H: float
    H_gap: float


def compare(
    plan: Plan,
    folder: Path,
    *,
    methods: Sequence[Method] = tuple(Method),
    reference: Path | None = None,
    tick: Callable[[str, int, int], None] = lambda *_: None,
) -> list[Row]:
    """Run the ``methods`` on the plan's problem and shards; write a table and a plot to ``folder``.

    ``reference``: an .npy or .npz file (with ``x``) of the solution. Without it, the reference for F is the lowest F
    of all runs, and for H that of FISM after 20 times the rounds.
    A method that does not fit the problem is skipped with a warning.
    """
    new_folder(folder)
    shards = list(pool(plan).train.values())
    problem = Problem(_loss(plan), plan.constraint, plan.objective(shards[0].columns))
    start, rounds = plan.start(shards[0].columns), plan.config.stop.rounds
    if plan.config.stop.tolerance is not None:
        _log.warning("all methods run for %d rounds; compare ignores stop.tolerance", rounds)
    results: dict[Method, Result] = {}
    for i, method in enumerate(methods, 1):
        try:
            results[method] = solve(problem, shards, steps=plan.steps, rounds=rounds, start=start, method=method)
        except MethodError as error:
            _log.warning("skipping %s: %s", method.value, error)
        tick("methods", i, len(methods))
    if not results:
        raise MethodError("none of these methods fits the problem")
    if reference is None:
        long = solve(problem, shards, steps=plan.steps, rounds=_LONG_RUN * rounds, start=start)
        F = min(_least(one) for one in (long, *results.values()))
        H, what = long.outer, f"lowest F found; H of FISM after {_LONG_RUN * rounds} rounds"
        _log.warning("gaps are measured from the %s; use --reference to give a known solution", what)
    else:
        solution, what = _read_solution(reference, shards[0].columns), reference.name
        at = solve(problem, shards, steps=plan.steps, rounds=1, start=solution).history
        F, H = float(at["inner"][0]), float(at["outer"][0])
        if any(_least(one) < F for one in results.values()):
            _log.warning("a run reached a lower F than %s has, so that point does not minimise F", reference)
    rows = [_row(method, result, F, H) for method, result in results.items()]
    write_table(folder, "compare", [*rows, Row(f"({what})", 0, 0, 0.0, F, 0.0, H, 0.0)])
    draw(folder, results, F, H)
    return rows


def _least(result: Result) -> float:
    return min(float(result.history["inner"].min()), result.inner)


def _loss(plan: Plan) -> Loss:
    if plan.loss.kind in LOSSES:
        return LOSSES.from_variant(plan.loss, {})
    found: Loss = load_object(plan.loss.kind, plan.folder, Loss)
    return found


def _read_solution(file: Path, columns: int) -> Vector:
    try:
        found = np.load(file, allow_pickle=False)
        x = vector(found if isinstance(found, np.ndarray) else found["x"], f"the reference {file}", ProblemError)
    except (OSError, ValueError, KeyError) as error:
        raise ProblemError(f"the reference {file} is not an .npy file, nor an .npz file with x: {error}") from error
    if x.size != columns:
        raise ProblemError(f"the reference {file} has {x.size} entries, but the rows have {columns} columns")
    return x


def _row(method: Method, result: Result, F: float, H: float) -> Row:
    seconds = float(result.history["seconds"].sum())
    gaps = (result.inner - F, result.outer - H)
    return Row(method.value, result.rounds, result.subgradients, seconds, result.inner, gaps[0], result.outer, gaps[1])


def draw(folder: Path, results: dict[Method, Result], F: float, H: float) -> None:
    """Draw the F gap and the signed H gap against rounds, subgradients and seconds."""
    with plot(folder, "compare", len(_X_AXES), 2) as axes:
        for upper, lower, name in zip(axes[: len(_X_AXES)], axes[len(_X_AXES) :], _X_AXES, strict=True):
            for method, result in results.items():
                color, label = _COLORS[method], method.value
                upper.plot(_along(result, name), _after(result, "inner") - F, color=color, label=label)
                lower.plot(_along(result, name), _after(result, "outer") - H, color=color, label=label)
            for ax, field, best, label in ((upper, "inner", F, "F gap"), (lower, "outer", H, "H gap, signed")):
                ax.set(xscale="log", xlabel=name, ylabel=label)
                _scale(ax, [_after(one, field) - best for one in results.values()])
        legend(axes)


def _after(result: Result, field: str) -> Vector:
    """Return F or H after each round; the history holds the values before each round."""
    return np.append(result.history[field][1:], getattr(result, field))


def _along(result: Result, name: str) -> Vector:
    """Return where each round ends on the x axis ``name``."""
    match name:
        case "subgradients":
            return np.asarray(result.history["round"] * (result.subgradients / result.rounds))
        case "seconds":
            return np.cumsum(result.history["seconds"])
    return np.asarray(result.history["round"], float)


def _scale(ax: Axes, gaps: Sequence[Vector]) -> None:
    """Use a log scale for gaps; if any is 0 or less, a symmetric one that is linear below the smallest final gap."""
    if all((gap > 0).all() for gap in gaps):
        ax.set_yscale("log")
        return
    largest = max(float(np.abs(gap).max()) for gap in gaps)
    reached = min(float(np.abs(gap[-1])) for gap in gaps)
    ax.set_yscale("symlog", linthresh=10 ** math.ceil(math.log10(max(reached, 1e-6 * largest, 1e-12))))
    ax.axhline(0.0, color="#222222", lw=0.7)
