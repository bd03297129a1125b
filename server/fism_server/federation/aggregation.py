"""Aggregation: how the answers to a question become sums."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from fism_common.data.moments import merge
from fism_common.exchange import Evaluation, MomentsAnswer, PassAnswer, ProbeAnswer, Total
from fism_common.sums.doubles import rounded
from fism_common.sums.grid import grid_of
from fism_server.federation.acceptance import answer_fault, moments_fault, point_fault

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fism_common.data.moments import ColumnMoments
    from fism_common.exchange import Answer
    from fism_common.problem.sets import ConstraintSet
    from fism_common.sums.grid import Words
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

    @property
    def summands(self) -> int:
        """How many points are added up; virtual clients count one each."""

    def fault(self, answer: Answer, contributor: Contributor) -> str | None:
        """Return why an answer cannot be used; None if it can."""

    def add(self, answer: Answer, contributor: Contributor) -> None:
        """Add an answer that can be used."""

    def total(self) -> Total:
        """Return the sums over the answers to a Pass, a Probe or a Solution. They are then discarded."""

    def moments(self) -> ColumnMoments:
        """Return the moments of all clients' rows together, after a Moments question."""


class Aggregation(Protocol):
    """Turns answers into sums."""

    def begin(self, contributors: Sequence[Contributor]) -> Sums:
        """Return empty sums for a question to these clients, in federation order."""


class OpenAggregation:
    """The server sees every answer, checks it, and adds it up. Sums of points and of F are exact."""

    def __init__(self, constraint: ConstraintSet, n: int, numeric: NDArray[np.bool_] | None = None) -> None:
        """Take X in n dimensions, and which columns are standardised: by default all."""
        self.constraint, self.n = constraint, n
        self.numeric = np.ones(n, np.bool_) if numeric is None else numeric
        self.slack = constraint.slack(n)
        self.scratch = np.empty(n)
        """For a point that is checked: fresh memory for each would take longer than the check."""

    def begin(self, contributors: Sequence[Contributor]) -> OpenSums:
        """Return empty sums."""
        return OpenSums(self, contributors)


class OpenSums:
    """Adds an answer up when it arrives: one vector, whatever the number of clients.

    Subgradients and moments are kept until all have arrived, and added in federation order.
    """

    def __init__(self, aggregation: OpenAggregation, contributors: Sequence[Contributor]) -> None:
        """Expect answers from these clients, in federation order."""
        self._rules, self._contributors = aggregation, contributors
        self.summands = sum(one.virtual_clients for one in contributors)
        self._grid = grid_of(aggregation.constraint, aggregation.n, self.summands)
        self._clients = 0
        self._points: Words | None = None
        self._inner: list[float] = []
        self._held_out: list[Evaluation] = []
        self._subgradients: dict[Contributor, Vector] = {}
        self._moments: dict[Contributor, ColumnMoments] = {}

    def fault(self, answer: Answer, contributor: Contributor) -> str | None:
        """Return why an answer cannot be used; None if it can."""
        rules = self._rules
        if isinstance(answer, MomentsAnswer):
            return moments_fault(answer.moments, contributor.rows, rules.numeric)
        fault = answer_fault(answer)
        if fault is None and isinstance(answer, PassAnswer):
            values = self._grid.values(answer.points, rules.scratch)
            fault = point_fault(values, contributor.virtual_clients, rules.constraint, rules.slack)
        return fault

    def add(self, answer: Answer, contributor: Contributor) -> None:
        """Add an answer."""
        if isinstance(answer, MomentsAnswer):
            self._moments[contributor] = answer.moments
            return
        self._clients += contributor.virtual_clients
        self._inner += answer.inner
        if answer.held_out is not None:
            self._held_out.append(answer.held_out)
        if isinstance(answer, ProbeAnswer):
            self._subgradients[contributor] = answer.subgradient
        elif isinstance(answer, PassAnswer):
            if self._points is None:
                self._points = answer.points.copy()
            else:
                self._points += answer.points

    def total(self) -> Total:
        """Return the sums, and free the memory in which they were added up."""
        points, self._points = self._points, None
        subgradients = [self._subgradients[one] for one in self._contributors if one in self._subgradients]
        return Total(
            clients=self._clients,
            inner=rounded(self._inner),
            points=None if points is None else self._grid.values(points),
            subgradient=_sum(subgradients) if subgradients else None,
            held_out=Evaluation.total(self._held_out),
        )

    def moments(self) -> ColumnMoments:
        """Return the merged moments."""
        return merge([self._moments[one] for one in self._contributors if one in self._moments])


def _sum(vectors: Sequence[Vector]) -> Vector:
    """Return the sum in the order given: floating point addition depends on it."""
    total = vectors[0].copy()
    for vector in vectors[1:]:
        total += vector
    return total
