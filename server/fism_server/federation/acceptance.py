"""The checks that an answer must pass before it is used."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from fism_common.exchange import ProbeAnswer
from fism_common.sums.doubles import MOST_PARTS, rounded

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fism_common.data.moments import ColumnMoments
    from fism_common.exchange import Evaluation, PassAnswer, SolutionAnswer
    from fism_common.problem.sets import ConstraintSet
    from fism_common.vectors import Vector

_LARGEST = 1e300
_LARGEST_MOMENT = 1e140
"""Beyond it a sum over clients may overflow."""
MOST_ROWS = 2**48
"""More rows than a client can have: row counts must add up in 64 bits."""


def answer_fault(answer: PassAnswer | ProbeAnswer | SolutionAnswer) -> str | None:
    """Return why the numbers in an answer cannot be used; None if they can. A point is for ``point_fault``."""
    if not 0 < len(answer.inner) <= MOST_PARTS:
        return f"F_i has {len(answer.inner)} parts, but must have 1 to {MOST_PARTS}"
    if not all(map(_usable, answer.inner)):
        return f"F_i is {rounded(answer.inner)}"
    if isinstance(answer, ProbeAnswer) and not (np.abs(answer.subgradient) <= _LARGEST).all():  # NaN fails this too
        return "the subgradient has entries that are not finite"
    return evaluation_fault(answer.held_out)


def point_fault(points: Vector, virtual_clients: int, constraint: ConstraintSet, slack: float) -> str | None:
    """Return why the sum of the points of a client's virtual clients cannot be used: their mean is not in X."""
    mean = points if virtual_clients == 1 else points / virtual_clients
    return None if constraint.contains(mean, slack) else "x is outside X"


def evaluation_fault(evaluation: Evaluation | None) -> str | None:
    """Return why an evaluation cannot be used; None if it can, or if there is none."""
    if evaluation is None:
        return None
    if not _usable(evaluation.loss):
        return f"the loss on held-out rows is {evaluation.loss}"
    if not 0 < evaluation.rows <= MOST_ROWS or (evaluation.right or 0) > evaluation.rows:
        return f"it claims {evaluation.right} of {evaluation.rows} held-out rows as correct"
    return None


def moments_fault(moments: ColumnMoments, rows: int, numeric: NDArray[np.bool_]) -> str | None:
    """Return why the moments of a client with ``rows`` rows cannot be used; None if they can.

    ``numeric`` says which columns are standardised: the moments of all others must be 0.
    """
    parts = [moments.count, moments.mean, moments.rest, moments.squares]
    if not all((np.abs(part) <= _LARGEST_MOMENT).all() for part in parts):  # NaN fails this too
        return f"its moments have entries that are not finite, or beyond {_LARGEST_MOMENT:g}"
    if any(part[~numeric].any() for part in parts):
        return "its moments include columns that are not standardised"
    counts = moments.count
    if (counts < 0).any() or (counts > rows).any() or (counts % 1 != 0).any() or (moments.squares < 0).any():
        return "its moments have impossible counts or squares"
    return None


def _usable(value: float) -> bool:
    """Whether a client's number can be added to those of others."""
    return math.isfinite(value) and abs(value) <= _LARGEST
