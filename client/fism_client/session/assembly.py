"""What comes on a client's stream, and what it answers."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from fism_common.exchange import Order
from fism_common.wire.codec import Assembly, reply_messages, to_message
from fism_common.wire.pb import federation_pb2 as pb

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fism_client.compute.site import Worker
    from fism_common.vectors import Vector
    from fism_common.wire.codec import Bytes


class Conversation:
    """One stream's vectors, put together from slices."""

    def __init__(self, n: int, coming: tuple[str, ...]) -> None:
        """Expect vectors of n entries; those named in ``coming`` before the first order."""
        self._coming = coming
        self._setup = Assembly(n, len(coming))
        self._order = Assembly(n, 2)
        self._solution: Assembly | None = None
        self._n = n

    def setup(self, message: pb.Setup) -> dict[str, Vector] | None:
        """Take a slice of the vectors of X; return them when they are complete."""
        parts = [getattr(message, name) for name in self._coming]
        complete = self._setup.add(message.offset, *parts)
        return dict(zip(self._coming, self._setup.vectors, strict=True)) if complete else None

    def order(self, message: pb.Order, x_part: Bytes, h_part: Bytes) -> Order | None:
        """Take a slice of an order; return the order when it is complete, until the next slice comes."""
        if not self._order.add(message.offset, x_part, h_part):
            return None
        x, h = self._order.vectors
        return Order(message.round, x, h, message.gamma, message.weight)

    def closing(self, message: pb.Closing) -> Vector | None:
        """Take a slice of the solution; return it when it is complete."""
        self._solution = self._solution or Assembly(self._n, 1)
        return self._solution.vectors[0] if self._solution.add(message.offset, message.x) else None


def answer(asked: pb.Order, order: Order, worker: Worker) -> Iterable[bytes]:
    """Do an order, of which ``asked`` is any slice; return the answer."""
    began = time.perf_counter()
    evaluation = worker.evaluate(order.x) if asked.evaluate else None
    reply = worker.answer(order)
    return reply_messages(reply, asked, time.perf_counter() - began, evaluation)


def closed(worker: Worker, x: Vector) -> bytes:
    """Return the answer to the solution."""
    message = pb.Closed(inner=worker.inner(x), evaluation=to_message(worker.evaluate(x)))
    return pb.ClientMessage(closed=message).SerializeToString()
