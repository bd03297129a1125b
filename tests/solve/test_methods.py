"""The methods to compare FISM with."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

import fism

from .. import literal
from ..literal import Vector
from .cases import LOSSES, OUTERS, SETS, data
from .references import least_squares

STEPS = fism.PowerSteps(gamma=0.4, a=0.7, lam=0.8, b=0.2)
# Not a simplex with a 1-norm, which is constant there: entries then return to 0 but for rounding, and jump off again.
IRIG_CASES = [
    names
    for names in product(["logistic", "absolute", "ball-distance"], ["box", "ball", "simplex"], OUTERS)
    if names[1] != "simplex" or OUTERS[names[2]][0].smooth
]
SMOOTH = fism.Problem("squared", fism.Box(-2, 2), fism.SquaredNorm())


def solve(problem: fism.Problem, shards: Any, method: str, **options: Any) -> fism.Result:  # noqa: ANN401
    """Return the result of four rounds, unless told otherwise."""
    defaults: dict[str, Any] = {"steps": STEPS, "rounds": 4, "method": method}
    return fism.solve(problem, shards, **defaults | options)


@pytest.mark.parametrize("storage", [np.array, csr_array], ids=["dense", "CSR"])
@pytest.mark.parametrize(
    ("case", "names"),
    list(enumerate(IRIG_CASES)),
    ids=lambda value: "-".join(value) if isinstance(value, tuple) else "",
)
@pytest.mark.filterwarnings("ignore::fism.StepWarning")
def test_irig_is_its_literal_transcription(case: int, names: tuple[str, str, str], storage: Any) -> None:  # noqa: ANN401
    """One pass over all rows in client order, a fresh subgradient of H at every row."""
    loss, region, preference = names
    constraint, project = SETS[region]
    outer, subgradient = OUTERS[preference]
    given = data(case, loss, clients=1 + case % 4)
    start = project(given.start)
    shards = [(storage(rows), labels) for rows, labels in given.shards]
    result = solve(fism.Problem(LOSSES[loss], constraint, outer), shards, "ir-ig", start=start)
    df = literal.SUBGRADIENTS[loss]
    expected = literal.irig(given.shards, df, project, subgradient, start, STEPS.gamma, STEPS.lam, 4)
    np.testing.assert_allclose(result.x, expected[-1], rtol=1e-10, atol=1e-12)
    inner = [literal.inner(given.shards, literal.VALUES[loss], x) for x in expected]
    np.testing.assert_allclose([*result.history["inner"], result.inner], inner, rtol=1e-10)


@pytest.mark.parametrize(("method", "weight"), [("tikhonov", 0.8), ("incremental", 0.0)])
def test_fixed_weight_methods_are_fism_with_that_weight(method: str, weight: float) -> None:
    """Tikhonov keeps lambda at lam(1), incremental at 0."""
    given = data(1, "squared", clients=3)
    constraint, project = SETS["box"]
    result = solve(fism.Problem("squared", constraint, fism.SquaredNorm()), given.shards, method)
    expected = literal.fism(
        given.shards,
        literal.SUBGRADIENTS["squared"],
        project,
        lambda x: x,
        np.zeros(6),
        STEPS.gamma,
        lambda _: weight,
        4,
    )
    np.testing.assert_allclose(result.x, expected[-1], rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("storage", [np.array, csr_array], ids=["dense", "CSR"])
def test_r_fedavg_is_its_literal_transcription(storage: Any) -> None:  # noqa: ANN401
    """Each client takes local steps on F_i + (lambda / S) H; the mean is uniform."""
    given = data(2, "logistic", clients=3)
    S, local_steps, x = 3, 4, np.zeros(6)

    def gradient(rows: Vector, labels: Vector, y: Vector) -> Vector:
        df = literal.SUBGRADIENTS["logistic"]
        return sum((df(a, b, y) for a, b in zip(rows, labels, strict=True)), np.zeros(6))

    for k in range(1, 5):
        replies = []
        for rows, labels in given.shards:
            y = x
            for _ in range(local_steps):
                y = np.clip(y - STEPS.gamma(k) / local_steps * (gradient(rows, labels, y) + 0.8 / S * y), -2, 2)
            replies.append(y)
        x = np.mean(replies, axis=0)
    problem = fism.Problem("logistic", fism.Box(-2, 2), fism.SquaredNorm())
    shards = [(storage(rows), labels) for rows, labels in given.shards]
    result = solve(problem, shards, "r-fedavg", local_steps=local_steps)
    np.testing.assert_allclose(result.x, x, rtol=1e-10, atol=1e-13)


def test_explicit_descent_goes_down_and_finds_the_solution() -> None:
    """Armijo's rule holds at every step, whatever gamma is, and H selects."""
    problem = least_squares()
    result = solve(
        problem.problem, problem.shards, "explicit-descent", steps=fism.PowerSteps(1e3, 0.6, 1.0, 0.35), rounds=2000
    )
    merit = result.history["inner"] + result.history["lam"] * result.history["outer"]
    assert (np.diff(merit) <= 1e-9).all()
    assert np.linalg.norm(result.x - problem.solution) < 0.02


@pytest.mark.parametrize(
    ("method", "a_round"),
    [
        ("fism", lambda m, _: m + 1),
        ("ir-ig", lambda m, _: 2 * m),
        ("tikhonov", lambda m, _: m + 1),
        ("explicit-descent", lambda m, _: m + 1),
        ("r-fedavg", lambda m, S: 5 * (m + S)),
    ],
    ids=["fism", "ir-ig", "tikhonov", "explicit-descent", "r-fedavg"],
)
def test_subgradients_are_counted(method: str, a_round: Any) -> None:  # noqa: ANN401
    """FISM takes m + 1 subgradients a round, IR-IG 2m."""
    given = data(5, "squared", clients=3)
    m = sum(len(labels) for _, labels in given.shards)
    assert solve(SMOOTH, given.shards, method, rounds=7).subgradients == 7 * a_round(m, 3)


def test_fism_takes_as_many_subgradients_of_the_outer_objective_as_it_says() -> None:
    """One a round for FISM, m for IR-IG: counted where they are taken, not only by formula."""

    class Counting(fism.OuterObjective):
        modulus = 1.0
        calls = 0

        def value(self, x: Vector) -> float:
            return float(x @ x) / 2

        def subgradient(self, x: Vector) -> Vector:
            self.calls += 1
            return x.copy()

    given = data(6, "squared", clients=2)
    m = sum(len(labels) for _, labels in given.shards)
    federated, incremental = Counting(), Counting()
    solve(fism.Problem("squared", fism.Box(-2, 2), federated), given.shards, "fism", rounds=5)
    solve(fism.Problem("squared", fism.Box(-2, 2), incremental), given.shards, "ir-ig", rounds=5)
    assert federated.calls == 5
    assert incremental.calls == 5 * m


@pytest.mark.parametrize("method", ["explicit-descent", "r-fedavg"])
@pytest.mark.parametrize(
    ("problem", "culprit"),
    [
        (fism.Problem("absolute", fism.Box(-2, 2), fism.SquaredNorm()), "loss"),
        (fism.Problem("squared", fism.Box(-2, 2), fism.ElasticNet(1.0, 1.0)), "outer objective"),
    ],
    ids=["loss", "outer"],
)
def test_smooth_method_refuses_a_nonsmooth_problem(method: str, problem: fism.Problem, culprit: str) -> None:
    """The refusal names what is not smooth."""
    with pytest.raises(fism.MethodError, match=f"{method}.*smooth {culprit}"):
        solve(problem, [([[1.0]], [1.0])], method)


@pytest.mark.parametrize("storage", [np.array, csr_array], ids=["dense", "CSR"])
def test_explicit_descent_is_its_literal_transcription(storage: Any) -> None:  # noqa: ANN401
    """A projected step on F + lambda_k H, halved from gamma_k until Armijo's rule holds; bounds are active."""
    given = data(8, "squared", clients=3)
    rows, labels = (np.concatenate(parts) for parts in zip(*given.shards, strict=True))
    steps, x = fism.PowerSteps(gamma=3.0, a=0.7, lam=0.8, b=0.2), np.zeros(6)

    def merit(y: Vector, lam: float) -> float:
        return float(np.sum((rows @ y - labels) ** 2) / 2 + lam * (y @ y) / 2)

    halvings = 0
    for k in range(1, 7):
        lam, alpha = steps.lam(k), steps.gamma(k)
        slope = rows.T @ (rows @ x - labels) + lam * x
        while True:
            y = np.clip(x - alpha * slope, -0.1, 0.1)
            if merit(y, lam) <= merit(x, lam) - 1e-4 * slope @ (x - y):
                break
            alpha, halvings = alpha / 2, halvings + 1
        x = y
    assert halvings > 3
    assert (np.abs(x) == 0.1).any()
    problem = fism.Problem("squared", fism.Box(-0.1, 0.1), fism.SquaredNorm())
    shards = [(storage(table), b) for table, b in given.shards]
    result = solve(problem, shards, "explicit-descent", steps=steps, rounds=6)
    np.testing.assert_allclose(result.x, x, rtol=1e-10, atol=1e-13)


def test_explicit_descent_goes_down_from_absurd_steps() -> None:
    """However often they must be halved."""
    problem = fism.Problem("squared", fism.Box(-10, 10), fism.SquaredNorm())
    steps = fism.PowerSteps(1e14, 0.7, 0.8, 0.2)
    result = solve(problem, [([[1e4, 0.0], [0.0, 1e4]], [1e4, -1e4])], "explicit-descent", steps=steps, rounds=3)
    assert result.inner < 1e-3 * result.history["inner"][0]


class TenTimes(fism.SquaredNorm):
    """A built-in objective with formulas of its own."""

    def value(self, x: Vector) -> float:
        return 10 * super().value(x)

    def subgradient(self, x: Vector) -> Vector:
        return 10 * super().subgradient(x)


def test_irig_takes_the_subgradient_that_a_subclass_has() -> None:
    """And not the compiled one of the class above it."""
    given = data(9, "squared", clients=2)
    box = fism.Box(-2, 2)
    own = solve(fism.Problem("squared", box, TenTimes()), given.shards, "ir-ig")
    same = solve(fism.Problem("squared", box, fism.ElasticNet(0.0, 10.0)), given.shards, "ir-ig")
    np.testing.assert_allclose(own.x, same.x, rtol=1e-12)
