"""Aggregation: how the answers to a question become sums."""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Protocol

from fism_common.data.moments import merge
from fism_common.exchange import MomentsAnswer, PassAnswer, ProbeAnswer, Total
from fism_server.federation.acceptance import answer_fault, moments_fault, slack

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fism_common.data.moments import ColumnMoments
    from fism_common.exchange import Answer
    from fism_common.problem.sets import ConstraintSet
    from fism_common.vectors import Vector


class Contributor(Protocol):
    """What an aggregation needs to know about a client."""

    @property
    def rows(self) -> int:
        """The rows that it trains on."""

    @property
    def virtual_clients(self) -> int:
        """How many summands it stands for."""


class Sums(Protocol):
    """The sums over the answers to one question."""

    def fault(self, answer: Answer, contributor: Contributor) -> str | None:
        """Return why an answer cannot be used; None if it can."""

    def add(self, answer: Answer, contributor: Contributor) -> None:
        """Add an answer that can be used."""

    def total(self) -> Total:
        """Return the sums over the answers to a Pass, a Probe or a Solution."""

    def moments(self) -> ColumnMoments:
        """Return the moments of all clients' rows together, after a Moments question."""


class Aggregation(Protocol):
    """Turns answers into sums."""

    def begin(self, contributors: Sequence[Contributor]) -> Sums:
        """Return empty sums for a question to these clients, in federation order."""


class OpenAggregation:
    """The server sees every answer, checks it, and adds the answers up in federation order."""

    def __init__(self, constraint: ConstraintSet, n: int, numeric: Sequence[bool] = ()) -> None:
        """Take X in n dimensions, and which columns are standardised."""
        self.constraint, self.numeric = constraint, numeric
        self.slack = slack(constraint, n)

    def begin(self, contributors: Sequence[Contributor]) -> OpenSums:
        """Return empty sums."""
        return OpenSums(self, contributors)


class OpenSums:
    """Keeps the answers until all of them have arrived: floating point addition depends on the order."""

    def __init__(self, aggregation: OpenAggregation, contributors: Sequence[Contributor]) -> None:
        """Expect answers from these clients, in federation order."""
        self._rules, self._contributors = aggregation, contributors
        self._answers: dict[Contributor, Answer] = {}

    def fault(self, answer: Answer, contributor: Contributor) -> str | None:
        """Return why an answer cannot be used; None if it can."""
        rules = self._rules
        if isinstance(answer, MomentsAnswer):
            return moments_fault(answer.moments, contributor.rows, rules.numeric)
        return answer_fault(answer, contributor.virtual_clients, rules.constraint, rules.slack)

    def add(self, answer: Answer, contributor: Contributor) -> None:
        """Take an answer."""
        self._answers[contributor] = answer

    def total(self) -> Total:
        """Return the sums."""
        inner, vectors, held_out = 0.0, [], []
        there = [one for one in self._contributors if one in self._answers]
        for one in there:
            answer = self._answers[one]
            assert not isinstance(answer, MomentsAnswer)  # noqa: S101  # they are merged, not added
            inner += answer.inner
            if isinstance(answer, PassAnswer):
                vectors.append(answer.points)
            elif isinstance(answer, ProbeAnswer):
                vectors.append(answer.subgradient)
            if answer.held_out is not None:
                held_out.append(answer.held_out)
        points = bool(there) and isinstance(self._answers[there[0]], PassAnswer)
        total = _sum(vectors) if vectors else None
        return Total(
            clients=sum(one.virtual_clients for one in there),
            inner=inner,
            points=total if points else None,
            subgradient=None if points else total,
            held_out=reduce(add, held_out) if held_out else None,
        )

    def moments(self) -> ColumnMoments:
        """Return the merged moments."""
        answers = [self._answers[one] for one in self._contributors if one in self._answers]
        return merge([answer.moments for answer in answers if isinstance(answer, MomentsAnswer)])


def _sum(vectors: Sequence[Vector]) -> Vector:
    """Return the sum in the order given: floating point addition depends on it."""
    total = vectors[0].copy()
    for vector in vectors[1:]:
        total += vector
    return total
