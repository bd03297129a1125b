"""FISM and the methods to compare it with, each as an oracle that answers the questions of one loop.

The other methods need H where the rows are, so no server runs them.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

import numpy as np

from fism.irig_kernel import irig_pass
from fism_client.compute import kernel_cache
from fism_client.compute.local_pass import LocalPass
from fism_client.data.shard import SparseRows
from fism_common.errors import MethodError
from fism_common.exchange import Pass, PassAnswer, Total
from fism_server.federation.aggregation import OpenAggregation
from fism_server.federation.participation import AllClients
from fism_server.problem.outer import Separable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from fism.problem import Problem
    from fism_client.data.shard import Entries, Shard
    from fism_common.problem.sets import ConstraintSet
    from fism_common.vectors import Vector
    from fism_server.problem.outer import OuterObjective

__all__ = ["Method"]

_BLOCK_ENTRIES = 2**22
_ARMIJO_SHARE = 1e-4


class Method(StrEnum):
    """The methods of ``fism.solve``."""

    FISM = "fism"
    IR_IG = "ir-ig"
    TIKHONOV = "tikhonov"
    INCREMENTAL = "incremental"
    EXPLICIT_DESCENT = "explicit-descent"
    R_FEDAVG = "r-fedavg"


class Oracle(Protocol):
    """Where the sums of a round come from."""

    subgradients: int
    """How many subgradients of f and of H one round computes."""
    spare: float
    """Seconds that the last round would have saved if all clients had worked in parallel."""

    def total(self, question: Pass) -> Total:
        """Return the sums over all answers to a question."""


def oracle(method: Method, problem: Problem, sites: Sequence[LocalPass], local_steps: int) -> Oracle:
    """Return the oracle of ``method``; raise MethodError if the method does not fit the problem."""
    match method:
        case Method.IR_IG:
            outer = problem.outer
            if isinstance(outer, Separable) and type(outer).subgradient is Separable.subgradient:
                return CompiledIrig(sites, outer)
            return RowByRowIrig(sites, problem.outer)
        case Method.EXPLICIT_DESCENT:
            _require_smooth(method, problem)
            return ExplicitDescent(sites, problem)
        case Method.R_FEDAVG:
            _require_smooth(method, problem)
            return RegularizedFedAvg(sites, problem, local_steps)
    return Federated(sites, problem.constraint)


@dataclass(frozen=True, eq=False)
class Client:
    """A client in this process, as an aggregation sees it."""

    site: LocalPass
    virtual_clients: int = 1

    @property
    def rows(self) -> int:
        """How many rows it trains on."""
        return self.site.shard.count


class Federated:
    """FISM: every client runs its own pass. Participation and aggregation are the server's."""

    def __init__(self, sites: Sequence[LocalPass], constraint: ConstraintSet) -> None:
        """Take the clients, in federation order, and X."""
        self._clients = [Client(site) for site in sites]
        self._participation = AllClients()
        self._aggregation = OpenAggregation(constraint, sites[0].shard.columns)
        self.subgradients = _rows(sites) + 1
        self.spare = 0.0

    def total(self, question: Pass) -> Total:
        """Return the sums over every client's answer."""
        chosen = self._participation.choose(self._clients)
        total, self.spare = _in_turn(LocalPass.answer, question, chosen, self._aggregation)
        return total


class RowByRowIrig:
    """IR-IG of Amini and Yousefian: one pass over all rows in client order, a new subgradient of H at every row."""

    spare = 0.0

    def __init__(self, sites: Sequence[LocalPass], outer: OuterObjective) -> None:
        """Take the clients in the order of their rows, and H, which must be known where the rows are."""
        self._sites, self._outer = sites, outer
        self.subgradients = 2 * _rows(sites)

    def total(self, question: Pass) -> Total:
        """Return the sums of the one pass."""
        x, inner = question.x.copy(), 0.0
        rows = ((site, j) for site in self._sites for j in range(site.shard.count))
        for i, (site, j) in enumerate(rows):
            # The question already has h at the first row.
            fresh = question if i == 0 else replace(question, h=self._outer.subgradient(x))
            inner += site.advance(x, fresh, j, j + 1)
        return Total(1, inner, x)


class CompiledIrig:
    """IR-IG for an H whose subgradient the kernel can compute."""

    spare = 0.0

    def __init__(self, sites: Sequence[LocalPass], outer: Separable) -> None:
        """Take the clients in the order of their rows, and H; compile or load the kernel."""
        self._sites, self._l2 = sites, outer.l2
        n = sites[0].shard.columns
        self._l1, self._anchor = np.full(n, outer.l1), np.full(n, outer.anchor)
        self.subgradients = 2 * _rows(sites)
        x = np.zeros(n)
        with kernel_cache.first_call():
            for site in sites:
                rows, labels = next(_dense_blocks(site.shard))
                self._run(site, rows[:0], labels[:0], Pass(x, x, 0.0, 0.0), x)

    def total(self, question: Pass) -> Total:
        """Return the sums of the one pass."""
        x, inner = question.x.copy(), 0.0
        for site in self._sites:
            for rows, labels in _dense_blocks(site.shard):
                inner += self._run(site, rows, labels, question, x)
        return Total(1, inner, x)

    def _run(self, site: LocalPass, rows: Entries, labels: Vector, question: Pass, x: Vector) -> float:
        data = (rows, site.shard.scale, labels, site.formula, site.region)
        H = (self._l1, self._l2, self._anchor)
        return irig_pass(*data, question.x, *H, question.gamma * question.weight, question.gamma, x)


class ExplicitDescent:
    """Solodov's method: one projected gradient step on F + lambda_k H, with Armijo's rule from alpha = gamma_k."""

    spare = 0.0

    def __init__(self, sites: Sequence[LocalPass], problem: Problem) -> None:
        """Take the clients and a smooth problem."""
        self._sites, self._problem = sites, problem
        self._m = _rows(sites)
        self.subgradients = self._m + 1
        for site in sites:
            site.warm_points()

    def total(self, question: Pass) -> Total:
        """Return the sums of the one step."""
        outer, project = self._problem.outer, self._problem.constraint.project
        lam = question.weight * self._m
        inner, slope = self._gradient(question.x)
        slope += lam * question.h
        merit, alpha = inner + lam * outer.value(question.x), question.gamma
        while True:
            x = project(question.x - alpha * slope)
            gain = float(np.sum(slope * (question.x - x)))
            found = sum(site.value(x) for site in self._sites) + lam * outer.value(x)
            # If the step is so short that x does not move, x is stationary.
            if found <= merit - _ARMIJO_SHARE * gain or np.array_equal(x, question.x):
                return Total(1, inner, x)
            alpha /= 2

    def _gradient(self, x: Vector) -> tuple[float, Vector]:
        slope = np.zeros_like(x)
        return sum(site.probe(x, slope) for site in self._sites), slope


class RegularizedFedAvg:
    """R-FedAvg of Ebrahimi et al.: several full-gradient steps on F_i + (lambda / S) H at every client."""

    def __init__(self, sites: Sequence[LocalPass], problem: Problem, local_steps: int) -> None:
        """Take the clients, a smooth problem, and how many steps a client takes in a round."""
        self._clients, self._problem, self._steps = [Client(site) for site in sites], problem, local_steps
        self._aggregation = OpenAggregation(problem.constraint, sites[0].shard.columns)
        self._m = _rows(sites)
        self.subgradients = local_steps * (self._m + len(sites))
        self.spare = 0.0
        for site in sites:
            site.warm_points()

    def total(self, question: Pass) -> Total:
        """Return the sums over every client's answer."""
        total, self.spare = _in_turn(self._answer, question, self._clients, self._aggregation)
        return total

    def _answer(self, site: LocalPass, question: Pass) -> PassAnswer:
        outer, project = self._problem.outer, self._problem.constraint.project
        share = question.weight * self._m / len(self._clients)
        x, inner = question.x, 0.0
        for step in range(self._steps):
            slope = share * outer.subgradient(x)
            value = site.probe(x, slope)
            inner = value if step == 0 else inner
            x = project(x - (question.gamma / self._steps) * slope)
        return PassAnswer(site.on_grid(x, question.summands), (inner,))


def _require_smooth(method: Method, problem: Problem) -> None:
    if not problem.loss.smooth:
        raise MethodError(f"the method {method.value!r} needs a smooth loss, but {problem.loss.kind!r} is not smooth")
    if not problem.outer.smooth:
        name = type(problem.outer).__name__
        raise MethodError(
            f"the method {method.value!r} needs a smooth outer objective, but this {name} is not; "
            "a custom objective that is smooth must set smooth = True"
        )


def _in_turn(
    answer: Callable[[LocalPass, Pass], PassAnswer],
    question: Pass,
    clients: Sequence[Client],
    aggregation: OpenAggregation,
) -> tuple[Total, float]:
    """Return the sums over every client's answer, and the total seconds of all clients but the slowest."""
    sums, times = aggregation.begin(clients), []
    asked = replace(question, summands=sums.summands)
    for client in clients:
        began = time.perf_counter()
        sums.add(answer(client.site, asked), client)
        times.append(time.perf_counter() - began)
    return sums.total(), sum(times) - max(times)


def _rows(sites: Sequence[LocalPass]) -> int:
    return sum(site.shard.count for site in sites)


def _dense_blocks(shard: Shard) -> Iterator[tuple[Entries, Vector]]:
    """Yield (rows, labels) of a shard as dense tables: all at once if it is dense, else a block of rows at a time."""
    rows, labels = shard.rows, shard.labels
    if not isinstance(rows, SparseRows):
        yield rows, labels
        return
    height = max(1, _BLOCK_ENTRIES // shard.columns)
    for begin in range(0, shard.count, height):
        bounds = rows.indptr[begin : begin + height + 1]
        entries, lengths = slice(bounds[0], bounds[-1]), np.diff(bounds)
        block = np.zeros((lengths.size, shard.columns), rows.data.dtype)
        block[np.repeat(np.arange(lengths.size), lengths), rows.indices[entries]] = rows.data[entries]
        yield block, labels[begin : begin + height]
