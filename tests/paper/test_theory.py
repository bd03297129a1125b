"""The paper's claims that can be checked, on problems with a known solution."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest

import fism
from fism.paper import theory
from fism.paper.known import Known, absolute_deviations, least_squares, two_balls
from fism_client.compute.local_pass import LocalPass

PROBLEMS = pytest.mark.parametrize(
    "known", [absolute_deviations(), two_balls(), least_squares()], ids=lambda known: known.name
)


@PROBLEMS
def test_preferred_minimiser_is_approached_by_all_but_a_run_without_h(known: Known) -> None:
    """By the last point, both means, and the clients' own points; lambda = 0 stays away."""
    first, *_, last = theory.converge(known, 3)
    assert last.rounds == 1000
    for name in ("last", "weighted", "ergodic", "clients"):
        assert getattr(last, name) < 0.5 * getattr(first, name), name
    assert last.last <= last.ergodic
    assert last.without > 10 * last.last


@PROBLEMS
def test_known_solution_is_the_minimiser_that_h_prefers(known: Known) -> None:
    """No point near it has a lower F, and those with the same F have a higher H."""
    rng = np.random.default_rng(0)
    passes = [LocalPass(one, known.problem.loss, known.problem.constraint) for one in known.shards]

    def value(x: np.ndarray) -> float:
        return sum(one.value(x) for one in passes)

    rows = np.vstack([np.asarray(shard.rows, float) for shard in known.shards])
    if known.name == "two balls":
        along = (rows[1] - rows[0])[:, None] / np.linalg.norm(rows[1] - rows[0])
    else:
        *_, V = np.linalg.svd(rows)
        along = V[np.linalg.matrix_rank(rows) :].T
    best, H = value(known.solution), known.problem.outer.value(known.solution)
    for size in (1e-1, 1e-3):
        for _ in range(20):
            assert value(known.solution + size * rng.normal(size=known.solution.size)) >= best - 1e-12
            same = known.solution + size * along @ rng.normal(size=along.shape[1])
            assert value(same) == pytest.approx(best, abs=1e-9)
            assert known.problem.outer.value(same) > H


def test_measured_gap_is_below_both_bounds() -> None:
    """At the ergodic mean, by the sharp constant and so by the paper's."""
    for bound in theory.rate(3):
        assert bound.F_gap_ergodic <= bound.sharp_bound <= bound.paper_bound


def test_subgradients_are_m_plus_one_against_two_m() -> None:
    """One of f for each row; of H as often as a run has asked for one."""
    for count in theory.count():
        assert count.of_inner + count.of_outer == count.by_the_paper
    assert [count.by_the_paper for count in theory.count()] == [40, 21]


@pytest.mark.parametrize("outer", [fism.SquaredNorm(), theory.Asked()], ids=["compiled", "row by row"])
@pytest.mark.parametrize("method", ["fism", "ir-ig"])
def test_a_round_asks_for_one_subgradient_of_f_a_row(method: str, outer: fism.OuterObjective) -> None:
    """Counted where the kernels ask for it; a last pass that goes nowhere tells F at the answer."""
    calls = 0

    @ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)  # type: ignore[untyped-decorator]  # ctypes has no type for it
    def counted(residual: float) -> float:
        nonlocal calls
        calls += 1
        return residual

    loss = fism.CustomLoss("counted", lambda z, b: (z - b) ** 2 / 2, lambda z, b: counted(z - b))
    shards = [(np.ones((rows, 2)), np.ones(rows)) for rows in (3, 4)]
    problem = fism.Problem(loss, fism.Box(-1, 1), outer)
    steps = fism.PowerSteps(gamma=0.1, a=0.7, lam=1.0, b=0.2)
    result = fism.solve(problem, shards, steps=steps, rounds=5, method=method)
    of_outer = 1 if method == "fism" else 7
    assert calls == 5 * 7  # none for F at the answer
    assert result.subgradients == 5 * (7 + of_outer)


@pytest.mark.long
def test_quick_check_is_written_and_drawn(tmp_path: Path) -> None:
    """All tables, with the time of a round over real gRPC, and both plots."""
    *_, rounds = theory.theory(tmp_path, quick=True)
    assert [one.clients for one in rounds] == [1, 2]
    assert all(0 < max(one.compute, one.communication) < one.T_FISM for one in rounds)
    names = ("convergence", "rate", "subgradients", "round", "round-clients")
    tables = {f"{name}.{kind}" for name in names for kind in ("csv", "md")}
    plots = {f"{name}.{kind}" for name in ("convergence", "rate") for kind in ("png", "svg")}
    assert {file.name for file in tmp_path.iterdir()} == tables | plots
