"""Exact sums of doubles that have no common bound, such as the values of F."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Parts: TypeAlias = "tuple[float, ...]"
"""A number as the exact sum of doubles: the one nearest to it, the one nearest to the rest, and so on."""

MOST_PARTS = 40
"""The mantissas of so many doubles cover all exponents."""


def parts_of(values: Sequence[float]) -> Parts:
    """Return the exact sum of ``values``; one part if it is not finite."""
    rest, parts = list(values), []
    while True:
        part = rounded(rest)
        parts.append(part)
        if part == 0 or not math.isfinite(part):
            return tuple(parts[:-1] or parts) if part == 0 else (part,)
        rest.append(-part)


def rounded(parts: Iterable[float]) -> float:
    """Return the double nearest to the exact sum of all ``parts``; infinite or NaN if the sum is."""
    parts = list(parts)
    try:
        return math.fsum(parts)
    except (OverflowError, ValueError):  # a sum beyond the largest double, or of both infinities
        return sum(parts)
