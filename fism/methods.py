"""The methods: FISM, and those to compare it with. Each gathers the replies to the orders of the one round loop."""

from __future__ import annotations

import time
from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

import numpy as np

from fism.irig_kernel import irig_pass
from fism_client.compute import kernel_cache
from fism_client.data.shard import SparseRows
from fism_common.errors import MethodError
from fism_common.exchange import Order, Reply
from fism_server.problem.outer import Separable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from fism.problem import Problem
    from fism_client.compute.local_pass import LocalPass
    from fism_client.data.shard import Entries, Shard
    from fism_common.vectors import Vector
    from fism_server.problem.outer import OuterObjective

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


class Gatherer(Protocol):
    """Where the replies of a round come from."""

    subgradients: int
    """How many subgradients of f and of H a round takes."""
    spare: float
    """Seconds that the last gathering would have been shorter by, had all clients worked at once."""

    def gather(self, order: Order) -> Sequence[Reply]:
        """Return the replies to ``order``, in federation order."""


def gatherer(method: Method, problem: Problem, sites: Sequence[LocalPass], local_steps: int) -> Gatherer:
    """Return what answers the orders of ``method``; raise MethodError if it does not fit the problem."""
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
    return Federated(sites)


class Federated:
    """FISM: every client runs its own pass; m subgradients of f, and the order's one of H."""

    def __init__(self, sites: Sequence[LocalPass]) -> None:
        """Take the clients, in federation order."""
        self._sites = sites
        self.subgradients = _rows(sites) + 1
        self.spare = 0.0

    def gather(self, order: Order) -> Sequence[Reply]:
        """Return every client's reply."""
        replies, self.spare = _in_turn(lambda site: site.answer(order), self._sites)
        return replies


class RowByRowIrig:
    """IR-IG of Amini and Yousefian: one pass over all rows in client order, H's subgradient fresh at every row."""

    spare = 0.0

    def __init__(self, sites: Sequence[LocalPass], outer: OuterObjective) -> None:
        """Take the clients in the order of their rows, and H, which must be known where the rows are."""
        self._sites, self._outer = sites, outer
        self.subgradients = 2 * _rows(sites)

    def gather(self, order: Order) -> Sequence[Reply]:
        """Return one reply, of the one pass."""
        x, inner = order.x.copy(), 0.0
        rows = ((site, j) for site in self._sites for j in range(site.shard.count))
        for i, (site, j) in enumerate(rows):
            # The order's own h is the one at the first row.
            fresh = order if i == 0 else replace(order, h=self._outer.subgradient(x))
            inner += site.advance(x, fresh, j, j + 1)
        return [Reply(x, inner)]


class CompiledIrig:
    """IR-IG again, for an H whose subgradient a kernel can take."""

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
                self._run(site, rows[:0], labels[:0], Order(0, x, x, 0.0, 0.0), x)

    def gather(self, order: Order) -> Sequence[Reply]:
        """Return one reply, of the one pass."""
        x, inner = order.x.copy(), 0.0
        for site in self._sites:
            for rows, labels in _dense_blocks(site.shard):
                inner += self._run(site, rows, labels, order, x)
        return [Reply(x, inner)]

    def _run(self, site: LocalPass, rows: Entries, labels: Vector, order: Order, x: Vector) -> float:
        data = (rows, site.shard.scale, labels, site.formula, site.region)
        H = (self._l1, self._l2, self._anchor)
        return irig_pass(*data, order.x, *H, order.gamma * order.weight, order.gamma, x)


class ExplicitDescent:
    """Solodov's method: one projected gradient step on F + lambda_k H, with Armijo's rule from alpha = gamma_k."""

    spare = 0.0

    def __init__(self, sites: Sequence[LocalPass], problem: Problem) -> None:
        """Take the clients and a smooth problem."""
        self._sites, self._problem = sites, problem
        self._m = _rows(sites)
        self.subgradients = self._m + 1
        for site in sites:
            site.warm_gradient()

    def gather(self, order: Order) -> Sequence[Reply]:
        """Return one reply, of the one step."""
        outer, project = self._problem.outer, self._problem.constraint.project
        lam = order.weight * self._m
        inner, slope = self._gradient(order.x)
        slope += lam * order.h
        merit, alpha = inner + lam * outer.value(order.x), order.gamma
        while True:
            x = project(order.x - alpha * slope)
            gain = float(np.sum(slope * (order.x - x)))
            found = sum(site.inner(x) for site in self._sites) + lam * outer.value(x)
            # Where even a step too short to move x is reached, x is stationary.
            if found <= merit - _ARMIJO_SHARE * gain or np.array_equal(x, order.x):
                return [Reply(x, inner)]
            alpha /= 2

    def _gradient(self, x: Vector) -> tuple[float, Vector]:
        slope = np.zeros_like(x)
        return sum(site.gradient(x, slope) for site in self._sites), slope


class RegularizedFedAvg:
    """R-FedAvg after Ebrahimi et al.: whole gradients of F_i + (lambda / S) H, several steps on every client."""

    def __init__(self, sites: Sequence[LocalPass], problem: Problem, local_steps: int) -> None:
        """Take the clients, a smooth problem, and how many steps a client takes in a round."""
        self._sites, self._problem, self._steps = sites, problem, local_steps
        self._m = _rows(sites)
        self.subgradients = local_steps * (self._m + len(sites))
        self.spare = 0.0
        for site in sites:
            site.warm_gradient()

    def gather(self, order: Order) -> Sequence[Reply]:
        """Return every client's reply."""
        replies, self.spare = _in_turn(lambda site: self._answer(site, order), self._sites)
        return replies

    def _answer(self, site: LocalPass, order: Order) -> Reply:
        outer, project = self._problem.outer, self._problem.constraint.project
        share = order.weight * self._m / len(self._sites)
        x, inner = order.x, 0.0
        for step in range(self._steps):
            slope = share * outer.subgradient(x)
            value = site.gradient(x, slope)
            inner = value if step == 0 else inner
            x = project(x - (order.gamma / self._steps) * slope)
        return Reply(x, inner)


def _require_smooth(method: Method, problem: Problem) -> None:
    if not problem.loss.smooth:
        raise MethodError(f"the method {method.value!r} needs a smooth loss, and {problem.loss.name!r} is not")
    if not problem.outer.smooth:
        name = type(problem.outer).__name__
        raise MethodError(
            f"the method {method.value!r} needs a smooth outer objective, and this {name} is not; "
            "one of your own that is says so by smooth = True"
        )


def _in_turn(answer: Callable[[LocalPass], Reply], sites: Sequence[LocalPass]) -> tuple[list[Reply], float]:
    """Return every client's reply, and the seconds of all of them but the slowest."""
    replies, times = [], []
    for site in sites:
        began = time.perf_counter()
        replies.append(answer(site))
        times.append(time.perf_counter() - began)
    return replies, sum(times) - max(times)


def _rows(sites: Sequence[LocalPass]) -> int:
    return sum(site.shard.count for site in sites)


def _dense_blocks(shard: Shard) -> Iterator[tuple[Entries, Vector]]:
    """Yield (rows, labels) of a shard as dense tables: the whole of it, or a few sparse rows at a time."""
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
