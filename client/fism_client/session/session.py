"""A client's side of a run: join, answer until the end, and reconnect if the connection is lost."""

from __future__ import annotations

import asyncio
import logging
import math
import random
import time
from typing import TYPE_CHECKING

import grpc
import grpc.aio

from fism_client.session.dialogue import Dialogue
from fism_client.session.stream import LostError, ServerStream, TakenError, what_it_means
from fism_client.session.threads import in_thread
from fism_client.session.work import Work
from fism_common.errors import NameTakenError, RefusedError, StoppedError
from fism_common.signals import on_interrupt
from fism_common.wire.channel import open_channel
from fism_common.wire.messages import Opening
from fism_common.wire.terms import read_terms, write_join_request

if TYPE_CHECKING:
    from fism_client.session.participant import Participant
    from fism_common.vectors import Vector
    from fism_common.wire.tls import TlsFiles

_log = logging.getLogger(__name__)
_SHORTEST_PAUSE = 0.1
_LONGEST_PAUSE = 5.0
_SECONDS_FOR_A_NAME = 20.0
"""How long to retry if the name is taken: the server needs up to 15 s to notice that a machine is gone."""


class Session:
    """One client in one run."""

    def __init__(
        self, server: str, participant: Participant, *, patience: float = 300.0, tls: TlsFiles | None = None
    ) -> None:
        """Take the server's address and the participant.

        ``patience`` is how many seconds to keep trying to reach the server; with ``tls``, only TLS is used.
        """
        self._server, self._patience, self._tls = server, patience, tls
        self.work = Work(participant)
        self._token = b""
        self._dialogue: Dialogue | None = None
        self._opened = math.inf
        self._suspicion: str | None = None
        self._lost = False
        self._stream: ServerStream | None = None
        self._leaving: asyncio.Task[None] | None = None

    def run(self) -> Vector:
        """Take part until the run ends; return the solution.

        Raises RefusedError if the server does not admit this client, StoppedError if the run was stopped or the server
        could not be reached.
        """
        return asyncio.run(self._run())

    async def _run(self) -> Vector:
        """Take part; on an interrupt, leave and raise KeyboardInterrupt."""
        task = asyncio.create_task(self.take_part())
        with on_interrupt(lambda: self.leave(task)):
            try:
                return await task
            except asyncio.CancelledError:
                raise KeyboardInterrupt from None

    def leave(self, task: asyncio.Task[Vector]) -> None:
        """Tell the server that this client leaves, then cancel ``task``: cancelling it first would end the stream."""
        stream, self._stream = self._stream, None
        if stream is None:
            task.cancel()
        else:
            self._leaving = asyncio.create_task(stream.leave("interrupted"))
            self._leaving.add_done_callback(lambda _: task.cancel())

    async def take_part(self) -> Vector:
        """Do what ``run`` does, alongside other sessions in one event loop; short passes block all of them."""
        try:
            return await self._stay_connected()
        except (RefusedError, StoppedError) as error:
            if self.work.solution is None:
                raise
            _log.warning("the solution had arrived before the connection was lost for good: %s", error)
            return self.work.solution

    async def _stay_connected(self) -> Vector:
        pause, lost_since, taken_since = _SHORTEST_PAUSE, time.monotonic(), math.inf
        while True:
            try:
                return await self._connect()
            except (LostError, TakenError) as lost:
                _raise_if_cancelled()
                self._lost = True
                now = time.monotonic()
                # Only a stream that received something, or at least stayed open, resets the time limit and the pause.
                if (self._dialogue is not None and self._dialogue.heard) or now - self._opened > _LONGEST_PAUSE:
                    pause, lost_since = _SHORTEST_PAUSE, now
                self._opened, self._dialogue = math.inf, None
                taken_since = min(taken_since, now) if isinstance(lost, TakenError) else math.inf
                if now - taken_since > _SECONDS_FOR_A_NAME:
                    raise NameTakenError(str(lost)) from None
                if now - lost_since > self._patience:
                    raise StoppedError(
                        f"no connection to {self._server} for {self._patience:g} s: {lost}; check that the server "
                        "is running, then restart this client"
                    ) from None
                seconds = pause * random.uniform(0.5, 1.0)  # noqa: S311  # jitter, not cryptography
                _log.warning("%s; trying again in %.1f s server=%s", lost, seconds, self._server)
                await asyncio.sleep(seconds)
                pause = min(2 * pause, _LONGEST_PAUSE)

    async def _connect(self) -> Vector:
        async with open_channel(self._server, self._tls) as channel:
            try:
                await self._join(channel)
            except LostError:
                before = self._suspicion
                self._suspicion = await asyncio.to_thread(_diagnose, self._server, self._tls)
                # A restarting server may look like this once.
                if self._suspicion is not None and self._suspicion == before:
                    raise RefusedError(self._suspicion) from None
                raise
            self._suspicion = None
            _raise_if_cancelled()
            await in_thread(self.work.load_kernels)  # while the others join
            return await self._converse(ServerStream(channel))

    async def _join(self, channel: grpc.aio.Channel) -> None:
        who = self.work.who
        call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary("/fism.v1.Federation/Join")
        try:
            reply = await call(write_join_request(who.request(self._token)), timeout=10.0)
        except grpc.RpcError as error:
            meant = what_it_means(error.code(), error.details())
            if isinstance(meant, RefusedError) and (doubts := who.doubts()):
                raise type(meant)("\n".join([str(meant), *doubts])) from None
            raise meant from None
        terms = read_terms(reply)
        self.work.accept(terms, self._server)
        self._token = terms.token
        level = logging.WARNING if self._lost else logging.INFO  # the loss was a warning, so the recovery is one too
        _log.log(level, "joined client=%s run=%s round=%d", who.name, terms.run_id, terms.round)

    async def _converse(self, stream: ServerStream) -> Vector:
        self._dialogue = Dialogue(stream, self.work)
        try:
            await stream.open(Opening(self._token, self.work.digest))
            self._stream, self._opened = stream, time.monotonic()
            return await self._dialogue.run()
        finally:
            self._stream = None
            if self._leaving is not None:
                await self._leaving
            await stream.close()


def _diagnose(server: str, tls: TlsFiles | None) -> str | None:
    from fism_client.session.diagnosis import diagnose  # noqa: PLC0415  # cryptography is slow to load, rarely needed

    return diagnose(server, tls)


def _raise_if_cancelled() -> None:
    """Raise CancelledError if this task was cancelled: gRPC sometimes swallows it."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError
