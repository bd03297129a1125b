"""The constraint sets X: convex, compact, public. One class each; compiled projections are in the client's kernels."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from fism_common.errors import ProblemError
from fism_common.problem.registry import Family
from fism_common.vectors import Vector, number_or_vector, positive, vector

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


__all__ = ["Ball", "Box", "ConstraintSet", "L1Ball", "Simplex"]

_NOTHING = np.zeros(0)
_ROUNDING = 1e-9


class ConstraintSet(ABC):
    """A convex and compact X."""

    kind: ClassVar[str]

    @abstractmethod
    def describe(self) -> str:
        """Return the set in words, for reports."""

    @abstractmethod
    def kernel_arguments(self, n: int) -> tuple[Vector, Vector, float]:
        """Return (lo, hi, radius), the arguments of the compiled projection of this kind."""

    @property
    def dimension(self) -> int | None:
        """The n this set is made for; None if it fits every n."""
        return None

    @abstractmethod
    def project(self, x: Vector) -> Vector:
        """Return the point of X nearest to ``x``, as a new vector."""

    @abstractmethod
    def contains(self, x: Vector, slack: float = 0.0) -> bool:
        """Whether ``x`` is in X, where each inequality may be exceeded by ``slack``; False for NaN."""

    @abstractmethod
    def diameter(self, n: int) -> float:
        """Return the largest distance between two points of X in n dimensions."""

    @abstractmethod
    def bounds(self, n: int) -> tuple[Vector, Vector]:
        """Return the corners of the smallest box around X in n dimensions."""

    def slack(self, n: int) -> float:
        """Return how far outside X a pass may end because of rounding."""
        return _ROUNDING * (1 + self.diameter(n))

    def check(self, n: int) -> None:
        """Raise ProblemError if this set does not fit n dimensions."""
        if self.dimension not in {None, n}:
            raise ProblemError(
                f"the {type(self).__name__} has {self.dimension} entries, but the rows have {n} columns; "
                "give one entry per column, or a number"
            )


@dataclass(frozen=True, eq=False)
class Box(ConstraintSet):
    """lo <= x <= hi, entry by entry; ``lo`` and ``hi`` are numbers or vectors."""

    kind = "box"
    lo: float | Vector
    hi: float | Vector

    def __init__(self, lo: ArrayLike, hi: ArrayLike) -> None:
        """Refuse infinite, empty and inverted boxes."""
        for name, bound in (("lo", lo), ("hi", hi)):
            object.__setattr__(self, name, number_or_vector(bound, f"the box's {name}", ProblemError))
        if np.ndim(self.lo) and np.ndim(self.hi) and np.size(self.lo) != np.size(self.hi):
            raise ProblemError(f"the box's lo has {np.size(self.lo)} entries and its hi {np.size(self.hi)}")
        inverted = np.atleast_1d(np.greater(self.lo, self.hi))
        if inverted.any():
            at = int(np.argmax(inverted))
            low, high = (np.broadcast_to(bound, inverted.shape)[at] for bound in (self.lo, self.hi))
            raise ProblemError(f"the box is empty: at entry {at}, lo = {low:g} is above hi = {high:g}")

    @property
    def dimension(self) -> int | None:
        sizes = [bound.size for bound in (self.lo, self.hi) if isinstance(bound, np.ndarray)]
        return sizes[0] if sizes else None

    def project(self, x: Vector) -> Vector:
        return np.clip(x, self.lo, self.hi)

    def contains(self, x: Vector, slack: float = 0.0) -> bool:
        if isinstance(self.lo, np.ndarray) or isinstance(self.hi, np.ndarray):
            return bool(np.all((x >= self.lo - slack) & (x <= self.hi + slack)))
        return bool(x.min() >= self.lo - slack and x.max() <= self.hi + slack)  # no temporary vector

    def diameter(self, n: int) -> float:
        return _norm(np.broadcast_to(np.subtract(self.hi, self.lo), n))

    def bounds(self, n: int) -> tuple[Vector, Vector]:
        return np.full(n, self.lo), np.full(n, self.hi)

    def describe(self) -> str:
        if isinstance(self.lo, float) and isinstance(self.hi, float):
            return f"the box of all x with entries from {self.lo:g} to {self.hi:g}"
        return "a box with bounds for each column"

    def kernel_arguments(self, n: int) -> tuple[Vector, Vector, float]:  # noqa: ARG002
        lo, hi = np.broadcast_arrays(*np.atleast_1d(self.lo, self.hi))
        return lo.copy(), hi.copy(), 0.0


@dataclass(frozen=True, eq=False)
class Ball(ConstraintSet):
    """|x - center| <= radius in the Euclidean norm; ``center`` is 0 if not given."""

    kind = "ball"
    radius: float
    center: Vector | None

    def __init__(self, radius: float, center: ArrayLike | None = None) -> None:
        """Refuse a radius that is not above 0."""
        object.__setattr__(self, "radius", positive(radius, "the ball's radius", ProblemError))
        middle = None if center is None else vector(center, "the ball's center", ProblemError)
        object.__setattr__(self, "center", middle)

    @property
    def dimension(self) -> int | None:
        return None if self.center is None else self.center.size

    def project(self, x: Vector) -> Vector:
        middle = 0.0 if self.center is None else self.center
        offset = x - middle
        distance = _norm(offset)
        return x.copy() if distance <= self.radius else middle + (offset / distance) * self.radius

    def contains(self, x: Vector, slack: float = 0.0) -> bool:
        return _norm(x - (0.0 if self.center is None else self.center)) <= self.radius + slack

    def diameter(self, n: int) -> float:  # noqa: ARG002  # the same in every dimension
        return 2 * self.radius

    def bounds(self, n: int) -> tuple[Vector, Vector]:
        middle = np.zeros(n) if self.center is None else self.center
        return middle - self.radius, middle + self.radius

    def describe(self) -> str:
        return f"the ball of radius {self.radius:g} around {'0' if self.center is None else 'a given centre'}"

    def kernel_arguments(self, n: int) -> tuple[Vector, Vector, float]:
        return np.zeros(n) if self.center is None else self.center.copy(), _NOTHING, self.radius


@dataclass(frozen=True, eq=False)
class Simplex(ConstraintSet):
    """x >= 0 with sum(x) = total."""

    kind = "simplex"
    total: float = 1.0

    def __post_init__(self) -> None:
        """Refuse a total that is not above 0."""
        object.__setattr__(self, "total", positive(self.total, "the simplex's total", ProblemError))

    def project(self, x: Vector) -> Vector:
        return _project_simplex(x, self.total)

    def contains(self, x: Vector, slack: float = 0.0) -> bool:
        # A sum of n rounded entries cannot be compared exactly.
        rounding = 4 * np.finfo(np.float64).eps * self.total * x.size
        return bool(
            np.all(x >= -slack) and abs(float(np.sum(x)) - self.total) <= slack + rounding
        )  # the first test keeps -inf out of the sum

    def diameter(self, n: int) -> float:
        return self.total * np.sqrt(2.0) if n > 1 else 0.0

    def bounds(self, n: int) -> tuple[Vector, Vector]:
        return np.zeros(n), np.full(n, self.total)

    def describe(self) -> str:
        return f"the simplex: nonnegative entries that sum to {self.total:g}"

    def kernel_arguments(self, n: int) -> tuple[Vector, Vector, float]:  # noqa: ARG002
        return _NOTHING, _NOTHING, self.total


@dataclass(frozen=True, eq=False)
class L1Ball(ConstraintSet):
    """|x|_1 <= radius."""

    kind = "l1-ball"
    radius: float

    def __post_init__(self) -> None:
        """Refuse a radius that is not above 0."""
        object.__setattr__(self, "radius", positive(self.radius, "the 1-norm ball's radius", ProblemError))

    def project(self, x: Vector) -> Vector:
        size = np.abs(x)
        return x.copy() if np.sum(size) <= self.radius else np.copysign(_project_simplex(size, self.radius), x)

    def contains(self, x: Vector, slack: float = 0.0) -> bool:
        rounding = 4 * np.finfo(np.float64).eps * self.radius * x.size
        return bool(np.sum(np.abs(x)) <= self.radius + slack + rounding)

    def diameter(self, n: int) -> float:  # noqa: ARG002
        return 2 * self.radius

    def bounds(self, n: int) -> tuple[Vector, Vector]:
        return np.full(n, -self.radius), np.full(n, self.radius)

    def describe(self) -> str:
        return f"the 1-norm ball: all x whose entries' absolute values sum to at most {self.radius:g}"

    def kernel_arguments(self, n: int) -> tuple[Vector, Vector, float]:  # noqa: ARG002
        return _NOTHING, _NOTHING, self.radius


SETS = Family("constraint", (Box, Ball, Simplex, L1Ball))
"""The built-in sets, by kind."""


def _norm(x: Vector) -> float:
    """Return the Euclidean norm, without overflow, and without BLAS, whose threads may change the bits."""
    largest = float(np.max(np.abs(x)))
    if largest == 0 or not np.isfinite(largest):
        return largest
    return largest * float(np.sqrt(np.sum((x / largest) ** 2)))


def _project_simplex(x: Vector, total: float) -> Vector:
    """Return max(x - tau, 0) for the tau that makes it sum to ``total`` (found by sorting)."""
    shifted = x - np.max(x)  # else the total is lost to rounding if x is large
    falling = np.sort(shifted)[::-1]
    thresholds = (np.cumsum(falling) - total) / np.arange(1, x.size + 1)
    tau = thresholds[np.flatnonzero(falling > thresholds)[-1]]
    return np.maximum(shifted - float(tau), 0.0)
