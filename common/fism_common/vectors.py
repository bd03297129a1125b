"""Checked vectors and numbers: the way every parameter enters."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from fism_common.errors import InputError

Vector: TypeAlias = NDArray[np.float64]


def vector(values: ArrayLike, what: str, error: type[InputError]) -> Vector:
    """Return ``values`` as a one-dimensional float64 array of its own, all finite, not writable.

    Raises ``error`` with a message that starts with ``what``.
    """
    try:
        result = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as cause:
        raise error(f"{what} must be a vector of numbers: {cause}") from cause
    if result.ndim != 1:
        raise error(f"{what} must be one-dimensional, not of shape {result.shape}")
    if result.size == 0:
        raise error(f"{what} must not be empty")
    if not np.isfinite(result).all():
        at = int(np.argmin(np.isfinite(result)))
        raise error(f"{what} must be finite, but entry {at} is {result[at]}")
    result.setflags(write=False)
    return result


def number(value: float, what: str, error: type[InputError]) -> float:
    """Return ``value`` as a finite float, or raise ``error`` naming ``what``."""
    try:
        result = float(value)
    except (TypeError, ValueError) as cause:
        raise error(f"{what} must be a number, not {value!r}") from cause
    if not math.isfinite(result):
        raise error(f"{what} must be finite, not {result}")
    return result


def positive(value: float, what: str, error: type[InputError]) -> float:
    """Return ``value`` as a finite float above zero, or raise ``error`` naming ``what``."""
    result = number(value, what, error)
    if result <= 0:
        raise error(f"{what} must be above 0, not {result:g}")
    return result


def whole(value: int, what: str, error: type[InputError], *, least: int = 1) -> int:
    """Return ``value`` as an int of at least ``least``, or raise ``error`` naming ``what``."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise error(f"{what} must be a whole number, not {value!r}")
    if value < least:
        raise error(f"{what} must be at least {least}, not {value}")
    return int(value)
