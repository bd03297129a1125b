"""The compiled constraint sets: their projections of x, in place."""

import math
from typing import NamedTuple

from numba import njit

from fism_client.kernels.options import EXACT, INLINED
from fism_common.errors import ProblemError
from fism_common.problem.sets import SETS, ConstraintSet
from fism_common.vectors import Vector

_CODES = {kind: code for code, kind in enumerate(SETS)}
BOX, BALL, SIMPLEX = _CODES["box"], _CODES["ball"], _CODES["simplex"]

_SMALLEST_SQUARE = 1e-300


class Region(NamedTuple):
    """A set as an argument of kernels."""

    code: int
    lo: Vector
    """The box's lower bounds, one per column or one for all; the ball's centre."""
    hi: Vector
    """The box's upper bounds, one per column or one for all."""
    radius: float
    """The radius of a ball, the total of a simplex."""


def region_of(constraint: ConstraintSet, n: int) -> Region:
    """Return a set as an argument of kernels; raise ProblemError for one without a compiled projection."""
    if type(constraint) not in SETS.values():  # a subclass may project differently
        raise ProblemError(
            f"{type(constraint).__name__} has no compiled projection; use one of "
            + ", ".join(one.__name__ for one in SETS.values())
        )
    return Region(_CODES[constraint.kind], *constraint.kernel_arguments(n))


@njit(**INLINED)
def clip(value: float, lo: float, hi: float) -> float:
    """Return ``value`` clipped to [lo, hi]. NaN stays NaN: min and max would lose it with their arguments swapped."""
    raised = max(value, lo)
    return min(raised, hi)


@njit(**INLINED)
def project(region: Region, x: Vector) -> None:
    """Replace ``x`` by the nearest point of the region."""
    if region.code == BOX:
        _project_box(region.lo, region.hi, x)
    elif region.code == BALL:
        _project_ball(region.lo, region.radius, x)
    elif region.code == SIMPLEX:
        _project_simplex(region.radius, x)
    else:
        _project_l1_ball(region.radius, x)


@njit(**INLINED)
def _project_box(lo: Vector, hi: Vector, x: Vector) -> None:
    if lo.size == 1:
        for t in range(x.size):
            x[t] = clip(x[t], lo[0], hi[0])
    else:
        for t in range(x.size):
            x[t] = clip(x[t], lo[t], hi[t])


@njit(**INLINED)
def _project_ball(center: Vector, radius: float, x: Vector) -> None:
    square = 0.0
    for t in range(x.size):
        square += (x[t] - center[t]) ** 2
    if not _SMALLEST_SQUARE < square < math.inf:
        _project_far_ball(center, radius, x)
    elif square > radius * radius:
        factor = radius / math.sqrt(square)
        for t in range(x.size):
            x[t] = center[t] + factor * (x[t] - center[t])


@njit(**EXACT)
def _project_far_ball(center: Vector, radius: float, x: Vector) -> None:
    """Project when squares overflow or underflow: scale by the largest entry."""
    largest, square = 0.0, 0.0
    for t in range(x.size):
        largest = max(largest, abs(x[t] - center[t]))
    if largest == 0.0:
        return
    for t in range(x.size):
        square += ((x[t] - center[t]) / largest) ** 2
    reach = radius / math.sqrt(square)
    if largest > reach:
        for t in range(x.size):
            x[t] = center[t] + ((x[t] - center[t]) / largest) * reach


@njit(**EXACT)
def _project_simplex(total: float, x: Vector) -> None:
    top = x[0]
    for t in range(x.size):
        top = max(top, x[t])
    tau = _threshold(total, top, x, absolute=False)
    for t in range(x.size):
        excess = (x[t] - top) - tau
        x[t] = 0.0 if excess < 0.0 else excess  # noqa: FURB136  # max would lose a NaN


@njit(**EXACT)
def _project_l1_ball(radius: float, x: Vector) -> None:
    size, top = 0.0, 0.0
    for t in range(x.size):
        size += abs(x[t])
        top = max(top, abs(x[t]))
    if size <= radius:
        return
    tau = _threshold(radius, top, x, absolute=True)
    for t in range(x.size):
        excess = (abs(x[t]) - top) - tau
        x[t] = 0.0 if excess < 0.0 else math.copysign(excess, x[t])


@njit(**EXACT)
def _threshold(total: float, top: float, x: Vector, absolute: bool) -> float:  # noqa: FBT001  # numba has no keyword-only arguments
    """Return the tau for which the positive entries of (x or |x|) - top - tau sum to ``total``.

    Michelot's algorithm: compute tau from all entries, remove those at or below it, and repeat until none is removed.
    Entries are relative to the largest one: otherwise a large x would absorb ``total`` in rounding.
    """
    tau, count = -math.inf, x.size + 1
    while True:
        rest, active = 0.0, 0
        for t in range(x.size):
            entry = (abs(x[t]) if absolute else x[t]) - top
            if entry > tau:
                rest += entry
                active += 1
        if active >= count or active == 0:
            return tau
        tau, count = (rest - total) / active, active
