"""A client that speaks the protocol and need not keep to it."""

from __future__ import annotations

import queue
from collections.abc import Iterator
from pathlib import Path

import grpc
import numpy as np

from fism_client.compute.site import Site
from fism_client.data.readers.arrays import read_npz
from fism_common.exchange import Order
from fism_common.problem.losses import named_loss
from fism_common.wire.codec import PROTOCOL, pack
from fism_common.wire.pb import federation_pb2 as pb
from fism_common.wire.terms import read_set

PATIENCE = 60.0


class Double:
    """One client; it sends what it is told to, and can work out the right answer."""

    def __init__(self, address: str, name: str, file: Path) -> None:
        """Take the server, a name and a shard."""
        self._channel = grpc.insecure_channel(address)
        self._join = self._channel.unary_unary(
            "/fism.v1.Federation/Join",
            request_serializer=pb.JoinRequest.SerializeToString,
            response_deserializer=pb.JoinReply.FromString,
        )
        self._round: grpc.StreamStreamMultiCallable[bytes, pb.ServerMessage] = self._channel.stream_stream(
            "/fism.v1.Federation/Round", response_deserializer=pb.ServerMessage.FromString
        )
        self._name, self._shard = name, read_npz(file)
        self._site: Site | None = None
        self._outbox: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._inbox: Iterator[pb.ServerMessage] = iter(())

    def open(self) -> None:
        """Join, and open a stream."""
        shard = self._shard
        request = pb.JoinRequest(protocol=PROTOCOL, name=self._name, rows=shard.count, columns=shard.columns, shards=1)
        joined = self._join(request, timeout=PATIENCE)
        self._site = Site(shard, None, named_loss(joined.loss.name), read_set(joined.set, {}), 1)
        self._outbox = queue.SimpleQueue()
        self._inbox = self._round(iter(self._outbox.get, None), timeout=4 * PATIENCE)
        self.send(pb.ClientMessage(opening=pb.Opening(token=joined.token, shard_digest=shard.digest(joined.run_id))))

    def send(self, message: pb.ClientMessage | bytes) -> None:
        """Send a message, or any bytes."""
        self._outbox.put(message if isinstance(message, bytes) else message.SerializeToString())

    def receive(self) -> pb.ServerMessage:
        """Return the next message; raise StopIteration at the end of the stream."""
        return next(self._inbox)

    def right_answer(self, order: pb.Order) -> pb.ClientMessage:
        """Return what an honest client answers to an order that came in one message."""
        assert self._site is not None
        x, h = np.frombuffer(order.x), np.frombuffer(order.h)
        reply = self._site.answer(Order(order.round, x, h, order.gamma, order.weight))
        return pb.ClientMessage(
            reply=pb.Reply(round=order.round, attempt=order.attempt, inner=reply.inner, x=pack(reply.x))
        )

    def right_closing(self, closing: pb.Closing) -> pb.ClientMessage:
        """Return what an honest client answers to the solution."""
        assert self._site is not None
        return pb.ClientMessage(closed=pb.Closed(inner=self._site.inner(np.frombuffer(closing.x))))

    def answer_until(self, round_: int) -> pb.Order:
        """Answer as an honest client until the order of a round comes; return that order, not answered."""
        while True:
            order = self.receive().order
            if order.round >= round_:
                return order
            self.send(self.right_answer(order))

    def finish(self) -> pb.Goodbye:
        """Answer as an honest client to the end, and hang up."""
        while True:
            message = self.receive()
            match message.WhichOneof("kind"):
                case "order":
                    self.send(self.right_answer(message.order))
                case "closing":
                    self.send(self.right_closing(message.closing))
                case "goodbye":
                    self._outbox.put(None)
                    return message.goodbye

    def drain(self) -> None:
        """Take whatever comes until the stream ends."""
        for _ in self._inbox:
            pass

    def close(self) -> None:
        """Be gone."""
        self._outbox.put(None)
        self._channel.close()
