"""A client's side of a run: join, answer orders until the end, and come back if the connection is lost."""

from __future__ import annotations

import asyncio
import logging
import math
import random
import time
from functools import partial
from typing import TYPE_CHECKING

import grpc
import grpc.aio

from fism_client.session.assembly import Conversation, answer, closed
from fism_client.session.stream import LostError, ServerStream, TakenError, what_it_means
from fism_client.session.threads import beside
from fism_common import __version__
from fism_common.data.columns import column_messages, read_recipe
from fism_common.data.moments import SCALING, Scaling, moments_messages
from fism_common.errors import ContractError, MismatchError, NameTakenError, RefusedError, StoppedError
from fism_common.signals import on_interrupt
from fism_common.wire.channel import open_channel
from fism_common.wire.codec import PROTOCOL, read_message
from fism_common.wire.pb import federation_pb2 as pb
from fism_common.wire.terms import read_loss, read_set, vectors_to_come

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from fism_client.compute.site import Worker
    from fism_client.session.participant import Participant
    from fism_client.session.stream import Received
    from fism_common.data.columns import Recipe
    from fism_common.exchange import Order
    from fism_common.vectors import Vector
    from fism_common.wire.tls import TlsFiles

_log = logging.getLogger(__name__)
_SHORTEST_PAUSE = 0.1
_LONGEST_PAUSE = 5.0
_SECONDS_FOR_A_NAME = 20.0
"""How long to try for a name that is taken: the server needs up to 15 s to see that a machine is gone."""
_LONG_PASS = 0.05
"""Seconds from which on a pass runs beside the conversation, so that a goodbye or a signal is heard meanwhile. To have
shorter ones there too would cost more than it is worth."""


class Session:
    """One client in one run."""

    def __init__(
        self, server: str, participant: Participant, *, patience: float = 300.0, tls: TlsFiles | None = None
    ) -> None:
        """Take the server's address, and who takes part.

        ``patience`` is how many seconds to try to reach the server; with ``tls`` nothing but TLS is spoken.
        """
        self._server, self._who, self._patience, self._tls = server, participant, patience, tls
        self._worker: Worker | None = None
        self._recipe: Recipe | None = None
        self._columns = 0
        self.terms: pb.JoinReply | None = None
        """What is to be solved, once it is known."""
        self.scaling: Scaling | None = None
        """What all clients do to their columns, once it is known and if it is anything."""
        self._run_id = ""
        self._token = self._shard_digest = b""
        self._solution: Vector | None = None
        self._heard = self._lost = False
        self._opened = self._last_pass = math.inf
        self._suspicion: str | None = None
        self._stream: ServerStream | None = None
        self._leaving: asyncio.Task[None] | None = None

    def run(self) -> Vector:
        """Take part until the end; return the solution.

        Raises RefusedError if the server does not take this client, StoppedError if the run was stopped or the server
        could not be reached.
        """
        return asyncio.run(self._run())

    async def _run(self) -> Vector:
        """Take part; at an interrupt leave, and raise KeyboardInterrupt."""
        task = asyncio.create_task(self.take_part())
        with on_interrupt(lambda: self.leave(task)):
            try:
                return await task
            except asyncio.CancelledError:
                raise KeyboardInterrupt from None

    def leave(self, task: asyncio.Task[Vector]) -> None:
        """Say that this client goes on purpose, then end ``task``: cancelled first, it would take the stream along."""
        stream, self._stream = self._stream, None
        if stream is None:
            task.cancel()
        else:
            self._leaving = asyncio.create_task(stream.leave("interrupted"))
            self._leaving.add_done_callback(lambda _: task.cancel())

    async def take_part(self) -> Vector:
        """Do what ``run`` does, beside other sessions; a short pass holds up all of them."""
        try:
            return await self._stay_connected()
        except (RefusedError, StoppedError) as error:
            if self._solution is None:
                raise
            _log.warning("the solution had come before the connection was lost for good: %s", error)
            return self._solution

    async def _stay_connected(self) -> Vector:
        pause, lost_since, taken_since = _SHORTEST_PAUSE, time.monotonic(), math.inf
        while True:
            try:
                return await self._connect()
            except (LostError, TakenError) as lost:
                _obey()
                self._lost = True
                now = time.monotonic()
                # Only a stream that was of use, or at least stayed, has ended the search for a server.
                if self._heard or now - self._opened > _LONGEST_PAUSE:
                    pause, lost_since, self._heard = _SHORTEST_PAUSE, now, False
                self._opened = math.inf
                taken_since = min(taken_since, now) if isinstance(lost, TakenError) else math.inf
                if now - taken_since > _SECONDS_FOR_A_NAME:
                    raise NameTakenError(str(lost)) from None
                if now - lost_since > self._patience:
                    raise StoppedError(
                        f"no connection to {self._server} for {self._patience:g} s: {lost}; see that the server runs, "
                        "and start this client again"
                    ) from None
                seconds = pause * random.uniform(0.5, 1.0)  # noqa: S311  # spreads clients out, guards nothing
                _log.warning("%s; trying again in %.1f s server=%s", lost, seconds, self._server)
                await asyncio.sleep(seconds)
                pause = min(2 * pause, _LONGEST_PAUSE)

    async def _connect(self) -> Vector:
        async with open_channel(self._server, self._tls) as channel:
            try:
                joined = await self._join(channel)
            except LostError:
                before = self._suspicion
                self._suspicion = await asyncio.to_thread(_diagnose, self._server, self._tls)
                if self._suspicion is not None and self._suspicion == before:  # a server that restarts looks so once
                    raise RefusedError(self._suspicion) from None
                raise
            self._suspicion = None
            _obey()
            return await self._converse(channel, joined)

    async def _join(self, channel: grpc.aio.Channel) -> pb.JoinReply:
        request = join_request(self._who, self._token)
        call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary("/fism.v1.Federation/Join")
        try:
            answer = await call(request.SerializeToString(), timeout=10.0)
        except grpc.RpcError as error:
            meant = what_it_means(error.code(), error.details())
            if isinstance(meant, RefusedError) and (doubts := self._who.doubts()):
                raise type(meant)("\n".join([str(meant), *doubts])) from None
            raise meant from None
        joined = read_message(pb.JoinReply, answer)
        if self._run_id not in {"", joined.run_id}:
            raise MismatchError(f"{self._server} has begun another run; start this client anew to take part in it")
        recipe = read_recipe(joined.recipe)
        if self._recipe is not None and self._recipe != recipe:
            raise MismatchError(f"{self._server} has agreed on other columns meanwhile; start this client anew")
        if not self._run_id:
            self._recipe, self._columns = recipe, self._who.prepare(recipe)
            self._who.check_labels(read_loss(joined.loss))
            self._run_id, self._shard_digest = joined.run_id, self._who.digest(joined.run_id)
        self._token = joined.token
        level = logging.WARNING if self._lost else logging.INFO  # whoever read of the loss wants to read of its end
        _log.log(level, "joined client=%s run=%s round=%d", self._who.name, joined.run_id, joined.round)
        return joined

    async def _converse(self, channel: grpc.aio.Channel, joined: pb.JoinReply) -> Vector:
        await beside(partial(self._prepare, joined))  # while the others join
        stream = ServerStream(channel)
        conversation = Conversation(self._columns, _coming(joined))
        sent = True
        try:
            await stream.open(pb.Opening(token=joined.token, shard_digest=self._shard_digest))
            self._stream, self._opened = stream, time.monotonic()
            async for received in stream.messages():
                self._heard = True
                if received[0].HasField("goodbye"):
                    return self._farewell(received[0].goodbye)
                if sent:  # else only a goodbye matters now
                    answers = await self._answers(received, joined, conversation, stream)
                    sent = answers is not None and await stream.write(answers)
            if not sent:  # the status has no reason in it; joining again brings one
                raise LostError("the stream ended before the answer was sent")
            raise await stream.end()
        finally:
            self._stream = None
            if self._leaving is not None:
                await self._leaving
            await stream.close()

    async def _answers(
        self, received: Received, joined: pb.JoinReply, conversation: Conversation, stream: ServerStream
    ) -> Iterable[bytes] | None:
        """Take a message other than a goodbye; return what to answer, None if a goodbye has come meanwhile."""
        message, x, h = received

        def long(work: Callable[[], Iterable[bytes]]) -> Awaitable[Iterable[bytes] | None]:
            return stream.unless_goodbye(beside(work))

        match message.WhichOneof("kind"):
            case "order":
                order = conversation.order(message.order, x, h)
                return [] if order is None else await self._pass(message.order, order, stream)
            case "setup":
                vectors = conversation.setup(message.setup)
                return [] if vectors is None else await long(partial(self._ready, joined, vectors))
            case "measure":
                return await long(lambda: moments_messages(self._who.moments(), message.measure.attempt))
            case "closing":
                found = conversation.closing(message.closing)
                self._solution = self._solution if found is None else found
                return [] if found is None else await long(lambda: [closed(self._working(), found)])
            case "refused" if message.refused.put_out:
                self._solution = None  # though there is one, the run goes on without an answer to it
                raise RefusedError(f"the server put this client out: {message.refused.reason}")
            case "refused":
                _log.warning("refused: %s round=%d", message.refused.reason, message.refused.round)
                return []
            case kind:
                raise ContractError(f"the server sent {kind!r}, which this client does not know")

    async def _pass(self, asked: pb.Order, order: Order, stream: ServerStream) -> Iterable[bytes] | None:
        """Do an order; return the answer, None if a goodbye has come meanwhile."""
        work, began = partial(answer, asked, order, self._working()), time.perf_counter()
        answers = work() if self._last_pass < _LONG_PASS else await stream.unless_goodbye(beside(work))
        self._last_pass = time.perf_counter() - began
        return answers

    def _farewell(self, message: pb.Goodbye) -> Vector:
        if not message.finished:
            self._solution = None
            raise StoppedError(f"the server stopped the run: {message.reason}; start this client again when it goes on")
        if self._solution is None:
            raise ContractError("the server finished the run without its solution; ask its coordinator for the model")
        return self._solution

    def _prepare(self, joined: pb.JoinReply) -> None:
        """Load the kernels, before there is an order that would have to wait for them."""
        if not _coming(joined):
            self._ready(joined, {})
        elif self._worker is None and not vectors_to_come(joined.set):
            self._who.rehearse(read_loss(joined.loss), read_set(joined.set, {}))

    def _ready(self, joined: pb.JoinReply, vectors: dict[str, Vector]) -> Iterable[bytes]:
        """Make what answers orders, once; nothing is to be said to the server."""
        if self._worker is None:
            named = {name: vectors[name].copy() for name in SCALING if name in vectors}
            self.terms, self.scaling = joined, Scaling(**named) if named else None
            self._worker = self._who.worker(read_loss(joined.loss), read_set(joined.set, vectors), self.scaling)
        return []

    def _working(self) -> Worker:
        if self._worker is None:
            raise ContractError("the server sent an order before all of the problem")
        return self._worker


def join_request(who: Participant, token: bytes = b"", *, probe: bool = False) -> pb.JoinRequest:
    """Return what a client says of itself: counts, and the names and kinds of its columns."""
    return pb.JoinRequest(
        protocol=PROTOCOL,
        name=who.name,
        rows=who.rows,
        columns=who.columns,
        shards=who.shards,
        token=token,
        schema=column_messages(who.schema),
        version=__version__,
        probe=probe,
    )


def _diagnose(server: str, tls: TlsFiles | None) -> str | None:
    from fism_client.session.diagnosis import diagnose  # noqa: PLC0415  # cryptography is slow to load, and seldom needed

    return diagnose(server, tls)


def _obey() -> None:
    """End this task if it was told to: gRPC takes a CancelledError for itself, now and then."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


def _coming(joined: pb.JoinReply) -> tuple[str, ...]:
    """Return the vectors that come on the stream before the first order."""
    return vectors_to_come(joined.set) + (SCALING if read_recipe(joined.recipe).measured else ())
