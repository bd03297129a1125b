"""A client's side of a run: join, answer orders until the end, and come back if the connection is lost."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import random
import signal
import threading
import time
from typing import TYPE_CHECKING

import grpc
import grpc.aio

from fism_client.conversation import Conversation, closed
from fism_common import __version__
from fism_common.channel import open_channel
from fism_common.columns import column_messages, read_recipe
from fism_common.errors import ContractError, MismatchError, NameTakenError, RefusedError, StoppedError
from fism_common.moments import SCALING, Scaling, moments_messages
from fism_common.pb import federation_pb2 as pb
from fism_common.terms import read_loss, read_set, vectors_to_come
from fism_common.wire import PROTOCOL, read_message, read_server_message

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable
    from typing import TypeAlias

    from fism_client.participant import Participant
    from fism_client.site import Worker
    from fism_common.columns import Recipe
    from fism_common.tls import TlsFiles
    from fism_common.vectors import Vector
    from fism_common.wire import Bytes

    Received: TypeAlias = tuple[pb.ServerMessage, Bytes, Bytes]
    Stream: TypeAlias = grpc.aio.StreamStreamCall[bytes, bytes]

_log = logging.getLogger(__name__)
_SHORTEST_PAUSE = 0.1
_LONGEST_PAUSE = 5.0
_SECONDS_FOR_LAST_WORDS = 2.0
_SECONDS_FOR_A_NAME = 20.0
"""How long to try for a name that is taken: the server needs up to 15 s to see that a machine is gone."""
_REFUSALS = {
    grpc.StatusCode.FAILED_PRECONDITION,
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.PERMISSION_DENIED,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
}


class _LostError(Exception):
    """The connection is lost; the client may come back."""


class _TakenError(Exception):
    """The name is taken, maybe by this client's own stream from before its machine went down."""


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
        self._opened = math.inf
        self._suspicion: str | None = None
        self._writing = asyncio.Lock()  # gRPC takes one write at a time, and loses a second
        self._stream: Stream | None = None
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
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                asyncio.get_running_loop().add_signal_handler(number, self.leave, task)
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
            self._leaving = asyncio.create_task(self._say_goodbye(stream))
            self._leaving.add_done_callback(lambda _: task.cancel())

    async def take_part(self) -> Vector:
        """Do what ``run`` does, beside other sessions. A worker's pass holds up all of them: a pass is not awaited."""
        try:
            return await self._stay_connected()
        except (RefusedError, StoppedError) as error:
            if self._solution is None:
                raise
            _log.warning("the solution had come before the connection was lost for good: %s", error)
            return self._solution

    async def _stay_connected(self) -> Vector:
        pause, lost_since = _SHORTEST_PAUSE, time.monotonic()
        while True:
            try:
                return await self._connect()
            except (_LostError, _TakenError) as lost:
                _obey()
                self._lost = True
                stayed = time.monotonic() - self._opened
                # Only a stream that was of use, or at least stayed, has ended the search for a server.
                if self._heard or stayed > _LONGEST_PAUSE:
                    pause, lost_since, self._heard = _SHORTEST_PAUSE, time.monotonic(), False
                self._opened = math.inf
                self._bear(lost, time.monotonic() - lost_since)
                seconds = pause * random.uniform(0.5, 1.0)  # noqa: S311  # spreads clients out, guards nothing
                _log.warning("%s; trying again in %.1f s server=%s", lost, seconds, self._server)
                await asyncio.sleep(seconds)
                pause = min(2 * pause, _LONGEST_PAUSE)

    async def _connect(self) -> Vector:
        async with open_channel(self._server, self._tls) as channel:
            try:
                joined = await self._join(channel)
            except _LostError:
                before = self._suspicion
                self._suspicion = await asyncio.to_thread(_diagnose, self._server, self._tls)
                if self._suspicion is not None and self._suspicion == before:  # a server that restarts looks so once
                    raise RefusedError(self._suspicion) from None
                raise
            self._suspicion = None
            _obey()
            return await self._converse(channel, joined)

    def _bear(self, lost: Exception, seconds: float) -> None:
        """Do nothing while there is patience; then raise what the client ends with."""
        if isinstance(lost, _TakenError) and seconds > _SECONDS_FOR_A_NAME:
            raise NameTakenError(str(lost)) from None
        if seconds > self._patience:
            raise StoppedError(f"no connection to {self._server} for {self._patience:g} s: {lost}") from None

    async def _join(self, channel: grpc.aio.Channel) -> pb.JoinReply:
        request = join_request(self._who, self._token)
        call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary("/fism.v1.Federation/Join")
        try:
            answer = await call(request.SerializeToString(), timeout=10.0)
        except grpc.RpcError as error:
            meant = _translate(error)
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
        coming = vectors_to_come(joined.set) + (SCALING if read_recipe(joined.recipe).measured else ())
        if not coming:
            self._ready(joined, {})  # loads the kernels while the others join
        opening = pb.Opening(token=joined.token, shard_digest=self._shard_digest)
        # As bytes: long messages are written and read without protobuf's copies, and errors in them are ours to tell.
        stream: Stream = channel.stream_stream("/fism.v1.Federation/Round")()
        conversation = Conversation(self._columns, coming)
        sent = True
        try:
            await stream.write(pb.ClientMessage(opening=opening).SerializeToString())
            self._stream, self._opened = stream, time.monotonic()
            async with contextlib.aclosing(_read_ahead(stream)) as messages:
                async for message, x, h in messages:
                    self._heard = True
                    if message.HasField("goodbye"):
                        return self._farewell(message.goodbye)
                    if not sent:
                        continue  # only a goodbye matters now
                    if message.HasField("order"):
                        answers = conversation.order(message.order, x, h, self._working())
                    else:
                        answers = self._handle(message, joined, conversation)
                    sent = await self._write(stream, answers)
        except (grpc.RpcError, asyncio.InvalidStateError):  # what gRPC says on a call that has ended
            pass
        finally:
            if self._leaving is not None:
                await self._leaving
            self._stream = None
        if not sent:  # the status has no reason in it; joining again brings one
            raise _LostError("the stream ended before the answer was sent")
        raise _translate_status(await stream.code(), await stream.details())

    async def _write(self, stream: Stream, messages: Iterable[bytes]) -> bool:
        """Send these; return whether the stream took them."""
        try:
            async with self._writing:
                for message in messages:
                    await stream.write(message)
        except (grpc.RpcError, asyncio.InvalidStateError):
            return False
        return True

    async def _say_goodbye(self, stream: Stream) -> None:
        """Tell the server that this client goes on purpose, and wait a little for it to end the stream."""
        leaving = pb.ClientMessage(leaving=pb.Leaving(reason="interrupted")).SerializeToString()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_SECONDS_FOR_LAST_WORDS):
                if await self._write(stream, [leaving]):
                    await stream.done_writing()
                    await stream.code()

    def _handle(self, message: pb.ServerMessage, joined: pb.JoinReply, conversation: Conversation) -> Iterable[bytes]:
        """Take a message other than an order; return what to answer."""
        match message.WhichOneof("kind"):
            case "setup":
                vectors = conversation.setup(message.setup)
                if vectors is not None:
                    self._ready(joined, vectors)
                return []
            case "measure":
                return moments_messages(self._who.moments(), message.measure.attempt)
            case "closing":
                self._solution = conversation.closing(message.closing)
                return [] if self._solution is None else [closed(self._working(), self._solution)]
            case "refused" if message.refused.put_out:
                raise RefusedError(f"the server put this client out: {message.refused.reason}")
            case "refused":
                _log.warning("refused: %s round=%d", message.refused.reason, message.refused.round)
                return []
            case kind:
                raise ContractError(f"the server sent {kind!r}, which this client does not know")

    def _farewell(self, message: pb.Goodbye) -> Vector:
        if not message.finished:
            self._solution = None
            raise StoppedError(f"the server stopped the run: {message.reason}")
        if self._solution is None:
            raise ContractError("the server finished the run without its solution")
        return self._solution

    def _ready(self, joined: pb.JoinReply, vectors: dict[str, Vector]) -> None:
        if self._worker is None:
            named = {name: vectors[name].copy() for name in SCALING if name in vectors}
            self.terms, self.scaling = joined, Scaling(**named) if named else None
            self._worker = self._who.worker(read_loss(joined.loss), read_set(joined.set, vectors), self.scaling)

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
    from fism_client.diagnosis import diagnose  # noqa: PLC0415  # cryptography is slow to load, and seldom needed

    return diagnose(server, tls)


def _obey() -> None:
    """End this task if it was told to: gRPC takes a CancelledError for itself, now and then."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


async def _read_ahead(stream: Stream) -> AsyncGenerator[Received, None]:
    """Yield the server's messages, each when the reading of the next one has begun.

    gRPC forgets what it has not read when a write fails. So a goodbye that comes during a pass is taken before the
    answer is tried.
    """
    reading = asyncio.create_task(_read(stream))
    try:
        while (received := await reading) is not None:
            reading = asyncio.create_task(_read(stream))
            await asyncio.sleep(0)  # it begins now: a pass holds up this thread
            yield received
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)


async def _read(stream: Stream) -> Received | None:
    """Return the next message; None at the end of the stream, which gRPC's own types forget."""
    received: object = await stream.read()
    return read_server_message(received) if isinstance(received, bytes) else None


def _translate(error: grpc.RpcError) -> Exception:
    return _translate_status(error.code(), error.details())


def _translate_status(code: grpc.StatusCode, details: str | None) -> Exception:
    """Return what the end of a call means: the connection is lost, or this client is refused."""
    if code == grpc.StatusCode.ALREADY_EXISTS:
        return _TakenError(details)
    if code in _REFUSALS:
        return RefusedError(f"refused by the server: {details}")
    if code == grpc.StatusCode.OK:
        return _LostError("the server ended the stream without a goodbye")
    if code == grpc.StatusCode.UNIMPLEMENTED:
        return MismatchError("the server speaks another protocol; install the same version of fism at both ends")
    # A connection that breaks has many names; of gRPC's nested reasons the innermost says what happened.
    return _LostError(f"no connection ({(details or code.name).rpartition(': ')[2]})")
