"""Custom losses: functions that a user writes and every client has a copy of."""

from __future__ import annotations

from dataclasses import dataclass

from fism_common.errors import ProblemError
from fism_common.problem.losses import LOSSES, Loss, Scalar

__all__ = ["CustomLoss"]


@dataclass(frozen=True)
class CustomLoss(Loss):
    """A custom loss: ``value(z, b)`` and ``slope(z, b)``, scalar functions that numba can compile.

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

    kind: str
    value: Scalar
    slope: Scalar
    smooth: bool = False

    def __post_init__(self) -> None:
        """Refuse what cannot be called, and a built-in loss's name."""
        if not isinstance(self.kind, str):
            raise ProblemError(f"the kind of a loss must be text, not {self.kind!r}")
        if self.kind in LOSSES:
            raise ProblemError(f"the kind {self.kind!r} is taken by a built-in loss; choose another")
        for part in ("value", "slope"):
            if not callable(getattr(self, part)):
                raise ProblemError(f"the {part} of loss {self.kind!r} must be a function of (z, b)")

    @property
    def parameter(self) -> float:
        return 0.0
