"""The check that stands between a client's reply and the mean."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from fism_common.exchange import Reply
    from fism_common.sets import ConstraintSet

_ROUNDING = 1e-9


def slack(constraint: ConstraintSet, n: int) -> float:
    """Return how far outside X rounding may bring a pass."""
    return _ROUNDING * (1 + constraint.diameter(n))


def fault(reply: Reply, constraint: ConstraintSet, slack: float) -> str | None:
    """Return why the reply cannot be used: numbers that are not finite, a point outside X; None if it can."""
    if not math.isfinite(reply.inner):
        return f"F_i is {reply.inner}"
    point = reply.x if reply.shards == 1 else reply.x / reply.shards
    if constraint.contains(point, slack):  # what is not finite is in no set
        return None
    return "x is outside X" if np.isfinite(reply.x).all() else "x has entries that are not finite"
