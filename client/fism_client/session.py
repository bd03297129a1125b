"""A client's side of a run: join, answer orders until the end, and come back if the connection is lost."""

from __future__ import annotations

import logging
import random
import threading
import time
from dataclasses import dataclass
from queue import SimpleQueue
from typing import TYPE_CHECKING

import grpc

from fism_common.channel import CHANNEL
from fism_common.errors import ContractError, MismatchError, RefusedError, StoppedError
from fism_common.exchange import Order
from fism_common.pb import federation_pb2 as pb
from fism_common.pb import federation_pb2_grpc as rpc
from fism_common.terms import NamedLoss, read_loss, read_set, vectors_to_come
from fism_common.wire import PROTOCOL, Assembly, read_server_message, reply_messages, to_message

if TYPE_CHECKING:
    from collections.abc import Callable

    from fism_client.site import Worker
    from fism_common.sets import ConstraintSet
    from fism_common.vectors import Vector
    from fism_common.wire import Bytes

_log = logging.getLogger(__name__)
_LONGEST_PAUSE = 5.0
_SECONDS_FOR_LAST_WORDS = 2.0
_TEMPORARY = {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.CANCELLED}


@dataclass(frozen=True, kw_only=True)
class Introduction:
    """Who a client is."""

    name: str
    rows: int
    columns: int
    shards: int = 1


class _LostError(Exception):
    """The connection is lost; the client may come back."""


class Session:
    """One client in one run."""

    def __init__(
        self,
        server: str,
        who: Introduction,
        make_worker: Callable[[NamedLoss, ConstraintSet], Worker],
        *,
        digest: Callable[[str], bytes] = lambda _: b"",
        patience: float = 300.0,
    ) -> None:
        """Take the server's address, and what makes the worker once the problem is known.

        ``digest`` gives the shard's digest for a run id; ``patience`` is how many seconds to try to reach the server.
        """
        self._server, self._who, self._patience = server, who, patience
        self._make_worker, self._digest = make_worker, digest
        self._worker: Worker | None = None
        self._token = b""

    def run(self) -> Vector:
        """Take part until the end; return the solution.

        Raises RefusedError if the server does not take this client, StoppedError if the run was stopped or the server
        could not be reached.
        """
        pause, lost_since = 0.1, time.monotonic()
        while True:
            try:
                with grpc.insecure_channel(self._server, options=CHANNEL) as channel:
                    joined = self._join(rpc.FederationStub(channel))
                    pause = 0.1
                    try:
                        return self._take_part(channel, joined)
                    finally:
                        lost_since = time.monotonic()
            except _LostError as lost:
                if time.monotonic() - lost_since > self._patience:
                    raise StoppedError(f"no connection to {self._server} for {self._patience:g} s: {lost}") from None
                _log.warning("%s; trying again in %.1f s server=%s", lost, pause, self._server)
                time.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311  # spreads clients out, guards nothing
                pause = min(2 * pause, _LONGEST_PAUSE)

    def _join(self, stub: rpc.FederationStub) -> pb.JoinReply:
        who = self._who
        request = pb.JoinRequest(
            protocol=PROTOCOL, name=who.name, rows=who.rows, columns=who.columns, shards=who.shards, token=self._token
        )
        try:
            joined = stub.Join(request, timeout=10.0)
        except grpc.RpcError as error:
            raise _translate(error) from None
        self._token = joined.token
        _log.info("joined client=%s run=%s", who.name, joined.run_id)
        return joined

    def _take_part(self, channel: grpc.Channel, joined: pb.JoinReply) -> Vector:
        coming = vectors_to_come(joined.set)
        if not coming:
            self._ready(joined, {})  # loads the kernels while the others join
        outgoing: SimpleQueue[bytes | None] = SimpleQueue()
        opening = pb.Opening(token=joined.token, shard_digest=self._digest(joined.run_id))
        outgoing.put(pb.ClientMessage(opening=opening).SerializeToString())
        # Not by the stub: long messages are written and read without protobuf's copies.
        call = channel.stream_stream("/fism.v1.Federation/Round", bytes, read_server_message)
        stream = call(iter(outgoing.get, None))
        conversation = _Conversation(self._who.columns, coming, outgoing)
        try:
            for message, x, h in stream:
                if message.HasField("goodbye"):
                    return _farewell(message.goodbye, conversation)
                if message.HasField("order"):
                    conversation.order(message.order, x, h, self._working())
                else:
                    self._handle(message, joined, conversation)
            raise _LostError("the server ended the stream without a goodbye")
        except grpc.RpcError as error:
            raise _translate(error) from None
        except KeyboardInterrupt:
            outgoing.put(pb.ClientMessage(leaving=pb.Leaving(reason="interrupted")).SerializeToString())
            outgoing.put(None)
            _wait_for_end(stream)
            raise
        finally:
            outgoing.put(None)

    def _handle(self, message: pb.ServerMessage, joined: pb.JoinReply, conversation: _Conversation) -> None:
        match message.WhichOneof("kind"):
            case "setup":
                vectors = conversation.setup(message.setup)
                if vectors is not None:
                    self._ready(joined, vectors)
            case "closing":
                conversation.closing(message.closing, self._working())
            case "refused":
                raise RefusedError(f"the server put this client out: {message.refused.reason}")
            case kind:
                raise ContractError(f"the server sent {kind!r}, which this client does not know")

    def _ready(self, joined: pb.JoinReply, vectors: dict[str, Vector]) -> None:
        if self._worker is None:
            self._worker = self._make_worker(read_loss(joined.loss), read_set(joined.set, vectors))

    def _working(self) -> Worker:
        if self._worker is None:
            raise ContractError("the server sent an order before all of the problem")
        return self._worker


class _Conversation:
    """The vectors that come in slices, and the answers to them."""

    def __init__(self, n: int, coming: tuple[str, ...], outgoing: SimpleQueue[bytes | None]) -> None:
        self._outgoing, self._coming = outgoing, coming
        self._setup = Assembly(n, len(coming))
        self._order = Assembly(n, 2)
        self._solution: Assembly | None = None

    def setup(self, message: pb.Setup) -> dict[str, Vector] | None:
        parts = [getattr(message, name) for name in self._coming]
        complete = self._setup.add(message.offset, *parts)
        return dict(zip(self._coming, self._setup.vectors, strict=True)) if complete else None

    def order(self, message: pb.Order, x_part: Bytes, h_part: Bytes, worker: Worker) -> None:
        if not self._order.add(message.offset, x_part, h_part):
            return
        x, h = self._order.vectors
        began = time.perf_counter()
        evaluation = worker.evaluate(x) if message.evaluate else None
        reply = worker.answer(Order(message.round, x, h, message.gamma, message.weight))
        for answer in reply_messages(reply, message, time.perf_counter() - began, evaluation):
            self._outgoing.put(answer)

    def closing(self, message: pb.Closing, worker: Worker) -> None:
        self._solution = self._solution or Assembly(self._order.vectors[0].size, 1)
        if self._solution.add(message.offset, message.x):
            x = self._solution.vectors[0]
            closed = pb.Closed(inner=worker.inner(x), evaluation=to_message(worker.evaluate(x)))
            self._outgoing.put(pb.ClientMessage(closed=closed).SerializeToString())

    def solution(self) -> Vector:
        if self._solution is None:
            raise ContractError("the server finished the run without its solution")
        return self._solution.vectors[0]


def _wait_for_end(call: grpc.RpcContext) -> None:
    """Give the last words time to go out: the server answers them by ending the stream."""
    ended = threading.Event()
    if call.add_callback(ended.set):  # not by reading on: an interrupted read cannot be taken up again
        ended.wait(_SECONDS_FOR_LAST_WORDS)


def _farewell(message: pb.Goodbye, conversation: _Conversation) -> Vector:
    if not message.finished:
        raise StoppedError(f"the server stopped the run: {message.reason}")
    return conversation.solution()


def _translate(error: grpc.RpcError) -> Exception:
    """Return what a failed call means: the connection is lost, or this client is refused."""
    code, details = error.code(), error.details()
    if code in _TEMPORARY:
        return _LostError(f"no connection ({details})")
    if code == grpc.StatusCode.UNIMPLEMENTED:
        return MismatchError("the server speaks another protocol; install the same version of fism at both ends")
    return RefusedError(f"refused by the server: {details}")
