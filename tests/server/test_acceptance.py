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
from fism_server.federation.acceptance import answer_fault, evaluation_fault, moments_fault, slack

BOX = fism.Box(-1.0, 1.0)
SLACK = slack(BOX, 2)


@pytest.mark.parametrize(
    ("x", "inner", "reason"),
    [
        ([np.nan, 0.0], 1.0, "not finite"),
        ([np.inf, -np.inf], 1.0, "not finite"),
        ([0.0, 0.0], np.nan, "F_i is nan"),
        ([1.1, 0.0], 1.0, "outside X"),
    ],
    ids=["NaN", "infinities that cancel", "F", "outside"],
)
def test_reply_that_cannot_be_used_is_told_why(x: list[float], inner: float, reason: str) -> None:
    """Numbers that are not finite, or a point outside X."""
    assert reason in str(answer_fault(PassAnswer(np.array(x), inner), 1, BOX, SLACK))


def test_rounding_is_forgiven() -> None:
    """A pass may end a little outside X."""
    assert answer_fault(PassAnswer(np.array([1.0 + 1e-10, 0.0]), 1.0), 1, BOX, SLACK) is None


def test_sum_of_virtual_clients_is_checked_by_its_mean() -> None:
    """Three points of X add up to a point outside it."""
    assert answer_fault(PassAnswer(np.array([2.5, -3.0]), 1.0), 3, BOX, SLACK) is None
    assert answer_fault(PassAnswer(np.array([3.5, -3.0]), 1.0), 3, BOX, SLACK) is not None


@pytest.mark.parametrize("entry", [np.nan, np.inf, 1e301])
def test_subgradient_that_is_not_finite_is_refused(entry: float) -> None:
    """Or so large that a sum over clients could overflow."""
    assert answer_fault(ProbeAnswer(1.0, np.array([0.0, entry])), 1, BOX, SLACK) is not None
    assert answer_fault(ProbeAnswer(1.0, np.array([0.0, 5.0])), 1, BOX, SLACK) is None


def test_value_at_the_solution_is_checked() -> None:
    """As every F_i is."""
    assert answer_fault(SolutionAnswer(np.inf), 1, BOX, SLACK) == "F_i is inf"


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
    found = moments_fault(replace(GOOD, **change), rows=3, numeric=[True, False])
    assert found is None if reason is None else re.search(reason, found or "")
