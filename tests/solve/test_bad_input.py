"""What cannot be used is refused before the first round, with what, where, and what to do."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.sparse import coo_array, csr_array

import fism

OK = ([[1.0, 2.0], [3.0, -1.0]], [1.0, -1.0])
STEPS = fism.PowerSteps(gamma=0.4, a=0.7, lam=0.8, b=0.2)
NAN_CSR = csr_array(([1.0, math.nan], [0, 1], [0, 1, 2]), shape=(2, 2))


class Watched(fism.OuterObjective):
    """An outer objective that fails the test if a round begins."""

    modulus = 1.0

    def value(self, x: Any) -> float:  # noqa: ANN401
        return float(x @ x) / 2

    def subgradient(self, x: Any) -> Any:  # noqa: ANN401
        pytest.fail(f"a round began at {x}")


def solve(*clients: Any, **options: Any) -> fism.Result:  # noqa: ANN401
    """Run one round on a problem with classes, unless told otherwise."""
    problem = options.pop("problem", None) or fism.Problem(
        options.pop("loss", "logistic"), options.pop("constraint", fism.Box(-1, 1)), options.pop("outer", Watched())
    )
    defaults: dict[str, Any] = {"steps": STEPS, "rounds": 1}
    return fism.solve(problem, list(clients), **defaults | options)


DATA: dict[str, tuple[list[Any], str]] = {
    "NaN in a dense row": ([([[1.0, 2.0], [3.0, math.nan]], [1, -1])], r"clients\[0\]: row 1, column 1 is nan"),
    "infinity in a dense row": ([OK, ([[math.inf, 2.0]], [1])], r"clients\[1\]: row 0, column 0 is inf"),
    "NaN in a sparse row": ([OK, (NAN_CSR, [1, -1])], r"clients\[1\]: row 1, column 1 is nan"),
    "NaN in labels": ([([[1.0], [2.0]], [1, math.nan])], r"clients\[0\]: the label of row 1 is nan"),
    "rows that are a vector": ([([1.0, 2.0], [1, 1])], r"clients\[0\]: rows must be of shape \(rows, columns\)"),
    "labels that are a table": ([([[1.0]], [[1.0]])], r"clients\[0\]: labels must be of shape \(rows,\)"),
    "too few labels": ([([[1.0], [2.0]], [1])], r"clients\[0\] has 2 rows but 1 labels"),
    "no rows": ([OK, (np.zeros((0, 2)), [])], r"clients\[1\] is empty: 0 rows"),
    "no rows, sparse": ([(csr_array((0, 3)), [])], r"clients\[0\] is empty: 0 rows"),
    "no columns": ([(np.zeros((2, 0)), [1, 1])], r"clients\[0\] is empty: 2 rows, 0 columns"),
    "no clients": ([], "there are no clients"),
    "clients of different widths": ([OK, ([[1.0]], [1])], r"clients\[1\] has 1 columns, but clients\[0\] has 2"),
    "labels 0 and 1": ([OK, ([[1.0, 1.0]], [0])], r"clients\[1\]: the label of row 0 is 0.*needs -1 or 1.*np\.where"),
    "text": ([([["a", "b"]], [1])], r"clients\[0\]: rows must be real numbers"),
    "complex": ([(np.array([[1j, 2]]), [1])], r"clients\[0\]: rows must be real numbers"),
    "ragged": ([([[1.0], [1.0, 2.0]], [1, 1])], r"clients\[0\]: rows must be real numbers"),
    "sparse column out of range": (
        [(csr_array(([1.0], [5], [0, 1]), shape=(1, 2)), [1])],
        r"clients\[0\]: the sparse rows are broken",
    ),
    # Early versions of scipy make one row of it.
    "sparse rows of one dimension": (
        [(coo_array([1.0, 2.0]), [1, 1])],
        r"clients\[0\]: rows must be of shape|clients\[0\] has 1 rows but 2 labels",
    ),
    "masked": ([(np.ma.masked_equal([[1.0, 9.0]], 9.0), [1])], r"clients\[0\]: rows must not be masked"),
    "dates": ([(np.array([["2026-01-01", "NaT"]], "datetime64[D]"), [1])], r"real numbers, not datetime64"),
    "numbers as text": ([([["1", "2"]], [1])], r"clients\[0\]: rows must be real numbers, not <U1"),
    "integers beyond floats": ([([[10**400]], [1])], r"clients\[0\]: rows must be real numbers"),
    "not a pair": ([np.zeros(3)], r"clients\[0\] must be a pair"),
}


@pytest.mark.parametrize("case", DATA)
def test_bad_data_is_refused(case: str) -> None:
    """The error names client, row and column."""
    clients, message = DATA[case]
    with pytest.raises(fism.DataError, match=message):
        solve(*clients)


def test_negative_radius_is_refused() -> None:
    """Ball-distance has radii for labels."""
    with pytest.raises(fism.DataError, match=r"clients\[0\]: the radius \(label\) of row 1 is -0.5"):
        solve(([[1.0], [2.0]], [0.5, -0.5]), loss="ball-distance")


PROBLEMS: dict[str, tuple[Any, str]] = {
    "inverted box": (lambda: fism.Box(1, -1), "box is empty: at entry 0, lo = 1 is above hi = -1"),
    "box inverted in one entry": (lambda: fism.Box([0, 0, 2], 1), "entry 2, lo = 2 is above hi = 1"),
    "empty box": (lambda: fism.Box([], []), "lo must not be empty"),
    "infinite box": (lambda: fism.Box(-math.inf, 1), "lo must be finite"),
    "box of two lengths": (lambda: fism.Box([0, 0], [1, 1, 1]), "lo has 2 entries and its hi 3"),
    "negative radius of a ball": (lambda: fism.Ball(-1.0), "radius must be above 0"),
    "NaN radius": (lambda: fism.L1Ball(math.nan), "radius must be finite"),
    "empty simplex": (lambda: fism.Simplex(0.0), "total must be above 0"),
    "l2 of 0": (lambda: fism.ElasticNet(1.0, 0.0), "l2 .*strongly convex.* must be above 0"),
    "negative l1": (lambda: fism.ElasticNet(-1.0, 1.0), "l1 must not be negative"),
    "singular Q": (lambda: fism.Quadratic([[1, 1], [1, 1]], [0, 0]), "lowest eigenvalue.*strongly convex"),
    "asymmetric Q": (lambda: fism.Quadratic([[2, 1], [0, 2]], [0, 0]), "symmetric"),
    "Q of the wrong shape": (lambda: fism.Quadratic([[2.0]], [0, 0]), r"shape \(2, 2\)"),
    "overlapping groups": (lambda: fism.GroupLasso([[0, 1], [1]], 1.0, 1.0), "share a column"),
    "empty group": (lambda: fism.GroupLasso([[0], []], 1.0, 1.0), "none of them empty"),
    "one weight too many": (lambda: fism.GroupLasso([[0], [1]], [1.0, 1.0, 1.0], 1.0), "one weight per group"),
    "ragged box": (lambda: fism.Box([[0], [0, 0]], 1), "lo must be real numbers"),
    "text in a box": (lambda: fism.Box("0", 1), "lo must be real numbers"),
    "complex anchor": (lambda: fism.SquaredDistance([1j]), "anchor must be real numbers, not complex"),
    "fractions as groups": (lambda: fism.GroupLasso([[0.9, 1.9]], 1.0, 1.0), "lists of column numbers"),  # type: ignore[list-item]
    "truths as groups": (lambda: fism.GroupLasso([[True, False]], 1.0, 1.0), "lists of column numbers"),
    "a number as groups": (lambda: fism.GroupLasso(3, 1.0, 1.0), "lists of column numbers"),  # type: ignore[arg-type]
    "text as Q": (lambda: fism.Quadratic([["a"]], [0]), "Q must be real numbers"),
    "NaN anchor": (lambda: fism.SquaredDistance([0.0, math.nan]), "anchor must be finite, but entry 1 is nan"),
    "unknown loss": (
        lambda: fism.Problem("logit", fism.Box(0, 1), fism.SquaredNorm()),
        "no loss 'logit'.*logistic",
    ),
    "no loss": (lambda: fism.Problem(3, fism.Box(0, 1), fism.SquaredNorm()), "loss must be a name"),  # type: ignore[arg-type]
    "no set": (lambda: fism.Problem("hinge", (0, 1), fism.SquaredNorm()), "constraint must be"),  # type: ignore[arg-type]
    "no outer": (lambda: fism.Problem("hinge", fism.Box(0, 1), "l2"), "outer must be"),  # type: ignore[arg-type]
    "delta of 0": (lambda: fism.Huber(0.0), "delta must be above 0"),
    "tau of 1": (lambda: fism.Quantile(1.0), "tau must be below 1"),
    "taken name": (lambda: fism.CustomLoss("hinge", max, max), "taken by a built-in loss"),
    "box of the wrong length": (lambda: solve(OK, constraint=fism.Box([0, 0, 0], 1)), "Box has 3 entries.*2 columns"),
    "center of the wrong length": (
        lambda: solve(OK, constraint=fism.Ball(1.0, [0.0])),
        "Ball has 1 entries.*2 columns",
    ),
    "anchor of the wrong length": (
        lambda: solve(OK, outer=fism.SquaredDistance([0.0])),
        "1 columns, but the rows have 2",
    ),
    "group beyond the columns": (lambda: solve(OK, outer=fism.GroupLasso([[5]], 1.0, 1.0)), "column 5.*2 columns"),
    "start of the wrong length": (lambda: solve(OK, start=[0.0]), "start has 1 entries"),
    "NaN start": (lambda: solve(OK, start=[0.0, math.nan]), "start must be finite"),
    "not a problem": (lambda: solve(OK, problem="logistic"), "problem must be a fism.Problem"),
}


@pytest.mark.parametrize("case", PROBLEMS)
def test_bad_problem_is_refused(case: str) -> None:
    """The error says which parameter, and what it must be."""
    make, message = PROBLEMS[case]
    with pytest.raises(fism.ProblemError, match=message):
        make()


class NotStrong(Watched):
    """An H that is convex only."""

    modulus = 0.0


def test_own_outer_objective_that_is_not_strongly_convex_is_refused() -> None:
    """With the reason: it would not pick one solution."""
    with pytest.raises(fism.ProblemError, match=r"NotStrong has modulus 0.*does not pick one solution"):
        solve(OK, outer=NotStrong())


STEP_CASES: dict[str, tuple[Any, str]] = {
    "gamma of 0": (lambda: fism.PowerSteps(0, 0.7, 1, 0.2), "gamma must be above 0"),
    "negative lam": (lambda: fism.PowerSteps(1, 0.7, -1, 0.2), "lam must be above 0"),
    "NaN exponent": (lambda: fism.PowerSteps(1, math.nan, 1, 0.2), "exponent a must be finite"),
    "epsilon too large": (lambda: fism.PowerSteps.for_rate(0.5, 1, 1), "epsilon must be below 1/2"),
    "gamma beyond floats": (lambda: fism.PowerSteps(10**400, 0.7, 1, 0.2), "gamma must be real numbers"),
    "text as gamma": (lambda: fism.PowerSteps("1", 0.7, 1, 0.2), "gamma must be a number"),  # type: ignore[arg-type]
    "steps that overflow": (lambda: solve(OK, steps=fism.PowerSteps(1, -1000, 1, 0.2), first_round=9), "round 9"),
    "a class for steps": (lambda: solve(OK, steps=fism.PowerSteps), "steps must be a fism.StepRule"),
    "no rounds": (lambda: solve(OK, rounds=0), "rounds must be at least 1, not 0"),
    "half a round": (lambda: solve(OK, rounds=1.5), "rounds must be a whole number"),
    "round 0": (lambda: solve(OK, first_round=0), "first_round must be at least 1"),
    "tolerance of 0": (lambda: solve(OK, tolerance=0.0), "tolerance must be above 0"),
    "steps that are a number": (lambda: solve(OK, steps=0.1), "steps must be a fism.StepRule"),
    "no local steps": (lambda: solve(OK, local_steps=0), "local_steps must be at least 1"),
}


@pytest.mark.parametrize("case", STEP_CASES)
def test_bad_steps_are_refused(case: str) -> None:
    """Steps, rounds and tolerance."""
    make, message = STEP_CASES[case]
    with pytest.raises(fism.StepError, match=message):
        make()


@pytest.mark.parametrize("clients", [None, 3])
def test_clients_that_are_no_list_are_refused(clients: Any) -> None:  # noqa: ANN401
    """A common slip."""
    with pytest.raises(fism.DataError, match="clients must be a list of pairs"):
        fism.solve(fism.Problem("hinge", fism.Box(0, 1), fism.SquaredNorm()), clients, steps=STEPS, rounds=1)


class Odd(fism.OuterObjective):
    """An outer objective that returns what it is told to."""

    modulus = 1.0

    def __init__(self, value: Any, subgradient: Any) -> None:  # noqa: ANN401
        """Take what to return."""
        self._value, self._subgradient = value, subgradient

    def value(self, x: Any) -> Any:  # noqa: ANN401, ARG002
        return self._value

    def subgradient(self, x: Any) -> Any:  # noqa: ANN401, ARG002
        return self._subgradient


@pytest.mark.parametrize(
    ("value", "subgradient", "message"),
    [
        (1.0, np.zeros(1), r"subgradient of Odd must be of shape \(2,\), not \(1,\)"),
        (1.0, np.zeros(4), r"subgradient of Odd must be of shape \(2,\), not \(4,\)"),
        (1.0, None, "subgradient of Odd must be real numbers"),
        (None, np.zeros(2), "value of Odd must be real numbers"),
        ([1.0], np.zeros(2), "value of Odd must be a number"),
        (1.0, np.array([np.inf, 0.0]), "subgradient of Odd is not finite in round 1"),
        (np.nan, np.zeros(2), "round 1 overflowed .*H = nan"),
    ],
    ids=["short", "long", "nothing", "no value", "a list", "infinite", "NaN"],
)
def test_own_outer_objective_is_held_to_its_shapes(value: Any, subgradient: Any, message: str) -> None:  # noqa: ANN401
    """A wrong one never reaches a kernel."""
    with pytest.raises((fism.ProblemError, fism.NumericalError), match=message):
        solve(OK, outer=Odd(value, subgradient))


class OwnBox(fism.Box):
    """A box that would project otherwise."""


def test_set_that_a_pass_cannot_project_on_is_refused() -> None:
    """A subclass may mean another projection than the compiled one."""
    with pytest.raises(fism.ProblemError, match="OwnBox has no compiled projection"):
        solve(OK, constraint=OwnBox(-1, 1))


def test_value_that_is_not_finite_at_the_answer_is_an_error() -> None:
    """F is finite before the round, and overflows where it leads."""
    problem = fism.Problem("squared", fism.Box(-1e110, 1e110), fism.SquaredNorm())
    with pytest.raises(fism.NumericalError, match="overflowed"):
        fism.solve(problem, [([[1e100]], [1e10])], steps=STEPS, rounds=1)


def test_unknown_method_is_refused_with_the_known_ones() -> None:
    """A misspelt method gets the list."""
    with pytest.raises(fism.MethodError, match=r"no method 'sgd'.*fism, ir-ig, tikhonov"):
        solve(OK, method="sgd")


def test_overflow_is_an_error_and_not_a_result() -> None:
    """Numbers so large that F is not finite end the run with what to do."""
    problem = fism.Problem("squared", fism.Box(-1e200, 1e200), fism.SquaredNorm())
    with pytest.raises(fism.NumericalError, match=r"round 1 overflowed.*scale the columns"):
        fism.solve(problem, [([[1e200]], [0.0])], steps=STEPS, rounds=2, start=[1.0])


def test_every_error_is_ours() -> None:
    """One except clause catches them all, and a ValueError does too."""
    for error in (fism.DataError, fism.ProblemError, fism.StepError, fism.MethodError):
        assert issubclass(error, fism.InputError)
        assert issubclass(error, fism.FismError)
        assert issubclass(error, ValueError)
