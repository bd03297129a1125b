"""What the server asks of all clients, what one client answers, and what the algorithm sees: sums."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from fism_common.sums.doubles import rounded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fism_common.data.moments import ColumnMoments
    from fism_common.sums.doubles import Parts
    from fism_common.sums.grid import Words
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
    summands: int = 1
    """How many points will be added up, which fixes the grid of the answers. The federation sets it, not the method."""


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


def with_summands(question: Question, summands: int) -> Question:
    """Return a method's question as the clients get it."""
    return replace(question, summands=summands) if isinstance(question, Pass) else question


@dataclass(frozen=True, slots=True)
class Evaluation:
    """How a model does on held-out rows: counts and sums, which add up over clients."""

    rows: int
    right: int | None
    """Correctly classified rows; None for a loss without classes."""
    loss: float
    """The sum of the losses."""

    @classmethod
    def total(cls, parts: Sequence[Evaluation]) -> Evaluation | None:
        """Return the evaluation on all clients' rows together; None if no client holds out rows."""
        if not parts:
            return None
        right = [part.right for part in parts if part.right is not None]
        loss = rounded(part.loss for part in parts)
        return cls(sum(part.rows for part in parts), sum(right) if len(right) == len(parts) else None, loss)


# Answers are not frozen: that would triple the time to make one, and there are as many in a round as clients.


@dataclass(slots=True)
class PassAnswer:
    """One client's answer to ``Pass``."""

    points: Words
    """Where the pass ended, on the grid; the sum over the client's virtual clients."""
    inner: Parts
    """F_i at the question's x, before the pass."""
    held_out: Evaluation | None = None


@dataclass(slots=True)
class ProbeAnswer:
    """One client's answer to ``Probe``."""

    inner: Parts
    subgradient: Vector
    held_out: Evaluation | None = None


@dataclass(slots=True)
class MomentsAnswer:
    """One client's answer to ``Moments``."""

    moments: ColumnMoments


@dataclass(slots=True)
class SolutionAnswer:
    """One client's answer to ``Solution``."""

    inner: Parts
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
