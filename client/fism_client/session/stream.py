"""A client's stream to the server: reads ahead during long work, writes one message at a time."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from typing import TYPE_CHECKING, TypeVar

import grpc
import grpc.aio

from fism_common.errors import MismatchError, RefusedError
from fism_common.wire.codec import leaving_message, opening_message, read_server_message
from fism_common.wire.messages import Goodbye, Leaving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Iterable

    from fism_common.wire.messages import Opening, ServerMessage

T = TypeVar("T")
_MOST_READ_AHEAD = 64
_SECONDS_TO_LEAVE = 2.0
_ENDED = (grpc.RpcError, asyncio.InvalidStateError)
"""What gRPC raises on a call that has ended."""
_REFUSALS = {
    grpc.StatusCode.FAILED_PRECONDITION,
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.PERMISSION_DENIED,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
}


class LostError(Exception):
    """The connection is lost; the client may reconnect."""


class TakenError(Exception):
    """The name is taken, perhaps by this client's old stream, from before its machine went down."""


class ServerStream:
    """The stream of a client that has joined.

    It reads ahead during long work: when a write fails, gRPC discards unread messages, and one may be a goodbye.
    """

    def __init__(self, channel: grpc.aio.Channel) -> None:
        """Begin a call; ``open`` sends the first message."""
        # As bytes: long messages are written and read without protobuf's copies, and we report parsing errors.
        self._call: grpc.aio.StreamStreamCall[bytes, bytes] = channel.stream_stream("/fism.v1.Federation/Round")()
        self._ahead: deque[ServerMessage | None] = deque()
        self._reading: asyncio.Task[ServerMessage | None] | None = None
        """A read ahead that is in progress."""
        self._writing = asyncio.Lock()  # gRPC allows one write at a time, and loses a second

    async def open(self, opening: Opening) -> None:
        """Send the opening message; if that fails, the stream has ended."""
        await self.write([opening_message(opening)])

    async def messages(self) -> AsyncIterator[ServerMessage]:
        """Yield the server's messages until the stream ends; raise ContractError for an invalid one."""
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
        """Return the result of ``work``; if the server says goodbye first, return None without waiting for it."""
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
                    if isinstance(received, Goodbye):
                        return None
            return await working
        finally:
            working.cancel()

    async def write(self, messages: Iterable[bytes]) -> bool:
        """Send the messages; return whether the stream accepted them."""
        try:
            async with self._writing:
                for message in messages:
                    await self._call.write(message)
        except _ENDED:
            return False
        return True

    async def leave(self, reason: str) -> None:
        """Tell the server that this client leaves on purpose, and wait briefly for it to end the stream."""
        leaving = leaving_message(Leaving(reason))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_SECONDS_TO_LEAVE):
                if await self.write([leaving]):
                    await self._call.done_writing()
                    await self._call.code()

    async def end(self) -> Exception:
        """Return the exception for the way the stream ended."""
        return what_it_means(await self._call.code(), await self._call.details())

    async def close(self) -> None:
        """Cancel the call if it has not ended."""
        self._call.cancel()
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)

    async def _read(self) -> ServerMessage | None:
        """Return the next message; None at the end of the stream, a case that gRPC's type hints omit."""
        try:
            received: object = await self._call.read()
        except _ENDED:
            return None
        return read_server_message(received) if isinstance(received, bytes) else None


def what_it_means(code: grpc.StatusCode, details: str | None) -> Exception:
    """Return the exception for the way a call ended: the connection is lost, or this client is refused."""
    if code == grpc.StatusCode.ALREADY_EXISTS:
        return TakenError(details)
    if code in _REFUSALS:
        return RefusedError(f"refused by the server: {details}")
    if code == grpc.StatusCode.OK:
        return LostError("the server ended the stream without a goodbye")
    if code == grpc.StatusCode.UNIMPLEMENTED:
        return MismatchError("the server speaks another protocol; install the same version of fism on both sides")
    # A broken connection has many status codes; the innermost of gRPC's nested reasons says what happened.
    return LostError(f"no connection ({(details or code.name).rpartition(': ')[2]})")
