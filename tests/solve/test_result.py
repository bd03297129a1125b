"""What a run gives back."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import fism

from .. import literal
from ..literal import Vector
from .cases import SETS, data

STEPS = fism.PowerSteps(gamma=0.4, a=0.7, lam=0.8, b=0.2)
PROBLEM = fism.Problem("absolute", SETS["box"][0], fism.SquaredNorm())
GIVEN = data(11, "absolute", clients=4)


def solve(**options: Any) -> fism.Result:  # noqa: ANN401
    """Return the result of 12 rounds, unless told otherwise."""
    defaults: dict[str, Any] = {"steps": STEPS, "rounds": 12, "start": GIVEN.start}
    return fism.solve(PROBLEM, GIVEN.shards, **defaults | options)


def iterates(rounds: int, first_round: int = 1) -> list[Vector]:
    """Return x_1, ..., x_{K+1} of the literal transcription."""
    project = SETS["box"][1]
    df = literal.SUBGRADIENTS["absolute"]
    return literal.fism(
        GIVEN.shards, df, project, lambda x: x, project(GIVEN.start), STEPS.gamma, STEPS.lam, rounds, first_round
    )


def test_means_are_over_the_points_before_each_round() -> None:
    """The ergodic mean weighs x_k by gamma_k, the weighted mean by k; x_{K+1} is in neither."""
    x, k = np.array(iterates(12)[:-1]), np.arange(1, 13)
    gamma = np.array([STEPS.gamma(j) for j in range(1, 13)])
    result = solve()
    np.testing.assert_allclose(result.average, gamma @ x / gamma.sum(), rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(result.weighted, k @ x / k.sum(), rtol=1e-10, atol=1e-13)


def test_history_has_one_entry_per_round() -> None:
    """Steps, values before the round, the change that it made, and its time."""
    x = iterates(12)
    history = solve().history
    assert list(history) == ["round", "gamma", "lam", "inner", "outer", "change", "seconds", "critical"]
    np.testing.assert_array_equal(history["round"], np.arange(1, 13))
    np.testing.assert_array_equal(history["gamma"], [STEPS.gamma(k) for k in range(1, 13)])
    np.testing.assert_array_equal(history["lam"], [STEPS.lam(k) for k in range(1, 13)])
    changes = [np.linalg.norm(b - a) / (np.linalg.norm(a) + 1) for a, b in pairwise(x)]
    np.testing.assert_allclose(history["change"], changes, rtol=1e-9)
    assert (history["seconds"] > 0).all()
    assert (history["critical"] <= history["seconds"]).all()
    assert (history["critical"] > 0).all()


@pytest.mark.parametrize("options", [{}, {"rounds": 400, "tolerance": 5e-3}])
def test_callback_is_shown_every_point_once(options: dict[str, Any]) -> None:
    """x_k before each round k, and the answer last; what it does to them changes nothing."""
    shown: list[Vector] = []

    def look(k: int, x: Vector) -> None:
        assert k == len(shown) + 1
        shown.append(x.copy())
        x[:] = 1e9

    result = solve(callback=look, **options)
    assert len(shown) == result.rounds + 1
    np.testing.assert_allclose(shown, iterates(result.rounds), rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(shown[-1], result.x)


def test_first_round_goes_on_with_the_steps_of_that_round() -> None:
    """Five rounds, then seven more from there, are twelve rounds."""
    part = solve(rounds=5)
    rest = solve(rounds=7, first_round=6, start=part.x)
    np.testing.assert_allclose(rest.x, solve().x, rtol=1e-12)
    np.testing.assert_array_equal(rest.history["round"], np.arange(6, 13))
    assert rest.rounds == 7


def test_stop_rule_ends_at_the_first_round_that_meets_it() -> None:
    """The answer is x_{k+1} for the first k at which x, H and F all changed by less than the tolerance."""
    tolerance, x = 5e-3, iterates(400)
    F = [literal.inner(GIVEN.shards, literal.VALUES["absolute"], y) for y in x]
    H = [y @ y / 2 for y in x]
    k = next(
        k
        for k in range(400)
        if np.linalg.norm(x[k + 1] - x[k]) / (np.linalg.norm(x[k]) + 1) <= tolerance
        and abs(H[k + 1] - H[k]) / (abs(H[k]) + 1) <= tolerance
        and abs(F[k + 1] - F[k]) / (abs(F[k]) + 1) <= tolerance
    )
    assert 5 < k < 300
    result = solve(rounds=400, tolerance=tolerance)
    assert result.stopped == "tolerance"
    assert result.rounds == k + 1 == len(result.history["round"])
    np.testing.assert_allclose(result.x, x[k + 1], rtol=1e-9, atol=1e-12)
    assert result.inner == pytest.approx(F[k + 1], rel=1e-9)
    # Also where the rule is met at the last round allowed, which only the closing evaluation can tell.
    assert solve(rounds=k + 1, tolerance=tolerance).stopped == "tolerance"
    assert solve(rounds=k, tolerance=tolerance).stopped == "rounds"


def test_ending_by_the_number_of_rounds_says_so() -> None:
    """Without a tolerance every run ends by its rounds."""
    result = solve()
    assert (result.rounds, result.stopped) == (12, "rounds")


SCRIPT = """
import sys, hashlib, numpy as np, scipy.sparse as sp, fism
rng = np.random.default_rng(0)
digest = hashlib.sha256()
for make in (np.array, sp.csr_array):
    for constraint in (fism.Box(-1, 1), fism.Ball(1.0), fism.Simplex(), fism.L1Ball(2.0)):
        problem = fism.Problem("logistic", constraint, fism.ElasticNet(0.5, 1.0))
        shards = [(make(rng.normal(size=(30, 700))), np.where(rng.random(30) < 0.5, -1, 1)) for _ in range(3)]
        result = fism.solve(problem, shards, steps=fism.PowerSteps(0.1, 0.7, 1.0, 0.2), rounds=5)
        for part in (result.x, result.weighted, result.average, result.history["inner"], result.history["outer"]):
            digest.update(part.tobytes())
sys.stdout.write(digest.hexdigest())
"""


def test_same_call_gives_the_same_bits() -> None:
    """In one process and in another."""
    first, second = (
        subprocess.run([sys.executable, "-c", SCRIPT], check=True, capture_output=True, text=True).stdout
        for _ in range(2)
    )
    assert first == second
    assert len(first) == len(hashlib.sha256().hexdigest())
    once, again = solve(), solve()
    assert once.x.tobytes() == again.x.tobytes()
    assert once.average.tobytes() == again.average.tobytes()


def test_start_is_not_changed_and_the_answer_is_ones_own() -> None:
    """A caller's vector stays as it was; the result may be written to."""
    start = GIVEN.start.copy()
    result = solve(start=start)
    np.testing.assert_array_equal(start, GIVEN.start)
    result.x[0] = 7.0
    assert solve().x[0] != 7.0


def test_none_starts_at_zero_projected() -> None:
    """On the simplex that is the middle."""
    problem = fism.Problem("absolute", fism.Simplex(), fism.SquaredNorm())
    result = fism.solve(problem, [([[0.0, 0.0]], [0.0])], steps=STEPS, rounds=1)
    np.testing.assert_array_equal(result.average, [0.5, 0.5])
