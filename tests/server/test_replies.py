"""What may reach the mean."""

from __future__ import annotations

import numpy as np
import pytest

import fism
from fism_common.exchange import Reply
from fism_server.replies import fault, slack

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
