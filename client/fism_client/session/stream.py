"""A client's stream to the server: read ahead where that matters, written one message at a time."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from typing import TYPE_CHECKING, TypeVar

import grpc
import grpc.aio

from fism_common.errors import MismatchError, RefusedError
from fism_common.wire.codec import read_server_message
from fism_common.wire.pb import federation_pb2 as pb

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Iterable
    from typing import TypeAlias

    from fism_common.wire.codec import Bytes

    Received: TypeAlias = tuple[pb.ServerMessage, Bytes, Bytes]

T = TypeVar("T")
_MOST_READ_AHEAD = 64
_SECONDS_FOR_LAST_WORDS = 2.0
_ENDED = (grpc.RpcError, asyncio.InvalidStateError)
"""What gRPC says on a call that has ended."""
_REFUSALS = {
    grpc.StatusCode.FAILED_PRECONDITION,
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.PERMISSION_DENIED,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
}


class LostError(Exception):
    """The connection is lost; the client may come back."""


class TakenError(Exception):
    """The name is taken, maybe by this client's own stream from before its machine went down."""


class ServerStream:
    """The stream of a client that has joined.

    While something long is done it is read ahead: gRPC forgets what it has not read when a write fails, and that may be
    a goodbye.
    """

    def __init__(self, channel: grpc.aio.Channel) -> None:
        """Begin a call, on which ``open`` says the first word."""
        # As bytes: long messages are written and read without protobuf's copies, and errors in them are ours to tell.
        self._call: grpc.aio.StreamStreamCall[bytes, bytes] = channel.stream_stream("/fism.v1.Federation/Round")()
        self._ahead: deque[Received | None] = deque()
        self._reading: asyncio.Task[Received | None] | None = None
        """A read that has begun ahead of its time."""
        self._writing = asyncio.Lock()  # gRPC takes one write at a time, and loses a second

    async def open(self, opening: pb.Opening) -> None:
        """Say who this is; where that cannot be said, the stream has ended."""
        await self.write([pb.ClientMessage(opening=opening).SerializeToString()])

    async def messages(self) -> AsyncIterator[Received]:
        """Yield the server's messages until the stream ends; raise ContractError for one that is none."""
        while True:
            if self._ahead:
                received = self._ahead.popleft()
            elif self._reading is not None:
                received = await self._reading
                self._reading = None
            else:
                received = await self._read()
            if received is None:
                return
            yield received

    async def unless_goodbye(self, work: Awaitable[T]) -> T | None:
        """Return what ``work`` gives; None if the server says goodbye before, whereupon it is not waited for."""
        working = asyncio.ensure_future(work)
        try:
            while not working.done() and len(self._ahead) < _MOST_READ_AHEAD:
                self._reading = self._reading or asyncio.create_task(self._read())
                await asyncio.wait([working, self._reading], return_when=asyncio.FIRST_COMPLETED)
                if self._reading.done():
                    received, self._reading = self._reading.result(), None
                    self._ahead.append(received)
                    if received is None:
                        break
                    if received[0].HasField("goodbye"):
                        return None
            return await working
        finally:
            working.cancel()

    async def write(self, messages: Iterable[bytes]) -> bool:
        """Send these; return whether the stream took them."""
        try:
            async with self._writing:
                for message in messages:
                    await self._call.write(message)
        except _ENDED:
            return False
        return True

    async def leave(self, reason: str) -> None:
        """Tell the server that this client goes on purpose, and wait a little for it to end the stream."""
        leaving = pb.ClientMessage(leaving=pb.Leaving(reason=reason)).SerializeToString()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_SECONDS_FOR_LAST_WORDS):
                if await self.write([leaving]):
                    await self._call.done_writing()
                    await self._call.code()

    async def end(self) -> Exception:
        """Return what the end of the stream means."""
        return what_it_means(await self._call.code(), await self._call.details())

    async def close(self) -> None:
        """End the call, if it has not ended."""
        self._call.cancel()
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)

    async def _read(self) -> Received | None:
        """Return the next message; None at the end of the stream, which gRPC's own types forget."""
        try:
            received: object = await self._call.read()
        except _ENDED:
            return None
        return read_server_message(received) if isinstance(received, bytes) else None


def what_it_means(code: grpc.StatusCode, details: str | None) -> Exception:
    """Return what the end of a call means: the connection is lost, or this client is refused."""
    if code == grpc.StatusCode.ALREADY_EXISTS:
        return TakenError(details)
    if code in _REFUSALS:
        return RefusedError(f"refused by the server: {details}")
    if code == grpc.StatusCode.OK:
        return LostError("the server ended the stream without a goodbye")
    if code == grpc.StatusCode.UNIMPLEMENTED:
        return MismatchError("the server speaks another protocol; install the same version of fism at both ends")
    # A connection that breaks has many names; of gRPC's nested reasons the innermost says what happened.
    return LostError(f"no connection ({(details or code.name).rpartition(': ')[2]})")
