"""What one round asks of a client, and what the client answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fism_common.vectors import Vector


@dataclass(frozen=True, slots=True)
class Order:
    """Round k, from the server to every client: the point, one subgradient of H there, and two scalars."""

    round: int
    x: Vector
    h: Vector
    gamma: float
    weight: float
    """lambda_k / m."""


@dataclass(frozen=True, slots=True)
class Reply:
    """One client's answer to an order."""

    x: Vector
    """Where the client's pass over its rows ended; for several virtual clients, the sum of where theirs did."""
    inner: float
    """F_i at the order's x, before the pass."""
    shards: int = 1
    """How many virtual clients this answers for."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """How a model does on rows held out: counts and sums, so that those of several clients add up."""

    rows: int
    right: int | None
    """Rows on the right side, for a loss with classes."""
    loss: float
    """The sum of the losses."""

    def __add__(self, other: Evaluation) -> Evaluation:
        """Return the evaluation of both clients' rows together."""
        right = None if self.right is None or other.right is None else self.right + other.right
        return Evaluation(self.rows + other.rows, right, self.loss + other.loss)
