"""The constraint sets, compiled: a step of x, and its projection, in place."""

import math
from typing import NamedTuple

from numba import njit

from fism_client.kernels.options import EXACT, INLINED
from fism_common.problem.sets import SetKind
from fism_common.vectors import Vector

BOX = int(SetKind.BOX)
BALL = int(SetKind.BALL)
SIMPLEX = int(SetKind.SIMPLEX)


_SMALLEST_SQUARE = 1e-300


class Region(NamedTuple):
    """A set as kernels take it."""

    kind: int
    lo: Vector
    """The box's lower bounds, or the one for all columns; the ball's centre."""
    hi: Vector
    """The box's upper bounds, or the one for all columns."""
    radius: float
    """The radius of a ball, the total of a simplex."""


@njit(**INLINED)
def clip(value: float, lo: float, hi: float) -> float:
    """Return ``value`` brought into [lo, hi]; NaN stays NaN, which min and max would lose."""
    raised = max(value, lo)
    return min(raised, hi)


@njit(**INLINED)
def project(region: Region, x: Vector) -> None:
    """Replace ``x`` by the nearest point of the region."""
    if region.kind == BOX:
        _project_box(region.lo, region.hi, x)
    elif region.kind == BALL:
        _project_ball(region.lo, region.radius, x)
    elif region.kind == SIMPLEX:
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
    """Project where squares overflow or vanish: in units of the largest entry."""
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
def _threshold(total: float, top: float, x: Vector, absolute: bool) -> float:  # noqa: FBT001  # numba takes it flat
    """Return the tau for which the entries of (x or |x|) - top, less tau and cut at 0, sum to ``total``.

    Michelot's rule: take the tau of all entries, leave out those at or below it, again until none leaves. Measured
    from the largest entry: else a large x swallows ``total``.
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
