"""The compiled losses: value and slope as functions of z and the label b, built from the classes in the registry."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from numba import njit

from fism_client.kernels.options import INLINED, INLINED_UNCACHED
from fism_common.problem.losses import LOSSES, Loss, Scalar

_CODES = {kind: code for code, kind in enumerate(LOSSES)}
_CUSTOM = len(_CODES)
BALL_DISTANCE = _CODES["ball-distance"]


class Formula(NamedTuple):
    """A loss as an argument of kernels. Built-in ones are a number: a function argument would defeat numba's cache.

    A custom loss adds two C functions. Their type is the same for every custom loss, so its kernels are cached too.
    """

    code: int
    parameter: float
    value: Scalar | None = None
    slope: Scalar | None = None


def formula_of(loss: Loss, value: Scalar | None = None, slope: Scalar | None = None) -> Formula:
    """Return a loss as an argument of kernels; a custom one needs its compiled functions."""
    return Formula(_CODES.get(loss.kind, _CUSTOM), loss.parameter, value, slope)


def _one_of(formulas: Sequence[Callable[[float, float, float], float]], first: int = 0) -> Any:  # noqa: ANN401
    """Return a compiled (code, parameter, z, b) that calls the formula with the number ``code``."""
    head = njit(**INLINED)(formulas[0])
    if len(formulas) == 1:

        def last(code: int, parameter: float, z: float, b: float) -> float:  # noqa: ARG001  # it is the only one left
            return head(z, b, parameter)

        return njit(**INLINED_UNCACHED)(last)
    rest = _one_of(formulas[1:], first + 1)

    def choose(code: int, parameter: float, z: float, b: float) -> float:
        if code == first:
            return head(z, b, parameter)
        result: float = rest(code, parameter, z, b)
        return result

    return njit(**INLINED_UNCACHED)(choose)


_values = _one_of([loss.phi for loss in LOSSES.values()])
_slopes = _one_of([loss.dphi for loss in LOSSES.values()])


@njit(**INLINED)
def value(loss: Formula, z: float, b: float) -> float:
    """Return f; z is <row, x>, or for ball-distance |x - row|."""
    return _value(loss.code, loss.parameter, loss.value, z, b)


@njit(**INLINED)
def slope(loss: Formula, z: float, b: float) -> float:
    """Return the chosen subgradient of f in z."""
    return _slope(loss.code, loss.parameter, loss.slope, z, b)


# numba drops the branch for an argument that is None, but not for a field that is None: hence separate functions.


@njit(**INLINED)
def _value(code: int, parameter: float, custom: Scalar | None, z: float, b: float) -> float:
    if custom is not None:
        return custom(z, b)
    result: float = _values(code, parameter, z, b)
    return result


@njit(**INLINED)
def _slope(code: int, parameter: float, custom: Scalar | None, z: float, b: float) -> float:
    if custom is not None:
        return custom(z, b)
    result: float = _slopes(code, parameter, z, b)
    return result
