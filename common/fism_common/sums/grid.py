"""Points of X as whole numbers on a grid, so that sums over clients are exact."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from fism_common.problem.sets import ConstraintSet
    from fism_common.vectors import Vector

Words: TypeAlias = NDArray[np.int64]
"""A vector on a grid: whole multiples of the grid's unit."""

_BITS = 62
"""The sum of all summands stays below 2^62 units."""
_SMALLEST_EXPONENT = -900
"""Entries of X below 2^-900 share one unit; a unit and its inverse are then always normal doubles."""
_BLOCK = 2**14
"""Entries that are rounded at a time: in the processor's cache that takes a third of the time."""


@dataclass(frozen=True, slots=True)
class Grid:
    """The grid for sums of points of X, which X and the number of summands fix.

    Entry j has the unit 2^(E_j - 62 + s), where 2^E_j is at least as large as entry j of any point of X, and s =
    ceil(log2 summands). A sum cannot overflow, and rounding to the grid moves an entry by at most 2^(s - 62) times the
    largest one. Up to 512 summands that is at most half the spacing of doubles of that size.
    """

    unit: float | Vector
    """A power of two for every entry; one number if all are equal."""

    def words(self, x: Vector) -> Words:
        """Return a point of X on the grid: each entry is rounded to the nearest multiple, half to even."""
        words, scratch = np.empty(x.size, np.int64), np.empty(min(x.size, _BLOCK))
        for begin in range(0, x.size, _BLOCK):
            part = slice(begin, begin + _BLOCK)
            scaled = np.multiply(x[part], 1 / self._of(part), out=scratch[: x.size - begin])
            words[part] = np.rint(scaled, out=scaled)
        return words

    def values(self, words: Words, out: Vector | None = None) -> Vector:
        """Return a point, or a sum of points, as doubles, each rounded once."""
        values = np.empty(words.size) if out is None else out
        values[:] = words
        values *= self.unit
        return values

    def _of(self, part: slice) -> float | Vector:
        """Return the units of some entries."""
        return self.unit if isinstance(self.unit, float) else self.unit[part]


@lru_cache(maxsize=8)
def grid_of(constraint: ConstraintSet, n: int, summands: int) -> Grid:
    """Return the grid for sums of ``summands`` points of X in n dimensions."""
    lo, hi = constraint.bounds(n)
    mantissa, exponent = np.frexp(np.maximum(np.abs(lo), np.abs(hi)) + constraint.slack(n))
    exponent -= mantissa == 0.5  # noqa: PLR2004  # 2^E itself
    exponent = np.maximum(exponent, _SMALLEST_EXPONENT) + (summands - 1).bit_length() - _BITS
    same = bool((exponent == exponent[0]).all())
    return Grid(float(np.ldexp(1.0, exponent[0])) if same else np.ldexp(1.0, exponent))
