"""The losses f, one class each: formula, label rule, description, scikit-learn equivalent.

A loss is a function of z and the label b: f = phi(z, b). For a linear loss z = <row, x>, and its subgradient is
dphi(z, b) * row. ``ball-distance`` is the one loss that is not linear: its rows are centres, its labels radii, and
z = |x - row|. ``phi`` and ``dphi`` are plain scalar functions of (z, b, parameter); the client's kernels compile them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, ClassVar, TypeAlias

import numpy as np

from fism_common.errors import DataError, ProblemError
from fism_common.problem.registry import Family
from fism_common.vectors import Vector, positive

__all__ = [
    "Absolute",
    "BallDistance",
    "Hinge",
    "Huber",
    "Logistic",
    "Loss",
    "Quantile",
    "Squared",
    "SquaredHinge",
]

Scalar: TypeAlias = Callable[[float, float], float]


class Loss:
    """One convex f per row."""

    kind: str
    """Its name in configurations and messages."""
    smooth: bool
    classifies: ClassVar[bool] = False
    """Whether labels are classes, -1 and 1."""
    linear: ClassVar[bool] = True
    """Whether z = <row, x>."""
    description: ClassVar[str] = "the custom losses of all rows"
    """What F sums, in words."""
    sklearn: ClassVar[tuple[str, str, dict[str, Any]] | None] = None
    """The scikit-learn equivalent: module, class, arguments; an argument may name a field, and then has its value."""

    @property
    def parameter(self) -> float:
        """The loss's only parameter; 0 if it has none."""
        own = fields(self)  # type: ignore[arg-type]  # every built-in loss is a dataclass
        return float(getattr(self, own[0].name)) if own else 0.0

    @staticmethod
    def phi(z: float, b: float, parameter: float, /) -> float:
        """Return f."""
        raise NotImplementedError

    @staticmethod
    def dphi(z: float, b: float, parameter: float, /) -> float:
        """Return the chosen subgradient of f in z."""
        raise NotImplementedError

    def check_labels(self, labels: Vector, where: str, first_row: int = 0) -> None:
        """Raise DataError if a label has no meaning for this loss, naming ``where`` and the row, from ``first_row``."""
        wrong = np.abs(labels) != 1 if self.classifies else np.zeros(0, bool)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise DataError(
                f"{where}: the label of row {row + first_row} is {labels[row]:g}, but the loss {self.kind!r} needs -1 "
                "or 1; choose the label that counts as 1 (positive), or in Python pass np.where(b > 0, 1, -1)"
            )


@dataclass(frozen=True)
class Logistic(Loss):
    """log(1 + exp(-b z)), b in {-1, 1}."""

    kind = "logistic"
    smooth = True
    classifies = True
    description = "the logistic losses of all rows, ln(1 + exp(-b a'x)), with labels b of -1 and 1"
    sklearn = ("sklearn.linear_model", "LogisticRegression", {})

    @staticmethod
    def phi(z: float, b: float, _: float) -> float:
        """Return f."""
        return math.log1p(math.exp(-abs(z))) + max(-b * z, 0.0)

    @staticmethod
    def dphi(z: float, b: float, _: float) -> float:
        """Return the slope."""
        return -b / (1.0 + math.exp(b * z))


@dataclass(frozen=True)
class Hinge(Loss):
    """max(0, 1 - b z), b in {-1, 1}; the slope is 0 at b z = 1."""

    kind = "hinge"
    smooth = False
    classifies = True
    description = "the hinge losses of all rows, max(0, 1 - b a'x), with labels b of -1 and 1"
    sklearn = ("sklearn.svm", "LinearSVC", {"loss": "hinge"})

    @staticmethod
    def phi(z: float, b: float, _: float) -> float:
        """Return f."""
        return max(0.0, 1.0 - b * z)

    @staticmethod
    def dphi(z: float, b: float, _: float) -> float:
        """Return the slope."""
        return -b if b * z < 1.0 else 0.0


@dataclass(frozen=True)
class SquaredHinge(Loss):
    """max(0, 1 - b z)^2, b in {-1, 1}."""

    kind = "squared-hinge"
    smooth = True
    classifies = True
    description = "the squared hinge losses of all rows, max(0, 1 - b a'x)^2, with labels b of -1 and 1"
    sklearn = ("sklearn.svm", "LinearSVC", {})

    @staticmethod
    def phi(z: float, b: float, _: float) -> float:
        """Return f."""
        return max(0.0, 1.0 - b * z) ** 2

    @staticmethod
    def dphi(z: float, b: float, _: float) -> float:
        """Return the slope."""
        return -2.0 * b * max(0.0, 1.0 - b * z)


@dataclass(frozen=True)
class Squared(Loss):
    """(z - b)^2 / 2."""

    kind = "squared"
    smooth = True
    description = "the squared errors of all rows, (a'x - b)^2 / 2"
    sklearn = ("sklearn.linear_model", "LinearRegression", {})

    @staticmethod
    def phi(z: float, b: float, _: float) -> float:
        """Return f."""
        r = z - b
        return 0.5 * r * r

    @staticmethod
    def dphi(z: float, b: float, _: float) -> float:
        """Return the slope."""
        return z - b


@dataclass(frozen=True)
class Absolute(Loss):
    """|z - b|; the slope is 0 at z = b."""

    kind = "absolute"
    smooth = False
    description = "the absolute errors of all rows, |a'x - b|"
    sklearn = ("sklearn.linear_model", "QuantileRegressor", {"quantile": 0.5})

    @staticmethod
    def phi(z: float, b: float, _: float) -> float:
        """Return f."""
        return abs(z - b)

    @staticmethod
    def dphi(z: float, b: float, _: float) -> float:
        """Return the slope."""
        r = z - b
        if r == 0.0:
            return 0.0
        return 1.0 if r > 0.0 else -1.0


@dataclass(frozen=True)
class Huber(Loss):
    """(z - b)^2 / 2 where |z - b| <= delta, else delta (|z - b| - delta / 2)."""

    kind = "huber"
    smooth = True
    description = "the Huber losses of all rows: squared for small errors a'x - b, absolute for large ones"
    sklearn = ("sklearn.linear_model", "HuberRegressor", {})
    delta: float = 1.0

    def __post_init__(self) -> None:
        """Refuse a delta that is not above 0."""
        object.__setattr__(self, "delta", positive(self.delta, "huber's delta", ProblemError))

    @staticmethod
    def phi(z: float, b: float, delta: float) -> float:
        """Return f."""
        r = z - b
        return 0.5 * r * r if abs(r) <= delta else delta * (abs(r) - 0.5 * delta)

    @staticmethod
    def dphi(z: float, b: float, delta: float) -> float:
        """Return the slope."""
        return min(max(z - b, -delta), delta)


@dataclass(frozen=True)
class Quantile(Loss):
    """tau max(0, b - z) + (1 - tau) max(0, z - b); the slope is 0 at z = b."""

    kind = "quantile"
    smooth = False
    description = "the quantile losses of all rows, which weigh predictions above and below the label differently"
    sklearn = ("sklearn.linear_model", "QuantileRegressor", {"quantile": "tau"})
    tau: float = 0.5

    def __post_init__(self) -> None:
        """Refuse a tau outside the open interval from 0 to 1."""
        tau = positive(self.tau, "quantile's tau", ProblemError)
        if tau >= 1:
            raise ProblemError(f"quantile's tau must be below 1, not {tau:g}: 0.9 is the ninth decile")
        object.__setattr__(self, "tau", tau)

    @staticmethod
    def phi(z: float, b: float, tau: float) -> float:
        """Return f."""
        r = z - b
        return max(-tau * r, (1.0 - tau) * r)

    @staticmethod
    def dphi(z: float, b: float, tau: float) -> float:
        """Return the slope."""
        r = z - b
        if r == 0.0:
            return 0.0
        return 1.0 - tau if r > 0.0 else -tau


@dataclass(frozen=True)
class BallDistance(Loss):
    """dist(x, ball): max(0, |x - row| - b); rows are centres, labels radii; the slope is 0 on the boundary."""

    kind = "ball-distance"
    smooth = False
    linear = False
    description = "the distances from x to all rows' balls, max(0, |x - a| - b)"

    @staticmethod
    def phi(z: float, b: float, _: float) -> float:
        """Return f, with z = |x - row|."""
        return max(z - b, 0.0)

    @staticmethod
    def dphi(z: float, b: float, _: float) -> float:
        """Return the slope in z."""
        return 1.0 if z - b > 0.0 else 0.0

    def check_labels(self, labels: Vector, where: str, first_row: int = 0) -> None:
        wrong = labels < 0
        if wrong.any():
            row = int(np.argmax(wrong))
            raise DataError(
                f"{where}: the radius (label) of row {row + first_row} is {labels[row]:g}; a radius must be 0 or more"
            )


LOSSES = Family("loss", (Logistic, Hinge, SquaredHinge, Squared, Absolute, Huber, Quantile, BallDistance))
"""The built-in losses, by kind."""
