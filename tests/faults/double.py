"""A client that speaks the protocol and need not keep to it."""

from __future__ import annotations

import queue
from collections.abc import Iterator
from pathlib import Path

import grpc
import numpy as np

from fism_client.compute.answerer import Compute
from fism_client.data.preparation import Rows
from fism_client.data.readers.arrays import read_npz
from fism_common.data.columns import Recipe
from fism_common.exchange import Pass, PassAnswer, Solution, SolutionAnswer
from fism_common.joining import PROTOCOL
from fism_common.problem.losses import LOSSES
from fism_common.problem.sets import SETS
from fism_common.wire.pb import federation_pb2 as pb
from fism_common.wire.slices import pack
from fism_common.wire.terms import read_terms

PATIENCE = 60.0


class Double:
    """One client; it sends what it is told to, and can work out the right answer."""

    def __init__(self, address: str, name: str, file: Path) -> None:
        """Take the server, a name and a shard."""
        self._channel = grpc.insecure_channel(address)
        self._join: grpc.UnaryUnaryMultiCallable[bytes, bytes] = self._channel.unary_unary("/fism.v1.Federation/Join")
        self._round: grpc.StreamStreamMultiCallable[bytes, pb.ServerMessage] = self._channel.stream_stream(
            "/fism.v1.Federation/Round", response_deserializer=pb.ServerMessage.FromString
        )
        self._name, self._shard = name, read_npz(file)
        self._compute: Compute | None = None
        self._outbox: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._inbox: Iterator[pb.ServerMessage] = iter(())

    def open(self) -> None:
        """Join, and open a stream."""
        shard = self._shard
        request = pb.JoinRequest(
            protocol=PROTOCOL, name=self._name, rows=shard.count, columns=shard.columns, virtual_clients=1
        )
        terms = read_terms(self._join(request.SerializeToString(), timeout=PATIENCE))
        loss, constraint = LOSSES.from_variant(terms.loss, {}), SETS.from_variant(terms.constraint, {})
        self._compute = Compute(Rows(Recipe(), shard), loss, constraint)
        self._outbox = queue.SimpleQueue()
        self._inbox = self._round(iter(self._outbox.get, None), timeout=4 * PATIENCE)
        self.send(pb.ClientMessage(opening=pb.Opening(token=terms.token, shard_digest=shard.digest(terms.run_id))))

    def send(self, message: pb.ClientMessage | bytes) -> None:
        """Send a message, or any bytes."""
        self._outbox.put(message if isinstance(message, bytes) else message.SerializeToString())

    def receive(self) -> pb.ServerMessage:
        """Return the next message; raise StopIteration at the end of the stream."""
        return next(self._inbox)

    def right_answer(self, asked: pb.Question) -> pb.ClientMessage:
        """Return what an honest client answers to a question that came in one message."""
        assert self._compute is not None
        answer = pb.Answer(number=asked.number, attempt=asked.attempt)
        x = np.frombuffer(asked.x)
        if asked.kind == pb.Question.SOLUTION:
            valued = self._compute.answer(Solution(x))
            assert isinstance(valued, SolutionAnswer)
            answer.inner.extend(valued.inner)
        else:
            pass_ = Pass(x, np.frombuffer(asked.h), asked.gamma, asked.weight, summands=asked.summands)
            moved = self._compute.answer(pass_)
            assert isinstance(moved, PassAnswer)
            answer.points = pack(moved.points)
            answer.inner.extend(moved.inner)
        return pb.ClientMessage(answer=answer)

    def answer_until(self, round_: int) -> pb.Question:
        """Answer as an honest client until the question of a round comes; return that question, not answered."""
        while True:
            asked = self.receive().question
            if asked.round >= round_:
                return asked
            self.send(self.right_answer(asked))

    def finish(self) -> pb.Goodbye:
        """Answer as an honest client to the end, and hang up."""
        while True:
            message = self.receive()
            match message.WhichOneof("kind"):
                case "question":
                    self.send(self.right_answer(message.question))
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
