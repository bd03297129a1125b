"""What may reach the mean."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

import fism
from fism_common.data.moments import Moments
from fism_common.exchange import Reply
from fism_common.vectors import Vector
from fism_server.federation.acceptance import fault, moments_fault, slack

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
    assert reason in str(fault(Reply(np.array(x), inner), BOX, SLACK))


def test_rounding_is_forgiven() -> None:
    """A pass may end a little outside X."""
    assert fault(Reply(np.array([1.0 + 1e-10, 0.0]), 1.0), BOX, SLACK) is None


def test_sum_of_virtual_clients_is_checked_by_its_mean() -> None:
    """Three points of X add up to a point outside it."""
    assert fault(Reply(np.array([2.5, -3.0]), 1.0, shards=3), BOX, SLACK) is None
    assert fault(Reply(np.array([3.5, -3.0]), 1.0, shards=3), BOX, SLACK) is not None


GOOD = Moments(np.array([3.0, 0.0]), np.array([1e9, 0.0]), np.array([0.1, 0.0]), np.array([2.0, 0.0]))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({}, None),
        ({"mean": np.array([np.nan, 0.0])}, "not finite"),
        ({"mean": np.array([1e300, 0.0])}, "beyond 1e\\+140"),
        ({"count": np.array([2.0**48, 0.0])}, "cannot be"),
        ({"count": np.array([2.5, 0.0])}, "cannot be"),
        ({"count": np.array([-1.0, 0.0])}, "cannot be"),
        ({"squares": np.array([-1.0, 0.0])}, "cannot be"),
        ({"squares": np.array([1.0, 1.0])}, "also of columns that are not standardised"),
    ],
)
def test_moments_that_would_spoil_the_others_are_refused(change: dict[str, Vector], reason: str | None) -> None:
    """Three rows, of which the first column is standardised."""
    found = moments_fault(replace(GOOD, **change), rows=3, numeric=[True, False])
    assert found is None if reason is None else re.search(reason, found or "")
