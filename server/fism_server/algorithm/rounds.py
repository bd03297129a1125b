"""The round loop: Algorithm 1 seen from the server. No gRPC, no clock, no disk."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

from fism_common.errors import NumericalError, ProblemError
from fism_common.exchange import Order, Reply
from fism_common.vectors import norm, real_numbers
from fism_server.algorithm.step_rules import step

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fism_common.vectors import Vector
    from fism_server.algorithm.step_rules import Schedule
    from fism_server.problem.outer import OuterObjective


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


@dataclass(slots=True)
class State:
    """All that a run needs to go on from round k."""

    round: int
    x: Vector
    last: Record | None
    """The record of the round before, which the stop rule compares with; None if F was another one then."""
    gamma_sum_x: Vector
    gamma_sum: float
    k_sum_x: Vector
    k_sum: int
    since: int
    """The first round in the two means."""
    stopped: Stop | None = None
    """Why there are no more rounds, if there are none."""

    @classmethod
    def at(cls, round_: int, x: Vector) -> State:
        """Return the state of a run that begins round ``round_`` at ``x``."""
        return cls(round_, x, None, np.zeros_like(x), 0.0, np.zeros_like(x), 0, round_)

    def advance(self, record: Record, after: Vector) -> None:
        """Take x_k into the means, and go on to x_{k+1}."""
        self.gamma_sum_x += record.gamma * self.x
        self.gamma_sum += record.gamma
        self.k_sum_x += record.round * self.x
        self.k_sum += record.round
        self.round, self.x, self.last = record.round + 1, after, record

    @property
    def average(self) -> Vector:
        """The ergodic mean, sum gamma_k x_k / sum gamma_k over the closed rounds, x_k being before round k."""
        return self.gamma_sum_x / self.gamma_sum

    @property
    def weighted(self) -> Vector:
        """The k-weighted mean, sum k x_k / sum k over the same x_k."""
        return self.k_sum_x / self.k_sum


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
        state: State,
        last_round: int,
        tolerance: float | None = None,
    ) -> None:
        """Go on from ``state``, whose x is a point of X; ``m`` counts all rows of all clients."""
        self._outer, self._steps, self._m, self._tolerance = outer, steps, m, tolerance
        self._last_round = last_round
        self._H = self._value(state.x)
        self._order: Order | None = None
        self.state = state
        self._stop_after_last()

    @property
    def stopped(self) -> Stop | None:
        """Why there are no more rounds; None while there are."""
        return self.state.stopped

    @property
    def x(self) -> Vector:
        """The current point: x_k before round k, and at the end the answer."""
        return self.state.x

    def order(self) -> Order:
        """Return what round k asks of every client: the same object until the round is closed."""
        if self._order is None:
            k, x = self.state.round, self.state.x
            gamma, lam = step(self._steps, k)
            self._order = Order(k, x, self._subgradient(x), gamma, lam / self._m)
        return self._order

    def close(self, replies: Sequence[Reply]) -> Record | None:
        """Take the mean of the replies to the current order, and go on to the next round.

        Returns the round's record; or None if F at x_k shows that the run had settled one round ago: then ``x`` is
        the answer and these replies are discarded.
        """
        order = self.order()
        inner = sum(reply.inner for reply in replies)
        self._check_finite(order.round, F=inner, H=self._H)
        if self._settled(inner):
            self.state.stopped = Stop.TOLERANCE
            return None
        # The mean is uniform, also when shards differ in size: a longer pass has already moved further.
        after = replies[0].x.copy()
        for reply in replies[1:]:
            after += reply.x
        after /= sum(reply.shards for reply in replies)
        change = _relative(after, self.x)
        self._check_finite(order.round, change=change)
        _, lam = step(self._steps, order.round)
        record = Record(order.round, order.gamma, lam, inner, self._H, change)
        self._H, self._order = self._value(after), None
        self.state.advance(record, after)
        self._stop_after_last()
        return record

    def restart(self, m: int) -> None:
        """Begin the current round again with other clients, which have ``m`` rows: the same x_k, h and gamma_k.

        F is another function from here on: the stop rule does not compare it with what it was, and both means begin
        anew. After the last round there is nothing to begin again, and the means stay.
        """
        self._m, self.state.last = m, None
        if self.stopped is None:
            order = self.order()
            _, lam = step(self._steps, order.round)
            self._order = replace(order, weight=lam / m)
            self.state = State.at(order.round, self.x)

    def conclude(self, inner: float) -> float:
        """Take F at the answer ``x``, which the stop rule still needs after the last round; return H there."""
        self._check_finite(self.state.round, F=inner, H=self._H)
        if self._settled(inner):
            self.state.stopped = Stop.TOLERANCE
        return self._H

    def _stop_after_last(self) -> None:
        if self.state.round > self._last_round and self.stopped is None:
            self.state.stopped = Stop.ROUNDS

    def _subgradient(self, x: Vector) -> Vector:
        """Return H's subgradient, in the form that kernels and the wire rely on."""
        name = type(self._outer).__name__
        h = np.ascontiguousarray(
            real_numbers(self._outer.subgradient(x), f"a subgradient of {name}", ProblemError), float
        )
        if h.shape != x.shape:
            raise ProblemError(f"a subgradient of {name} must be of shape {x.shape}, not {h.shape}")
        if not np.isfinite(h).all():
            raise NumericalError(f"a subgradient of {name} is not finite in round {self.state.round}")
        return h

    def _value(self, x: Vector) -> float:
        value = real_numbers(self._outer.value(x), f"the value of {type(self._outer).__name__}", ProblemError)
        if value.ndim != 0:
            raise ProblemError(
                f"the value of {type(self._outer).__name__} must be a number, not of shape {value.shape}"
            )
        return float(value)

    @staticmethod
    def _check_finite(round_: int, **values: float) -> None:
        told = ", ".join(f"{name} = {value}" for name, value in values.items())
        if not np.isfinite(list(values.values())).all():
            raise NumericalError(
                f"round {round_} overflowed ({told}): scale the columns, lower gamma, or if the loss or H is your own, "
                "see that it is finite on X"
            )

    def _settled(self, inner: float) -> bool:
        """Whether the stop rule is met by the round before, now that F at its end is known."""
        before = self.state.last
        if self._tolerance is None or before is None:
            return False
        outer_change = abs(self._H - before.outer) / (abs(before.outer) + 1)
        inner_change = abs(inner - before.inner) / (abs(before.inner) + 1)
        return max(before.change, outer_change, inner_change) <= self._tolerance


def _relative(after: Vector, before: Vector) -> float:
    with np.errstate(over="ignore", invalid="ignore"):  # an overflow shows in the change
        return norm(after - before) / (norm(before) + 1)
