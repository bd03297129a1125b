"""Vectors and messages: little-endian float64, cut into slices that stay far below gRPC's limit."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np
from google.protobuf.message import DecodeError, Message

from fism_common.errors import ContractError
from fism_common.exchange import Evaluation, Order, Reply
from fism_common.wire.framing import fields, unwrap, wrap
from fism_common.wire.pb import federation_pb2 as pb

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TypeAlias

    from fism_common.vectors import Vector

    Bytes: TypeAlias = bytes | memoryview

M = TypeVar("M", bound=Message)

PROTOCOL = 2
MESSAGE_LIMIT = 4 * 2**20
_LONG = 2**15
"""Bytes from which on a message is read field by field; for shorter ones protobuf's own copies cost less."""
_ORDER_X, _ORDER_H, _REPLY_X = pb.Order.X_FIELD_NUMBER, pb.Order.H_FIELD_NUMBER, pb.Reply.X_FIELD_NUMBER
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

    def add(self, offset: int, *parts: Bytes) -> bool:
        """Put one slice of each vector in its place; return whether all of them are complete.

        The slice after the last one begins anew. Raises ContractError for one that is out of order, uneven or too long.
        """
        if self._filled == self._n:
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

    def clear(self) -> None:
        """Forget the slices of vectors that are not complete."""
        self._filled = 0


def order_messages(order: Order, attempt: int, *, evaluate: bool) -> list[bytes]:
    """Return an order as messages, serialised once: the same bytes go to every client."""
    x, h = as_entries(order.x), as_entries(order.h)
    head = pb.Order(round=order.round, attempt=attempt, gamma=order.gamma, weight=order.weight, evaluate=evaluate)
    messages = []
    for part in slices(order.x.size):
        head.offset = part.start
        messages.append(wrap(pb.ServerMessage.ORDER_FIELD_NUMBER, head, {_ORDER_X: x[part], _ORDER_H: h[part]}))
    return messages


def closing_messages(x: Vector) -> list[bytes]:
    """Return the solution as messages, serialised once."""
    return [
        pb.ServerMessage(closing=pb.Closing(offset=part.start, x=pack(x[part]))).SerializeToString()
        for part in slices(x.size, 2 * SLICE)
    ]


def reply_messages(reply: Reply, asked: pb.Order, seconds: float, evaluation: Evaluation | None) -> Iterator[bytes]:
    """Yield the answer to an order, of which ``asked`` is any slice."""
    x = as_entries(reply.x)
    for part in slices(reply.x.size, 2 * SLICE):
        head = pb.Reply(
            round=asked.round,
            attempt=asked.attempt,
            inner=reply.inner,
            seconds=seconds,
            offset=part.start,
            evaluation=to_message(evaluation) if part.start == 0 else None,
        )
        yield wrap(pb.ClientMessage.REPLY_FIELD_NUMBER, head, {_REPLY_X: x[part]})


def read_message(kind: type[M], raw: bytes) -> M:
    """Return a short message; raise ContractError for bytes that are none."""
    try:
        return kind.FromString(raw)
    except DecodeError as error:
        raise _no_message(error) from error


def read_client_message(raw: bytes) -> tuple[pb.ClientMessage, Bytes]:
    """Return a message of a client, and the x of a reply, which may be left out of the message.

    Raises ContractError for bytes that are no message.
    """
    try:
        inner = _only_field(raw, pb.ClientMessage.REPLY_FIELD_NUMBER)
        if inner is None:
            message = pb.ClientMessage.FromString(raw)
            return message, message.reply.x
        rest, (x,) = unwrap(inner, (_REPLY_X,))
        return pb.ClientMessage(reply=pb.Reply.FromString(rest)), x
    except DecodeError as error:
        raise _no_message(error) from error


def read_server_message(raw: bytes) -> tuple[pb.ServerMessage, Bytes, Bytes]:
    """Return a message of the server, and the x and h of an order, which may be left out of the message.

    Raises ContractError for bytes that are no message.
    """
    try:
        inner = _only_field(raw, pb.ServerMessage.ORDER_FIELD_NUMBER)
        if inner is None:
            message = pb.ServerMessage.FromString(raw)
            return message, message.order.x, message.order.h
        rest, (x, h) = unwrap(inner, (_ORDER_X, _ORDER_H))
        return pb.ServerMessage(order=pb.Order.FromString(rest)), x, h
    except DecodeError as error:
        raise _no_message(error) from error


def _no_message(error: DecodeError) -> ContractError:
    return ContractError(f"bytes that are no message of the contract: {error}")


def _only_field(raw: bytes, number: int) -> memoryview | None:
    """Return the content of a long message that has the one field ``number``; None for any other message."""
    if len(raw) < _LONG:
        return None
    view = memoryview(raw)
    found, _, begin, end = next(fields(view))
    return view[begin:end] if found == number and end == len(raw) else None


def to_message(evaluation: Evaluation | None) -> pb.Evaluation | None:
    """Return an evaluation as a message."""
    if evaluation is None:
        return None
    return pb.Evaluation(rows=evaluation.rows, right=evaluation.right, loss=evaluation.loss)


def from_message(message: pb.Evaluation) -> Evaluation:
    """Return the evaluation in a message."""
    return Evaluation(message.rows, message.right if message.HasField("right") else None, message.loss)
