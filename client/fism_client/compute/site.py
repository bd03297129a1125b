"""What a client does with orders: its passes, on its cores, and the rows that it holds out."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Protocol

import numpy as np

from fism_client.compute.local_pass import LocalPass
from fism_client.data.shard import Shard
from fism_common.exchange import Evaluation, Order, Reply
from fism_common.problem.losses import CLASSIFYING

if TYPE_CHECKING:
    from fism_client.data.shard import Shard
    from fism_common.problem.losses import Loss
    from fism_common.problem.sets import ConstraintSet
    from fism_common.vectors import Vector


class Worker(Protocol):
    """Answers orders."""

    def answer(self, order: Order) -> Reply:
        """Return the reply to an order."""

    def inner(self, x: Vector) -> float:
        """Return F_i at ``x``."""

    def evaluate(self, x: Vector) -> Evaluation | None:
        """Return how ``x`` does on the rows held out; None if there are none."""


class Site:
    """A shard, or several virtual clients with a part of it each, on threads of their own."""

    def __init__(
        self, train: Shard, held_out: Shard | None, loss: Loss, constraint: ConstraintSet, shards: int
    ) -> None:
        """Split the rows, in order, into ``shards`` parts; compile or load the kernels."""
        self._passes = [LocalPass(part, loss, constraint) for part in train.split(shards)]
        self._held_out = None if held_out is None else LocalPass(held_out, loss, constraint)
        self._classes = loss.kind in CLASSIFYING
        self._pool = ThreadPoolExecutor(shards) if shards > 1 else None

    def answer(self, order: Order) -> Reply:
        """Return the sum of the virtual clients' replies, added in their order."""
        if self._pool is None:
            return self._passes[0].answer(order)
        replies = list(self._pool.map(lambda one: one.answer(order), self._passes))
        total = replies[0].x
        for reply in replies[1:]:
            total += reply.x
        return Reply(total, sum(reply.inner for reply in replies), len(replies))

    def inner(self, x: Vector) -> float:
        """Return F_i at ``x``."""
        return sum(one.inner(x) for one in self._passes)

    def evaluate(self, x: Vector) -> Evaluation | None:
        """Return how ``x`` does on the rows held out; None if there are none."""
        if self._held_out is None:
            return None
        shard = self._held_out.shard
        right = int(np.sum((shard.scores(x) > 0) == (shard.labels > 0))) if self._classes else None
        return Evaluation(shard.count, right, self._held_out.inner(x))
