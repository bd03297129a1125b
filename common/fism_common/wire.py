"""Vectors and messages: little-endian float64, cut into slices that stay far below gRPC's limit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fism_common.errors import ContractError
from fism_common.exchange import Evaluation, Order, Reply
from fism_common.pb import federation_pb2 as pb

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fism_common.vectors import Vector

PROTOCOL = 1
MESSAGE_LIMIT = 4 * 2**20
SLICE = 2**16
"""Entries of each vector in one message: 1 MiB for an order, which has two."""

_ENTRY = np.dtype("<f8")


def as_entries(x: Vector) -> Vector:
    """Return the vector with its entries as they travel; a copy only on a big-endian machine."""
    return x.astype(_ENTRY, copy=False)


def pack(x: Vector) -> bytes:
    """Return the entries as bytes."""
    return as_entries(x).tobytes()


def slices(n: int, size: int = SLICE) -> Iterator[slice]:
    """Yield the slices of a vector of n entries."""
    for begin in range(0, n, size):
        yield slice(begin, min(begin + size, n))


class Assembly:
    """Vectors put together from slices that come in order, in memory that is taken once and used again."""

    def __init__(self, n: int, count: int) -> None:
        """Take memory for ``count`` vectors of ``n`` entries."""
        self.vectors = [np.empty(n) for _ in range(count)]
        self._n, self._filled = n, 0

    def add(self, offset: int, *parts: bytes) -> bool:
        """Put one slice of each vector in its place; return whether all of them are complete.

        A slice at 0 begins anew. Raises ContractError for a slice that is out of order, uneven or too long.
        """
        if offset == 0:
            self._filled = 0
        size = len(parts[0]) // _ENTRY.itemsize
        whole = all(len(part) == size * _ENTRY.itemsize for part in parts)
        if not whole or size == 0 or offset != self._filled or offset + size > self._n:
            raise ContractError(
                f"a slice of {[len(part) for part in parts]} bytes at entry {offset} does not continue the vector: "
                f"{self._filled} of {self._n} entries are there"
            )
        for vector, part in zip(self.vectors, parts, strict=True):
            vector[offset : offset + size] = np.frombuffer(part, _ENTRY)
        self._filled += size
        return self._filled == self._n


def order_messages(order: Order, attempt: int, *, evaluate: bool) -> list[bytes]:
    """Return an order as messages, serialised once: the same bytes go to every client."""
    return [
        pb.ServerMessage(
            order=pb.Order(
                round=order.round,
                attempt=attempt,
                gamma=order.gamma,
                weight=order.weight,
                offset=part.start,
                x=pack(order.x[part]),
                h=pack(order.h[part]),
                evaluate=evaluate,
            )
        ).SerializeToString()
        for part in slices(order.x.size)
    ]


def closing_messages(x: Vector) -> list[bytes]:
    """Return the solution as messages, serialised once."""
    return [
        pb.ServerMessage(closing=pb.Closing(offset=part.start, x=pack(x[part]))).SerializeToString()
        for part in slices(x.size, 2 * SLICE)
    ]


def reply_messages(
    reply: Reply, asked: pb.Order, seconds: float, evaluation: Evaluation | None
) -> Iterator[pb.ClientMessage]:
    """Yield the answer to an order, of which ``asked`` is any slice."""
    for part in slices(reply.x.size, 2 * SLICE):
        message = pb.Reply(
            round=asked.round,
            attempt=asked.attempt,
            inner=reply.inner,
            seconds=seconds,
            offset=part.start,
            x=pack(reply.x[part]),
            evaluation=to_message(evaluation) if part.start == 0 else None,
        )
        yield pb.ClientMessage(reply=message)


def to_message(evaluation: Evaluation | None) -> pb.Evaluation | None:
    """Return an evaluation as a message."""
    if evaluation is None:
        return None
    return pb.Evaluation(rows=evaluation.rows, right=evaluation.right, loss=evaluation.loss)


def from_message(message: pb.Evaluation) -> Evaluation:
    """Return the evaluation in a message."""
    return Evaluation(message.rows, message.right if message.HasField("right") else None, message.loss)
