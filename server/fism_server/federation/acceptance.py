"""The check that stands between a client's answer and the mean."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fism_common.data.moments import Moments
    from fism_common.exchange import Evaluation, Reply
    from fism_common.problem.sets import ConstraintSet

_ROUNDING = 1e-9
_LARGEST = 1e300
_LARGEST_MOMENT = 1e140
"""Beyond it a sum over clients may overflow."""
MOST_ROWS = 2**48
"""More rows than a client can have: what counts them must add up in 64 bits."""


def slack(constraint: ConstraintSet, n: int) -> float:
    """Return how far outside X rounding may bring a pass."""
    return _ROUNDING * (1 + constraint.diameter(n))


def fault(reply: Reply, constraint: ConstraintSet, slack: float) -> str | None:
    """Return why the reply cannot be used: numbers that are not finite, a point outside X; None if it can."""
    if not _usable(reply.inner):
        return f"F_i is {reply.inner}"
    point = reply.x if reply.shards == 1 else reply.x / reply.shards
    if constraint.contains(point, slack):  # what is not finite is in no set
        return None
    return "x is outside X" if np.isfinite(reply.x).all() else "x has entries that are not finite"


def closing_fault(inner: float) -> str | None:
    """Return why F_i at the answer cannot be used; None if it can."""
    return None if _usable(inner) else f"F_i is {inner}"


def evaluation_fault(evaluation: Evaluation | None) -> str | None:
    """Return why an evaluation cannot be used; None if it can, or if there is none."""
    if evaluation is None:
        return None
    if not _usable(evaluation.loss):
        return f"the loss on rows held out is {evaluation.loss}"
    if not 0 < evaluation.rows <= MOST_ROWS or (evaluation.right or 0) > evaluation.rows:
        return f"{evaluation.right} of {evaluation.rows} rows held out are said to be right"
    return None


def moments_fault(moments: Moments, rows: int, numeric: Sequence[bool]) -> str | None:
    """Return why the moments of a client with so many rows cannot be used; None if they can.

    ``numeric`` says which columns are standardised: of the others nothing may be said.
    """
    parts = [moments.count, moments.mean, moments.rest, moments.squares]
    if not all((np.abs(part) <= _LARGEST_MOMENT).all() for part in parts):  # which NaN is not either
        return f"its moments have entries that are not finite, or beyond {_LARGEST_MOMENT:g}"
    if any(part[~np.array(numeric)].any() for part in parts):
        return "its moments are also of columns that are not standardised"
    counts = moments.count
    if (counts < 0).any() or (counts > rows).any() or (counts % 1 != 0).any() or (moments.squares < 0).any():
        return "its moments have counts or squares that cannot be"
    return None


def _usable(value: float) -> bool:
    """Whether a client's number can be added to those of others."""
    return math.isfinite(value) and abs(value) <= _LARGEST
