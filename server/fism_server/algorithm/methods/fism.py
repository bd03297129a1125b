"""FISM, Algorithm 1 of the paper, seen from the server."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Self

import numpy as np

from fism_common.errors import NumericalError
from fism_common.exchange import Pass, Total
from fism_common.vectors import norm
from fism_server.algorithm.methods.base import Method
from fism_server.algorithm.preference import Preference
from fism_server.algorithm.record import Record, Stop
from fism_server.algorithm.state import State
from fism_server.algorithm.step_rules import checked_step

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fism_common.vectors import Vector
    from fism_server.algorithm.state import Number
    from fism_server.algorithm.step_rules import StepRule
    from fism_server.algorithm.stop_rules import StopRule
    from fism_server.problem.outer import OuterObjective

_STEPS, _STOP = "steps.", "stop."
_RECORD = tuple(field.name for field in fields(Record) if field.name != "round")


@dataclass(slots=True)
class FismState:
    """Where a run of FISM is."""

    round: int
    x: Vector
    last: Record | None
    """The record of the round before, which the stop rule compares with; None if F has changed since."""
    gamma_sum_x: Vector
    gamma_sum: float
    k_sum_x: Vector
    k_sum: int
    since: int
    """The first round in the two means."""
    stopped: Stop | None = None

    @classmethod
    def at(cls, round_: int, x: Vector) -> Self:
        """Return the progress of a run that begins round ``round_`` at ``x``."""
        return cls(round_, x, None, np.zeros_like(x), 0.0, np.zeros_like(x), 0, round_)

    @classmethod
    def restored(cls, state: State) -> Self:
        """Return the progress that a state describes."""
        numbers = dict(state.numbers)
        last = None
        if numbers["last_inner"] is not None:
            last = Record(state.round - 1, *(float(numbers[f"last_{name}"] or 0.0) for name in _RECORD))
        stopped = numbers["stopped"]
        return cls(
            round=state.round,
            x=state.vectors["x"],
            last=last,
            gamma_sum_x=state.vectors["gamma_sum_x"],
            gamma_sum=float(numbers["gamma_sum"] or 0.0),
            k_sum_x=state.vectors["k_sum_x"],
            k_sum=int(numbers["k_sum"] or 0),
            since=int(numbers["since"] or 0),
            stopped=None if stopped is None else Stop(str(stopped)),
        )

    def state(self) -> State:
        """Return it as named numbers and vectors."""
        before = {} if self.last is None else asdict(self.last)
        numbers: dict[str, Number] = {
            "gamma_sum": self.gamma_sum,
            "k_sum": self.k_sum,
            "since": self.since,
            "stopped": self.stopped,
            **{f"last_{name}": before.get(name) for name in _RECORD},
        }
        vectors = {"x": self.x, "gamma_sum_x": self.gamma_sum_x, "k_sum_x": self.k_sum_x}
        return State(self.round, numbers, vectors)

    def means(self) -> dict[str, Vector]:
        """Return the k-weighted mean sum k x_k / sum k, and the ergodic mean sum gamma_k x_k / sum gamma_k.

        Both are over the closed rounds, with x_k before round k; there are none before the first round is closed.
        """
        if not self.k_sum:
            return {}
        return {"weighted": self.k_sum_x / self.k_sum, "average": self.gamma_sum_x / self.gamma_sum}

    def advance(self, record: Record, after: Vector) -> None:
        """Add x_k to the means, and move to x_{k+1}."""
        self.gamma_sum_x += record.gamma * self.x
        self.gamma_sum += record.gamma
        self.k_sum_x += record.round * self.x
        self.k_sum += record.round
        self.round, self.x, self.last = record.round + 1, after, record


class Fism(Method):
    """A run of FISM. The mean of the clients' points is uniform, also when shards differ in size."""

    def __init__(  # noqa: PLR0913  # one value for every symbol of the algorithm
        self,
        outer: OuterObjective,
        steps: StepRule,
        *,
        m: int,
        state: State,
        last_round: int,
        stop: StopRule | None = None,
        evaluate_every: int | None = None,
    ) -> None:
        """Continue from ``state``, whose x is a point of X; ``m`` counts the rows of all clients."""
        self._H, self._steps, self._m, self._stop = Preference(outer), steps, m, stop
        self._last_round, self._evaluate_every = last_round, evaluate_every
        self._outer = self._H.value(state.x)
        self._lam = 0.0
        self._question: Pass | None = None
        self.progress = FismState.restored(state)
        steps.restore(_own(state, _STEPS))
        if stop is not None:
            stop.restore(_own(state, _STOP))
        self._stop_after_last()

    @property
    def round(self) -> int:
        return self.progress.round

    @property
    def x(self) -> Vector:
        return self.progress.x

    @property
    def stopped(self) -> Stop | None:
        return self.progress.stopped

    @property
    def since(self) -> int:
        return self.progress.since

    def ask(self) -> Pass | None:
        if self.progress.stopped is not None:
            return None
        if self._question is None:
            k, x = self.progress.round, self.progress.x
            gamma, self._lam = checked_step(self._steps, self.progress)
            evaluate = self._evaluate_every is not None and k % self._evaluate_every == 0
            self._question = Pass(x, self._H.subgradient(x, k), gamma, self._lam / self._m, evaluate)
        return self._question

    def tell(self, total: Total) -> Record | None:
        question, before = self.ask(), self.progress
        assert question is not None  # noqa: S101  # there was a question
        assert total.points is not None  # noqa: S101  # the answer to a Pass
        _check_finite(before.round, F=total.inner, H=self._outer)
        if self._meets_stop_rule(total.inner):
            before.stopped = Stop.TOLERANCE
            return None
        after = np.divide(total.points, total.clients, out=total.points)  # in place: it may be millions of columns
        change = _relative(after, before.x)
        _check_finite(before.round, change=change)
        record = Record(before.round, question.gamma, self._lam, total.inner, self._outer, change)
        self._outer, self._question = self._H.value(after), None
        before.advance(record, after)
        self._stop_after_last()
        return record

    def restart(self, rows: int) -> None:
        """Start the current round again: the same x_k, h and gamma_k, with lambda_k over ``rows``.

        F is a different function from here on: the stop rule does not compare it with earlier values, and both means
        start over. After the last round there is nothing to start again, and the means stay.
        """
        self._m, self.progress.last = rows, None
        question = self.ask()
        if question is not None:
            self._question = replace(question, weight=self._lam / rows)
            self.progress = FismState.at(self.progress.round, self.progress.x)

    def conclude(self, inner: float) -> float:
        _check_finite(self.progress.round, F=inner, H=self._outer)
        if self._meets_stop_rule(inner):
            self.progress.stopped = Stop.TOLERANCE
        return self._outer

    def state(self) -> State:
        rules = {_STEPS: self._steps.save(), _STOP: {} if self._stop is None else self._stop.save()}
        kept = {prefix + name: value for prefix, numbers in rules.items() for name, value in numbers.items()}
        state = self.progress.state()
        return replace(state, numbers={**state.numbers, **kept})

    def means(self) -> Mapping[str, Vector]:
        return self.progress.means()

    def _stop_after_last(self) -> None:
        if self.progress.round > self._last_round and self.progress.stopped is None:
            self.progress.stopped = Stop.ROUNDS

    def _meets_stop_rule(self, inner: float) -> bool:
        """Whether the round before met the stop rule, now that F after it is known."""
        before = self.progress.last
        return self._stop is not None and before is not None and self._stop.met(before, inner, self._outer)


def start(x: Vector, round_: int = 1) -> State:
    """Return the state of a run that begins round ``round_`` at ``x``."""
    return FismState.at(round_, x).state()


def _own(state: State, prefix: str) -> dict[str, float]:
    """Return the numbers that a rule has saved."""
    given = {name: value for name, value in state.numbers.items() if name.startswith(prefix)}
    return {name.removeprefix(prefix): float(value or 0.0) for name, value in given.items()}


def _check_finite(round_: int, **values: float) -> None:
    if not all(map(math.isfinite, values.values())):
        shown = ", ".join(f"{name} = {value}" for name, value in values.items())
        raise NumericalError(
            f"round {round_} overflowed ({shown}): scale the columns, lower gamma, or if the loss or H is custom, "
            "check that it is finite on X"
        )


def _relative(after: Vector, before: Vector) -> float:
    with np.errstate(over="ignore", invalid="ignore"):  # an overflow shows in the change
        return norm(after - before) / (norm(before) + 1)
