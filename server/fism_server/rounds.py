"""The round loop: Algorithm 1 seen from the server. No gRPC, no clock, no disk."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

from fism_common.errors import NumericalError
from fism_common.exchange import Order, Reply
from fism_common.steps import step

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fism_common.steps import Schedule
    from fism_common.vectors import Vector
    from fism_server.outer import OuterObjective


class Stop(StrEnum):
    """Why a run ended."""

    ROUNDS = "rounds"
    TOLERANCE = "tolerance"


@dataclass(frozen=True, slots=True)
class Record:
    """What is known of round k: all of it at x_k, before the round, but for the change that the round made."""

    round: int
    gamma: float
    lam: float
    inner: float
    outer: float
    change: float
    """|x_{k+1} - x_k| / (|x_k| + 1)."""


class Rounds:
    """One run: ask for an order, gather the replies wherever they come from, close the round, until it has stopped.

    ::

        while rounds.stopped is None:
            record = rounds.close(gather(rounds.order()))
        rounds.conclude(F at rounds.x)

    Replies come in federation order, which is the order of every sum here: floating point addition depends on it.
    """

    def __init__(  # noqa: PLR0913  # one value each for every symbol of the algorithm
        self,
        outer: OuterObjective,
        steps: Schedule,
        *,
        m: int,
        start: Vector,
        rounds: int,
        first_round: int = 1,
        tolerance: float | None = None,
    ) -> None:
        """Begin round ``first_round`` at ``start``, a point of X; ``m`` counts all rows of all clients."""
        self.x = start
        self.round = first_round
        self.stopped: Stop | None = None
        self._outer, self._steps, self._m, self._tolerance = outer, steps, m, tolerance
        self._end = first_round + rounds
        self._H = outer.value(start)
        self._before: Record | None = None
        self._order: Order | None = None
        self._averaged, self._gammas = np.zeros_like(start), 0.0
        self._weighted, self._weights = np.zeros_like(start), 0

    def order(self) -> Order:
        """Return what round k asks of every client: the same object until the round is closed."""
        if self._order is None:
            gamma, lam = step(self._steps, self.round)
            self._order = Order(self.round, self.x, self._outer.subgradient(self.x), gamma, lam / self._m)
        return self._order

    def close(self, replies: Sequence[Reply]) -> Record | None:
        """Take the mean of the replies to the current order, and go on to the next round.

        Returns the round's record; or None if F at x_k shows that the run had settled one round ago: then ``x`` is
        the answer and these replies are discarded.
        """
        order = self.order()
        inner = sum(reply.inner for reply in replies)
        if self._settled(inner):
            self.stopped = Stop.TOLERANCE
            return None
        # The mean is uniform, also when shards differ in size: a longer pass has already moved further.
        after = replies[0].x.copy()
        for reply in replies[1:]:
            after += reply.x
        after /= len(replies)
        change = _relative(after, self.x)
        if not np.isfinite([inner, self._H, change]).all():
            raise NumericalError(
                f"round {order.round} overflowed (F = {inner}, H = {self._H}, change = {change}): "
                "scale the columns, or lower gamma"
            )
        self._average(order)
        _, lam = step(self._steps, order.round)
        self._before = Record(order.round, order.gamma, lam, inner, self._H, change)
        self.x, self._H, self._order = after, self._outer.value(after), None
        self.round += 1
        if self.round == self._end:
            self.stopped = Stop.ROUNDS
        return self._before

    def conclude(self, inner: float) -> float:
        """Take F at the answer ``x``, which the stop rule still needs after the last round; return H there."""
        if self._settled(inner):
            self.stopped = Stop.TOLERANCE
        return self._H

    @property
    def average(self) -> Vector:
        """The ergodic mean, sum gamma_k x_k / sum gamma_k over the closed rounds, x_k being before round k."""
        return self._averaged / self._gammas

    @property
    def weighted(self) -> Vector:
        """The k-weighted mean, sum k x_k / sum k over the same x_k."""
        return self._weighted / self._weights

    def _average(self, order: Order) -> None:
        self._averaged += order.gamma * order.x
        self._gammas += order.gamma
        self._weighted += order.round * order.x
        self._weights += order.round

    def _settled(self, inner: float) -> bool:
        """Whether the stop rule is met by the round before, now that F at its end is known."""
        before = self._before
        if self._tolerance is None or before is None:
            return False
        outer_change = abs(self._H - before.outer) / (abs(before.outer) + 1)
        inner_change = abs(inner - before.inner) / (abs(before.inner) + 1)
        return max(before.change, outer_change, inner_change) <= self._tolerance


def _relative(after: Vector, before: Vector) -> float:
    return _norm(after - before) / (_norm(before) + 1)


def _norm(x: Vector) -> float:
    # Not np.linalg.norm: threads of a BLAS may change the order of a long sum. An overflow shows in the change.
    with np.errstate(over="ignore"):
        return float(np.sqrt(np.sum(x * x)))
