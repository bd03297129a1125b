"""What may reach the mean."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

import fism
from fism_common.data.moments import ColumnMoments
from fism_common.exchange import Evaluation, PassAnswer, ProbeAnswer, SolutionAnswer
from fism_common.vectors import Vector
from fism_server.federation.acceptance import answer_fault, evaluation_fault, moments_fault, point_fault

BOX = fism.Box(-1.0, 1.0)
SLACK = BOX.slack(2)
POINTS = np.zeros(2, np.int64)


@pytest.mark.parametrize(
    ("inner", "reason"),
    [
        ((np.nan,), "F_i is nan"),
        ((1.0, np.inf), "F_i is inf"),
        ((1e301,), "F_i is 1e"),
        ((), "0 parts"),
        ((1.0,) * 41, "41 parts"),
    ],
)
def test_value_that_cannot_be_added_is_refused(inner: tuple[float, ...], reason: str) -> None:
    """One that is not finite, or too large, or cut into too many parts."""
    assert reason in str(answer_fault(PassAnswer(POINTS, inner)))


def test_point_outside_the_set_is_refused() -> None:
    """But a pass may end a little outside X, because of rounding."""
    assert point_fault(np.array([1.1, 0.0]), 1, BOX, SLACK) == "x is outside X"
    assert point_fault(np.array([1.0 + 1e-10, 0.0]), 1, BOX, SLACK) is None


def test_sum_of_virtual_clients_is_checked_by_its_mean() -> None:
    """Three points of X add up to a point outside it."""
    assert point_fault(np.array([2.5, -3.0]), 3, BOX, SLACK) is None
    assert point_fault(np.array([3.5, -3.0]), 3, BOX, SLACK) is not None


@pytest.mark.parametrize("entry", [np.nan, np.inf, 1e301])
def test_subgradient_that_is_not_finite_is_refused(entry: float) -> None:
    """Or so large that a sum over clients could overflow."""
    assert answer_fault(ProbeAnswer((1.0,), np.array([0.0, entry]))) is not None
    assert answer_fault(ProbeAnswer((1.0,), np.array([0.0, 5.0]))) is None


def test_value_at_the_solution_is_checked() -> None:
    """As every F_i is."""
    assert answer_fault(SolutionAnswer((np.inf,))) == "F_i is inf"


@pytest.mark.parametrize(
    ("evaluation", "usable"),
    [
        (None, True),
        (Evaluation(3, 3, 0.5), True),
        (Evaluation(3, None, 0.5), True),
        (Evaluation(3, 4, 0.5), False),
        (Evaluation(0, 0, 0.5), False),
        (Evaluation(2**49, 0, 0.5), False),
        (Evaluation(3, 3, np.nan), False),
    ],
)
def test_evaluation_must_be_possible(evaluation: Evaluation | None, usable: bool) -> None:  # noqa: FBT001
    """Counts that fit each other, a loss that is finite."""
    assert (evaluation_fault(evaluation) is None) is usable


GOOD = ColumnMoments(np.array([3.0, 0.0]), np.array([1e9, 0.0]), np.array([0.1, 0.0]), np.array([2.0, 0.0]))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({}, None),
        ({"mean": np.array([np.nan, 0.0])}, "not finite"),
        ({"mean": np.array([1e300, 0.0])}, "beyond 1e\\+140"),
        ({"count": np.array([2.0**48, 0.0])}, "impossible counts or squares"),
        ({"count": np.array([2.5, 0.0])}, "impossible counts or squares"),
        ({"count": np.array([-1.0, 0.0])}, "impossible counts or squares"),
        ({"squares": np.array([-1.0, 0.0])}, "impossible counts or squares"),
        ({"squares": np.array([1.0, 1.0])}, "include columns that are not standardised"),
    ],
)
def test_moments_that_would_spoil_the_others_are_refused(change: dict[str, Vector], reason: str | None) -> None:
    """Three rows, of which the first column is standardised."""
    found = moments_fault(replace(GOOD, **change), rows=3, numeric=np.array([True, False]))
    assert found is None if reason is None else re.search(reason, found or "")
