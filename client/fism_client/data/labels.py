"""Labels as losses expect them, and values as configurations write them."""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from fism_common.errors import DataError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fism_common.vectors import Vector


_log = logging.getLogger(__name__)
_TRUE, _FALSE = {"true", "t", "yes", "y", "1"}, {"false", "f", "no", "n", "0"}
"""Texts that are read as true and false."""


def positives(values: NDArray[Any], positive: object, what: str) -> Vector:
    """Return 1 for the label that counts as positive and -1 for all others; warn if no row has it."""
    wanted = text_of(positive)
    if values.dtype.kind == "O":
        is_it = values == wanted
        if isinstance(positive, bool) and not is_it.any():
            is_it = np.array([is_true(text) is positive for text in values])
    elif values.dtype.kind == "b":
        if is_true(wanted) is None:
            raise DataError(f"{what} is true or false, but the label that counts as 1 (positive) is {wanted!r}")
        is_it = values == is_true(wanted)
    else:
        try:
            is_it = values == float(wanted)
        except ValueError:
            raise DataError(f"{what} is a number, but the label that counts as 1 (positive) is {wanted!r}") from None
    if not is_it.any():
        seen = ", ".join(sorted({text_of(value) for value in values[:1000].tolist()})[:10])
        _log.warning("%s is never %r, which counts as 1 (found: %s): all rows count as -1", what, wanted, seen)
    return np.where(is_it, 1.0, -1.0)


def is_true(text: str) -> bool | None:
    """Return the truth value of a text that is read as true or false; None for any other text."""
    return True if text.lower() in _TRUE else False if text.lower() in _FALSE else None


def is_number(text: str) -> bool:
    """Whether a text is a finite number."""
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def text_of(value: object) -> str:
    """Return a value as configurations write it: 1.0 as 1, True as true."""
    if isinstance(value, (bool, np.bool_)):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)
