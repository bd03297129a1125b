"""What the server asks of all clients, what one client answers, and what the algorithm sees: sums."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from fism_common.data.moments import ColumnMoments
    from fism_common.vectors import Vector


@dataclass(frozen=True, slots=True)
class Pass:
    """Run the incremental pass from ``x``: one projected step per row, each pulled by the subgradient ``h`` of H."""

    x: Vector
    h: Vector
    gamma: float
    weight: float
    """lambda_k / m."""
    evaluate: bool = False
    """Whether to evaluate ``x`` on the held-out rows as well."""


@dataclass(frozen=True, slots=True)
class Probe:
    """Return F_i and one exact subgradient of F_i at ``x``. No step is taken."""

    x: Vector
    evaluate: bool = False


@dataclass(frozen=True, slots=True)
class Moments:
    """Return the moments of the columns, so that all clients can standardise alike."""


@dataclass(frozen=True, slots=True)
class Solution:
    """Take the answer ``x`` of the run, and return F_i there."""

    x: Vector


Question: TypeAlias = Pass | Probe | Moments | Solution


@dataclass(frozen=True, slots=True)
class Evaluation:
    """How a model does on held-out rows: counts and sums, which add up over clients."""

    rows: int
    right: int | None
    """Correctly classified rows; None for a loss without classes."""
    loss: float
    """The sum of the losses."""

    def __add__(self, other: Evaluation) -> Evaluation:
        """Return the evaluation on both clients' rows together."""
        right = None if self.right is None or other.right is None else self.right + other.right
        return Evaluation(self.rows + other.rows, right, self.loss + other.loss)


# Answers are not frozen: that would triple the time to make one, and there are as many in a round as clients.


@dataclass(slots=True)
class PassAnswer:
    """One client's answer to ``Pass``."""

    points: Vector
    """Where the pass ended; the sum over the client's virtual clients."""
    inner: float
    """F_i at the question's x, before the pass."""
    held_out: Evaluation | None = None


@dataclass(slots=True)
class ProbeAnswer:
    """One client's answer to ``Probe``."""

    inner: float
    subgradient: Vector
    held_out: Evaluation | None = None


@dataclass(slots=True)
class MomentsAnswer:
    """One client's answer to ``Moments``."""

    moments: ColumnMoments


@dataclass(slots=True)
class SolutionAnswer:
    """One client's answer to ``Solution``."""

    inner: float
    held_out: Evaluation | None = None


Answer: TypeAlias = PassAnswer | ProbeAnswer | MomentsAnswer | SolutionAnswer


@dataclass(frozen=True, slots=True)
class Total:
    """The sums over all clients that answered a question: all that the algorithm ever sees."""

    clients: int
    """How many summands there are; virtual clients count one each."""
    inner: float
    """F at the question's x."""
    points: Vector | None = None
    """The sum of the points where the passes ended."""
    subgradient: Vector | None = None
    """A subgradient of F at the question's x."""
    held_out: Evaluation | None = None
