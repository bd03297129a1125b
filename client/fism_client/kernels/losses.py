"""The losses, compiled: value and slope as functions of z = <row, x> and the label b."""

import math
from typing import NamedTuple

from numba import njit

from fism_client.kernels.options import INLINED
from fism_common.problem.losses import LossKind, Scalar

LOGISTIC = int(LossKind.LOGISTIC)
HINGE = int(LossKind.HINGE)
SQUARED_HINGE = int(LossKind.SQUARED_HINGE)
SQUARED = int(LossKind.SQUARED)
ABSOLUTE = int(LossKind.ABSOLUTE)
HUBER = int(LossKind.HUBER)
QUANTILE = int(LossKind.QUANTILE)
BALL_DISTANCE = int(LossKind.BALL_DISTANCE)


class Formula(NamedTuple):
    """A loss as kernels take it: built-in ones by number, since a function argument would defeat numba's cache.

    A custom loss brings two C functions, whose type is the same for all of them: its kernels are cached too.
    """

    kind: int
    parameter: float
    value: Scalar | None
    slope: Scalar | None


@njit(**INLINED)
def value(loss: Formula, z: float, b: float) -> float:
    """Return f; z is <row, x>, or for ball-distance |x - row|."""
    return _value(loss.kind, loss.parameter, loss.value, z, b)


@njit(**INLINED)
def slope(loss: Formula, z: float, b: float) -> float:
    """Return the chosen subgradient of f in z; at a kink as ``fism_common.problem.losses`` documents."""
    return _slope(loss.kind, loss.parameter, loss.slope, z, b)


# numba drops the branch of an argument that is None, but not of a field that is: hence functions of their own.


@njit(**INLINED)
def _value(kind: int, parameter: float, custom: Scalar | None, z: float, b: float) -> float:
    if custom is not None:
        return custom(z, b)
    if kind == LOGISTIC:
        return math.log1p(math.exp(-abs(z))) + max(-b * z, 0.0)
    if kind == HINGE:
        return max(0.0, 1.0 - b * z)
    if kind == SQUARED_HINGE:
        return max(0.0, 1.0 - b * z) ** 2
    r = z - b
    if kind == SQUARED:
        return 0.5 * r * r
    if kind == ABSOLUTE:
        return abs(r)
    if kind == HUBER:
        return 0.5 * r * r if abs(r) <= parameter else parameter * (abs(r) - 0.5 * parameter)
    if kind == QUANTILE:
        return max(-parameter * r, (1.0 - parameter) * r)
    return max(r, 0.0)


@njit(**INLINED)
def _slope(kind: int, parameter: float, custom: Scalar | None, z: float, b: float) -> float:
    if custom is not None:
        return custom(z, b)
    if kind == LOGISTIC:
        return -b / (1.0 + math.exp(b * z))
    if kind == HINGE:
        return -b if b * z < 1.0 else 0.0
    if kind == SQUARED_HINGE:
        return -2.0 * b * max(0.0, 1.0 - b * z)
    r = z - b
    if kind == SQUARED:
        return r
    if kind == HUBER:
        return min(max(r, -parameter), parameter)
    if r == 0.0:
        return 0.0
    if kind == ABSOLUTE:
        return 1.0 if r > 0.0 else -1.0
    if kind == QUANTILE:
        return 1.0 - parameter if r > 0.0 else -parameter
    return 1.0 if r > 0.0 else 0.0
