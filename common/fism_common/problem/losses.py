"""The losses f: which there are, what they ask of the labels, and their slopes at kinks.

A linear loss is a function of z = <row, x> and the label b, and its subgradient is slope(z, b) * row.
``ball-distance`` is the one loss that is not: its rows are centres, its labels radii.
The compiled formulas are in ``fism_client.kernels.losses``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from enum import IntEnum

import numpy as np

from fism_common.errors import DataError, ProblemError
from fism_common.vectors import Vector, positive

Scalar = Callable[[float, float], float]


class LossKind(IntEnum):
    """How the compiled pass tells the losses apart."""

    LOGISTIC = 0
    HINGE = 1
    SQUARED_HINGE = 2
    SQUARED = 3
    ABSOLUTE = 4
    HUBER = 5
    QUANTILE = 6
    BALL_DISTANCE = 7
    CUSTOM = 8


CLASSIFYING = frozenset({LossKind.LOGISTIC, LossKind.HINGE, LossKind.SQUARED_HINGE})
"""The losses whose labels are classes, -1 and 1."""


class Loss:
    """One convex f per row."""

    name: str
    kind: LossKind
    smooth: bool

    @property
    def parameter(self) -> float:
        """The loss's one parameter, 0 where it has none."""
        return 0.0

    def check_labels(self, labels: Vector, where: str, first_row: int = 0) -> None:
        """Raise DataError if a label has no meaning for this loss, naming ``where`` and the row, from ``first_row``."""


class _Classifying(Loss):
    """A loss of the margin b z; labels are -1 and 1."""

    def check_labels(self, labels: Vector, where: str, first_row: int = 0) -> None:
        wrong = np.abs(labels) != 1
        if wrong.any():
            row = int(np.argmax(wrong))
            raise DataError(
                f"{where}: the label of row {row + first_row} is {labels[row]:g}, but the loss {self.name!r} needs -1 "
                "or 1; say which label counts as 1 (positive), or in Python give np.where(b > 0, 1, -1)"
            )


@dataclass(frozen=True)
class Logistic(_Classifying):
    """log(1 + exp(-b z)), b in {-1, 1}."""

    name = "logistic"
    kind = LossKind.LOGISTIC
    smooth = True


@dataclass(frozen=True)
class Hinge(_Classifying):
    """max(0, 1 - b z), b in {-1, 1}; the slope is 0 at b z = 1."""

    name = "hinge"
    kind = LossKind.HINGE
    smooth = False


@dataclass(frozen=True)
class SquaredHinge(_Classifying):
    """max(0, 1 - b z)^2, b in {-1, 1}."""

    name = "squared-hinge"
    kind = LossKind.SQUARED_HINGE
    smooth = True


@dataclass(frozen=True)
class Squared(Loss):
    """(z - b)^2 / 2."""

    name = "squared"
    kind = LossKind.SQUARED
    smooth = True


@dataclass(frozen=True)
class Absolute(Loss):
    """|z - b|; the slope is 0 at z = b."""

    name = "absolute"
    kind = LossKind.ABSOLUTE
    smooth = False


@dataclass(frozen=True)
class Huber(Loss):
    """(z - b)^2 / 2 where |z - b| <= delta, else delta (|z - b| - delta / 2)."""

    name = "huber"
    kind = LossKind.HUBER
    smooth = True
    delta: float = 1.0

    def __post_init__(self) -> None:
        """Refuse a delta that is not above 0."""
        object.__setattr__(self, "delta", positive(self.delta, "huber's delta", ProblemError))

    @property
    def parameter(self) -> float:
        return self.delta


@dataclass(frozen=True)
class Quantile(Loss):
    """tau max(0, b - z) + (1 - tau) max(0, z - b); the slope is 0 at z = b."""

    name = "quantile"
    kind = LossKind.QUANTILE
    smooth = False
    tau: float = 0.5

    def __post_init__(self) -> None:
        """Refuse a tau outside the open interval from 0 to 1."""
        tau = positive(self.tau, "quantile's tau", ProblemError)
        if tau >= 1:
            raise ProblemError(f"quantile's tau must be below 1, not {tau:g}: 0.9 is the ninth decile")
        object.__setattr__(self, "tau", tau)

    @property
    def parameter(self) -> float:
        return self.tau


@dataclass(frozen=True)
class BallDistance(Loss):
    """dist(x, ball): max(0, |x - row| - b), rows are centres and labels radii; 0 is taken on the boundary."""

    name = "ball-distance"
    kind = LossKind.BALL_DISTANCE
    smooth = False

    def check_labels(self, labels: Vector, where: str, first_row: int = 0) -> None:
        wrong = labels < 0
        if wrong.any():
            row = int(np.argmax(wrong))
            raise DataError(
                f"{where}: the radius (label) of row {row + first_row} is {labels[row]:g}; a radius must be 0 or more"
            )


@dataclass(frozen=True)
class CustomLoss(Loss):
    """A loss of one's own: ``value(z, b)`` and ``slope(z, b)``, scalar functions that numba can compile.

    ``value`` must be convex in z, and ``slope(z, b)`` one of its subgradients in z. ``smooth`` says that
    ``slope`` is continuous. They cannot raise: a division by 0 gives an infinity, which ends the run. The functions may
    be plain Python or already decorated with ``numba.njit``::

        pseudo_huber = fism.CustomLoss(
            "pseudo-huber",
            value=lambda z, b: math.sqrt(1 + (z - b) ** 2) - 1,
            slope=lambda z, b: (z - b) / math.sqrt(1 + (z - b) ** 2),
            smooth=True,
        )
    """

    kind = LossKind.CUSTOM
    name: str
    value: Scalar
    slope: Scalar
    smooth: bool = False

    def __post_init__(self) -> None:
        """Refuse what cannot be called, and a built-in loss's name."""
        if not isinstance(self.name, str):
            raise ProblemError(f"the name of a loss must be text, not {self.name!r}")
        if self.name in LOSSES:
            raise ProblemError(f"the name {self.name!r} is taken by a built-in loss; choose another")
        for part in ("value", "slope"):
            if not callable(getattr(self, part)):
                raise ProblemError(f"the {part} of loss {self.name!r} must be a function of (z, b)")


LOSSES: dict[str, type[Loss]] = {
    loss.name: loss for loss in (Logistic, Hinge, SquaredHinge, Squared, Absolute, Huber, Quantile, BallDistance)
}


def named_loss(name: str, **parameters: float) -> Loss:
    """Return the built-in loss called ``name``; raise ProblemError for an unknown name or parameter."""
    if name not in LOSSES:
        raise ProblemError(f"there is no loss called {name!r}; there are {', '.join(LOSSES)}")
    loss = LOSSES[name]
    allowed = [field.name for field in fields(loss)]  # type: ignore[arg-type]
    unknown = sorted(set(parameters) - set(allowed))
    if unknown:
        raise ProblemError(f"the loss {name!r} has no parameter {unknown[0]!r}; it takes {allowed or 'none'}")
    return loss(**parameters)
