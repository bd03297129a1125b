"""The outer objectives H: strongly convex, known to the server only."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from fism_common.errors import ProblemError
from fism_common.problem.registry import Family
from fism_common.vectors import Vector, number_or_vector, positive, real_numbers, vector

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike


__all__ = ["ElasticNet", "GroupLasso", "OuterObjective", "Quadratic", "SquaredDistance", "SquaredNorm"]


class OuterObjective(ABC):
    """A strongly convex H. A custom one defines ``modulus``, ``value`` and ``subgradient``."""

    kind: ClassVar[str] = ""
    formula: ClassVar[str] = ""
    """H as a formula, for reports; empty for a custom objective."""
    prefers: ClassVar[str] = "what a custom objective prefers"
    """Which of the models that fit equally well this H selects, in words."""
    smooth: bool = False
    """Whether H is differentiable everywhere; some methods need it."""
    ordered: bool = False
    """Whether H relies on the order of the columns although it fits any number of them."""

    @property
    @abstractmethod
    def modulus(self) -> float:
        """The modulus mu > 0 of strong convexity: H - mu |x|^2 / 2 is convex."""

    @abstractmethod
    def value(self, x: Vector) -> float:
        """Return H(x)."""

    @abstractmethod
    def subgradient(self, x: Vector) -> Vector:
        """Return one subgradient of H at ``x``, as a new vector; always the same one."""

    def check(self, n: int) -> None:
        """Raise ProblemError if H is not a strongly convex function of n variables."""
        mu = self.modulus
        if not isinstance(mu, (int, float, np.number)):
            raise ProblemError(f"the modulus of {type(self).__name__} must be a number, not {mu!r}")
        if not (math.isfinite(mu) and mu > 0):
            raise ProblemError(
                f"{type(self).__name__} has modulus {mu}: H must be strongly convex (modulus above 0), "
                "else it does not pick one solution; add a small multiple of |x|^2"
            )
        if self.dimension not in {None, n}:
            raise ProblemError(f"{type(self).__name__} is made for {self.dimension} columns, but the rows have {n}")

    @property
    def dimension(self) -> int | None:
        """The n this H is made for; None if it fits every n."""
        return None

    def sparing_last(self, n: int) -> OuterObjective:  # noqa: ARG002  # for objectives with a 1-norm
        """Return H for n columns of which the last is an intercept, with no 1-norm on it."""
        return self


class Separable(OuterObjective):
    """sum of l1_t |x_t| + l2 (x_t - anchor_t)^2 / 2, with sign(0) = 0 in the subgradient."""

    def __init__(self, l1: float | Vector, l2: float, anchor: float | Vector) -> None:
        """Take checked parameters; numbers stand for constant vectors."""
        self.l1, self.l2, self.anchor = l1, l2, anchor
        self.smooth = not np.any(l1)

    @property
    def modulus(self) -> float:
        return self.l2

    def value(self, x: Vector) -> float:
        offset = x - self.anchor
        half_square = 0.5 * self.l2 * float(np.einsum("i,i->", offset, offset))
        if self.smooth:
            return half_square
        sizes = np.abs(x, out=offset)  # in place where possible: x may have millions of entries
        sizes *= self.l1
        return half_square + float(np.sum(sizes))

    def subgradient(self, x: Vector) -> Vector:
        pull = x - self.anchor
        pull *= self.l2
        if not self.smooth:
            signs = np.sign(x)
            signs *= self.l1
            pull += signs
        return pull

    @property
    def dimension(self) -> int | None:
        sizes = [part.size for part in (self.l1, self.anchor) if isinstance(part, np.ndarray)]
        return sizes[0] if sizes else None


class SquaredNorm(Separable):
    """|x|^2 / 2: the smallest model."""

    kind = "squared-norm"
    formula = "|x|^2 / 2"
    prefers = "the smallest one"

    def __init__(self) -> None:
        """Take no parameter."""
        super().__init__(0.0, 1.0, 0.0)


class SquaredDistance(Separable):
    """|x - anchor|^2 / 2: the model nearest to one in use."""

    kind = "squared-distance"
    formula = "|x - anchor|^2 / 2"
    prefers = "the one nearest to the model in use, its anchor"

    def __init__(self, anchor: ArrayLike) -> None:
        """Take the model to stay near to, one entry per column."""
        super().__init__(0.0, 1.0, vector(anchor, "the anchor", ProblemError))


class ElasticNet(Separable):
    """l1 |x|_1 + l2 |x|^2 / 2: a sparse and small model; ``l1`` may be a vector, one weight per column."""

    kind = "elastic-net"
    formula = "l1 |x|_1 + l2 |x|^2 / 2"
    prefers = "a sparse and small one"

    def __init__(self, l1: ArrayLike, l2: float) -> None:
        """Refuse a negative l1, and an l2 that is not above 0 (H would not be strongly convex)."""
        weight = number_or_vector(l1, "l1", ProblemError)
        if np.any(np.less(weight, 0)):
            raise ProblemError("l1 must not be negative: H would not be convex")
        super().__init__(weight, _strong(l2), 0.0)

    def sparing_last(self, n: int) -> ElasticNet:
        l1 = np.full(n, self.l1) if isinstance(self.l1, float) else self.l1.copy()
        l1[-1] = 0.0
        return ElasticNet(l1, self.l2)


class GroupLasso(OuterObjective):
    """sum over groups of weight_g |x_g| + l2 |x|^2 / 2: whole groups of columns are zero together.

    ``groups`` are disjoint lists of column numbers; columns in no group have the quadratic term only. ``weight`` is
    a number, or one per group. The subgradient of |x_g| at x_g = 0 is taken as 0.
    """

    kind = "group-lasso"
    formula = "sum of weight |x_g| over groups of columns, + l2 |x|^2 / 2"
    prefers = "one without whole groups of columns"
    ordered = True

    def __init__(self, groups: Sequence[Sequence[int]], weight: ArrayLike, l2: float) -> None:
        """Refuse empty or overlapping groups, negative weights, and an l2 that is not above 0."""
        try:
            arrays = [real_numbers(group, "groups", ProblemError) for group in groups]
        except TypeError as cause:
            raise ProblemError(f"groups must be lists of column numbers: {cause}") from cause
        if not arrays or any(array.ndim != 1 or array.size == 0 or array.dtype.kind not in "iu" for array in arrays):
            raise ProblemError("groups must be lists of column numbers, none of them empty")
        self.groups = [array.astype(np.intp) for array in arrays]
        columns = np.concatenate(self.groups)
        if columns.min() < 0 or np.unique(columns).size != columns.size:
            raise ProblemError("groups must not share a column, and columns are counted from 0")
        count, weights = len(self.groups), number_or_vector(weight, "the weight", ProblemError)
        if np.size(weights) not in {1, count}:
            raise ProblemError(f"give one number as weight, or one weight per group: there are {count} groups")
        self.weights = np.full(count, weights)
        if np.any(self.weights < 0):
            raise ProblemError("the weight of a group must not be negative: H would not be convex")
        self.l2 = _strong(l2)
        self.smooth = not self.weights.any()

    @property
    def modulus(self) -> float:
        return self.l2

    def value(self, x: Vector) -> float:
        norms = sum(
            float(w * np.sqrt(np.sum(x[group] ** 2))) for w, group in zip(self.weights, self.groups, strict=True)
        )
        return norms + 0.5 * self.l2 * float(np.sum(x * x))

    def subgradient(self, x: Vector) -> Vector:
        result = self.l2 * x
        for weight, group in zip(self.weights, self.groups, strict=True):
            norm = np.sqrt(np.sum(x[group] ** 2))
            if norm > 0:
                result[group] += (weight / norm) * x[group]
        return result

    def check(self, n: int) -> None:
        super().check(n)
        last = max(int(group.max()) for group in self.groups)
        if last >= n:
            raise ProblemError(f"a group names column {last}, but the rows have {n} columns, counted from 0")


class Quadratic(OuterObjective):
    """<x, Q x> / 2 + <c, x> with Q symmetric and positive definite."""

    kind = "quadratic"
    formula = "x'Qx / 2 + c'x"
    prefers = "the one that minimises this quadratic"
    smooth = True

    def __init__(self, Q: ArrayLike, c: ArrayLike) -> None:
        """Refuse a Q that is not symmetric or not positive definite."""
        self.Q = real_numbers(Q, "Q", ProblemError).astype(np.float64)
        self.c = vector(c, "c", ProblemError)
        n = self.c.size
        if self.Q.shape != (n, n):
            raise ProblemError(f"Q must be of shape ({n}, {n}), as c has {n} entries, not {self.Q.shape}")
        if not np.isfinite(self.Q).all() or not np.allclose(self.Q, self.Q.T, rtol=1e-12, atol=0):
            raise ProblemError("Q must be finite and symmetric; (Q + Q.T) / 2 gives the same H")
        lowest, highest = np.linalg.eigvalsh(self.Q)[[0, -1]]
        if lowest <= n * np.finfo(np.float64).eps * abs(highest):
            raise ProblemError(
                f"Q's lowest eigenvalue is {lowest:g}: H must be strongly convex; add a small multiple of the identity"
            )
        self._modulus = float(lowest)

    @property
    def modulus(self) -> float:
        return self._modulus

    def value(self, x: Vector) -> float:
        return float(np.sum(x * (0.5 * self._times(x) + self.c)))

    def subgradient(self, x: Vector) -> Vector:
        return self._times(x) + self.c

    def _times(self, x: Vector) -> Vector:
        # Not BLAS, whose threads may change the bits.
        return np.asarray(np.einsum("ij,j->i", self.Q, x))

    @property
    def dimension(self) -> int | None:
        return self.c.size


def _strong(l2: float) -> float:
    return positive(l2, "l2 (which makes H strongly convex)", ProblemError)


OUTERS = Family("objective", (SquaredNorm, SquaredDistance, ElasticNet, GroupLasso, Quadratic))
"""The built-in objectives, by kind."""
