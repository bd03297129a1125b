"""Checked vectors and numbers: every parameter passes through here."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from fism_common.errors import InputError

Vector: TypeAlias = NDArray[np.float64]


def vector(values: ArrayLike, what: str, error: type[InputError]) -> Vector:
    """Return ``values`` as a new, read-only, one-dimensional float64 array of finite entries.

    Raises ``error`` with a message that starts with ``what``.
    """
    result = real_numbers(values, what, error).astype(np.float64)
    if result.ndim != 1:
        raise error(f"{what} must be one-dimensional, not of shape {result.shape}")
    if result.size == 0:
        raise error(f"{what} must not be empty")
    if not np.isfinite(result).all():
        at = int(np.argmin(np.isfinite(result)))
        raise error(f"{what} must be finite, but entry {at} is {result[at]}")
    result.setflags(write=False)
    return result


def norm(x: Vector) -> float:
    """Return the Euclidean norm, without BLAS: its threads may change the order of a long sum, and so the bits."""
    return math.sqrt(np.einsum("i,i->", x, x))


def real_numbers(values: ArrayLike, what: str, error: type[InputError]) -> NDArray[Any]:
    """Return ``values`` as an array of booleans, integers or floats, or raise ``error`` naming ``what``.

    Text, dates, complex numbers and masked entries are refused: each would silently become a number.
    """
    try:
        array = np.asarray(values)
        if array.dtype.kind == "O":
            array = np.array([float(entry) for entry in array.flat]).reshape(array.shape)
    except (TypeError, ValueError, OverflowError) as cause:
        raise error(f"{what} must be real numbers: {cause}") from cause
    if array.dtype.kind not in "buif":
        raise error(f"{what} must be real numbers, not {array.dtype}")
    if np.ma.is_masked(values):
        raise error(f"{what} must not be masked; drop the masked entries or fill them in")
    return array


def number_or_vector(value: ArrayLike, what: str, error: type[InputError]) -> float | Vector:
    """Return a finite float for a number, else a vector."""
    array = real_numbers(value, what, error)
    return number(float(array), what, error) if array.ndim == 0 else vector(array, what, error)


def number(value: float, what: str, error: type[InputError]) -> float:
    """Return ``value`` as a finite float, or raise ``error`` naming ``what``."""
    given: object = value
    if isinstance(given, str):  # a configuration may contain text
        raise error(f"{what} must be a number, not {value!r}")
    try:
        result = float(real_numbers(value, what, error))
    except TypeError as cause:
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
