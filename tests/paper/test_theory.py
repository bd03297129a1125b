"""The paper's claims that can be checked, on problems with a known solution."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fism.paper import theory
from fism_client.local_pass import LocalPass


@pytest.mark.parametrize(
    "known", [theory.absolute_deviations(), theory.two_balls(), theory.least_squares()], ids=lambda known: known.name
)
def test_preferred_minimiser_is_approached_by_all(known: theory.Known) -> None:
    """By the last point, both means, and the clients' own points; the last one is the nearest of the three answers."""
    distances = theory.converge(known, 3)
    assert distances[-1].rounds == 1000
    for name in ("last", "weighted", "ergodic", "clients"):
        assert getattr(distances[-1], name) < 0.5 * getattr(distances[0], name), name
    assert distances[-1].last <= distances[-1].ergodic


@pytest.mark.parametrize(
    "known", [theory.absolute_deviations(), theory.two_balls(), theory.least_squares()], ids=lambda known: known.name
)
def test_known_solution_is_a_minimiser_that_h_prefers(known: theory.Known) -> None:
    """No point near it has a lower F, and none with the same F a lower H."""
    rng = np.random.default_rng(0)

    def value(x: np.ndarray) -> float:
        passes = [LocalPass(one, known.problem.loss, known.problem.constraint) for one in known.shards]
        return sum(one.inner(x) for one in passes)

    best, H = value(known.solution), known.problem.outer.value(known.solution)
    for size in (1e-1, 1e-3):
        for _ in range(50):
            x = known.solution + size * rng.normal(size=known.solution.size)
            assert value(x) >= best - 1e-12
            if value(x) <= best + 1e-13:
                assert known.problem.outer.value(x) >= H


def test_measured_gap_is_below_both_bounds() -> None:
    """At the ergodic mean, by the sharp constant and so by the paper's."""
    for bound in theory.rate(3):
        assert bound.F_gap_ergodic <= bound.sharp_bound <= bound.paper_bound


def test_subgradients_are_m_plus_one_against_two_m() -> None:
    """As counted by the runs."""
    for count in theory.count():
        assert count.a_round == count.by_the_paper
    assert [count.by_the_paper for count in theory.count()] == [40, 21]


@pytest.mark.long
def test_quick_check_is_written_and_drawn(tmp_path: Path) -> None:
    """All four tables, with the time of a round over real gRPC, and both plots."""
    *_, rounds = theory.theory(tmp_path, quick=True)
    assert [one.clients for one in rounds] == [1, 2]
    tables = {f"{name}.{kind}" for name in ("convergence", "rate", "subgradients", "round") for kind in ("csv", "md")}
    plots = {f"{name}.{kind}" for name in ("convergence", "rate") for kind in ("png", "svg")}
    assert {file.name for file in tmp_path.iterdir()} == tables | plots
