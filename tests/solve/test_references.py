"""The solver finds the solution that H prefers, on problems where it is known."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import fism
from fism_client.compute.local_pass import LocalPass
from fism_common.exchange import Pass

from ..literal import Vector
from .references import REFERENCES, Reference, absolute_deviations, inconsistent_deviations, multiplier


@cache
def reference(name: str) -> Reference:
    """Return the reference problem, made once."""
    return REFERENCES[name]()


def distance(problem: Reference, rounds: int, method: str = "fism") -> float:
    """Return how far from the solution a run ends."""
    result = fism.solve(
        problem.problem, problem.shards, steps=problem.steps, rounds=rounds, start=problem.start, method=method
    )
    return float(np.linalg.norm(result.x - problem.solution))


@pytest.mark.parametrize("name", REFERENCES)
def test_distance_to_the_solution_falls(name: str) -> None:
    """Ten times the rounds bring the last iterate nearer, each time."""
    distances = [distance(reference(name), rounds) for rounds in (100, 1000, 10000)]
    assert distances[0] > 1.5 * distances[1]
    assert distances[1] > 1.5 * distances[2]


@pytest.mark.parametrize("name", REFERENCES)
def test_without_the_outer_objective_the_solution_is_missed(name: str) -> None:
    """Lambda = 0 ends at another minimiser of F: it is H that selects."""
    assert distance(reference(name), 10000, "incremental") > 8 * distance(reference(name), 10000)


@pytest.mark.parametrize("name", REFERENCES)
def test_reference_solution_is_optimal(name: str) -> None:
    """No random step within X lowers F below the reference's, which guards the references themselves."""
    problem = reference(name)
    sites = [
        LocalPass(fism.Shard.of(*pair), problem.problem.loss, problem.problem.constraint) for pair in problem.shards
    ]
    lowest = sum(site.value(problem.solution) for site in sites)
    rng = np.random.default_rng(0)
    for size in (1e-1, 1e-2, 1e-3):
        for step in size * rng.normal(size=(50, problem.solution.size)):
            x = problem.problem.constraint.project(problem.solution + step)
            assert sum(site.value(x) for site in sites) >= lowest - 1e-9


def test_weights_by_shard_size_solve_another_problem() -> None:
    """Averaging with weights I_i / m leaves F far above its minimum on problem 4; the uniform mean does not."""
    problem = inconsistent_deviations()
    sites = [
        LocalPass(fism.Shard.of(*pair), problem.problem.loss, problem.problem.constraint) for pair in problem.shards
    ]
    sizes = np.array([site.shard.count for site in sites])
    lowest = sum(site.value(problem.solution) for site in sites)

    def gap_after(rounds: int, weights: Vector) -> float:
        x = problem.start
        for k in range(1, rounds + 1):
            h = problem.problem.outer.subgradient(x)
            order = Pass(x, h, problem.steps.gamma(k), problem.steps.lam(k) / sizes.sum())
            x = sum((w * site.run(order)[0] for w, site in zip(weights, sites, strict=True)), np.zeros_like(x))
        return (sum(site.value(x) for site in sites) - lowest) / lowest

    uniform, by_size = gap_after(5000, np.full(4, 0.25)), gap_after(5000, sizes / sizes.sum())
    assert uniform < 5e-3
    assert by_size > 10 * uniform
    assert by_size > 4e-2


def test_regularisation_is_exact_below_the_threshold_and_not_above() -> None:
    """On problem 1 the minimiser of F + lambda H is the solution for lambda <= 1 / max|y|, and jumps just above."""
    problem = absolute_deviations()
    A, b = (np.concatenate(parts) for parts in zip(*problem.shards, strict=True))
    outer, constraint = problem.problem.outer, problem.problem.constraint
    assert isinstance(outer, fism.SquaredDistance)
    assert isinstance(constraint, fism.Box)
    anchor, bound = np.asarray(outer.anchor), float(np.max(constraint.hi))
    threshold = 1 / np.max(np.abs(multiplier(A, b, anchor, bound)))

    def miss(lam: float) -> float:
        import cvxpy as cp  # noqa: PLC0415  # half a second that only this test needs

        x = cp.Variable(anchor.size)
        merit = cp.norm1(A @ x - b) + lam / 2 * cp.sum_squares(x - anchor)
        cp.Problem(cp.Minimize(merit), [cp.abs(x) <= bound]).solve(
            solver=cp.CLARABEL, tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12
        )
        return float(np.linalg.norm(np.asarray(x.value) - problem.solution))

    assert miss(0.99 * threshold) < 1e-6
    assert miss(1.01 * threshold) > 1e-3

    below = fism.PowerSteps(gamma=1.0, a=0.75, lam=0.9 * threshold, b=0.2)
    result = fism.solve(
        problem.problem, problem.shards, steps=below, rounds=10000, start=problem.start, method="tikhonov"
    )
    assert np.linalg.norm(result.x - problem.solution) < 0.05


def test_twins_share_and_the_dead_column_is_zero() -> None:
    """A duplicated column splits its weight equally with its twin; a column of zeros gets none."""
    problem = reference("logistic twins")
    result = fism.solve(problem.problem, problem.shards, steps=problem.steps, rounds=10000, start=problem.start)
    assert abs(result.x[0] - result.x[4]) < 0.02
    assert abs(result.x[5]) < 1e-3
