"""The gRPC edge of the server: the rpcs, and the one place where errors become statuses."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING, NoReturn, TypeAlias, TypeVar

import grpc
import grpc.aio
from grpc_health.v1 import health_pb2

from fism_common import __version__
from fism_common.errors import ContractError, FismError, MismatchError, NotJoinedError, meaning
from fism_common.joining import Status, Terms
from fism_common.problem.registry import variant_of
from fism_common.wire.codec import read_client_message
from fism_common.wire.messages import Opening
from fism_common.wire.terms import (
    read_join_request,
    read_status_request,
    write_status,
    write_terms,
)
from fism_server.federation.notices import EventKind
from fism_server.net.access import identity
from fism_server.net.connection import Connection

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from fism_common.data.columns import Recipe
    from fism_server.archive.events import Journal
    from fism_server.federation.admission import Admission
    from fism_server.federation.roster import Member, Roster
    from fism_server.net.access import Connections
    from fism_server.net.hub import Hub
    from fism_server.problem.plan import Plan

_log = logging.getLogger(__name__)

_SECONDS_TO_SPEAK = 10.0
_LONGEST_TEXT = 200

Response = TypeVar("Response")
Stream: TypeAlias = "grpc.aio.ServicerContext[bytes, bytes]"


class FederationService:
    """The rpcs Join, Round and Status, and the health check."""

    def __init__(  # noqa: PLR0913, PLR0917
        self,
        run_id: str,
        plan: Plan,
        roster: Roster,
        admission: Admission,
        hub: Hub,
        journal: Journal,
        connections: Connections,
        *,
        secure: bool,
    ) -> None:
        """Take the parts of the run to serve; with ``secure``, every caller needs a certificate."""
        self._run_id, self._plan, self._roster, self._admission = run_id, plan, roster, admission
        self._hub, self._journal = hub, journal
        self._connections, self._secure = connections, secure
        self.over = False

    def handler(self) -> grpc.GenericRpcHandler:
        """Return the rpcs for a server.

        They receive bytes, so that we report parse errors, and send bytes, so that a broadcast is serialised once. All
        of them take streams of requests, of which Join and Status read one: for a unary request, gRPC would wait
        forever and keep what has arrived.
        """
        return grpc.method_handlers_generic_handler(
            "fism.v1.Federation",
            {
                "Join": grpc.stream_unary_rpc_method_handler(self.Join),
                "Round": grpc.stream_stream_rpc_method_handler(self.Round),
                "Status": grpc.stream_unary_rpc_method_handler(self.Status),
            },
        )

    def health_handler(self) -> grpc.GenericRpcHandler:
        """Return the rpc that answers health checks, with the same limits as the others."""
        check: grpc.RpcMethodHandler[bytes, health_pb2.HealthCheckResponse] = grpc.stream_unary_rpc_method_handler(
            self.Check, response_serializer=health_pb2.HealthCheckResponse.SerializeToString
        )
        return grpc.method_handlers_generic_handler("grpc.health.v1.Health", {"Check": check})

    async def Join(self, _: AsyncIterator[bytes], context: Stream) -> bytes:
        """Admit a client, or refuse it with a reason."""
        name = ""
        try:
            request = read_join_request(await self._first(context) or b"")
            name = request.name
            if self.over:
                raise MismatchError("the run is over")
            caller, now = self._identity(context), time.monotonic()
            if request.dry_run:
                return write_terms(self._terms(self._admission.check(request, now, caller)))
            member = self._admission.join(request, now, caller)
        except FismError as error:
            await self._refuse(context, error, name)
        _log.info("joined client=%s rows=%d virtual_clients=%d", member.name, member.rows, member.virtual_clients)
        return write_terms(self._terms(self._roster.recipe, member.token))

    def _terms(self, recipe: Recipe, token: bytes = b"") -> Terms:
        return Terms(
            run_id=self._run_id,
            token=token,
            loss=self._plan.loss,
            constraint=variant_of(self._plan.constraint),
            round=self._hub.round,
            recipe=recipe,
            version=__version__,
        )

    async def Round(self, _: AsyncIterator[bytes], context: Stream) -> None:
        """Serve one client's stream until it ends."""
        try:
            first = await self._first(context)
            if first is None:
                return  # it left before it sent anything
            member = self._open(first, context)
        except FismError as error:
            await self._refuse(context, error, "")
        tasks: list[asyncio.Task[tuple[EventKind, str]]] = []
        connection = Connection(member, lambda: [task.cancel() for task in tasks])
        self._hub.attach(connection)
        tasks += [
            asyncio.create_task(_send(connection, context)),
            asyncio.create_task(self._receive(connection, context)),
        ]
        why = (EventKind.LOST, "the connection is lost")
        try:
            done, _pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            ended = next(iter(done))
            if not ended.cancelled():
                why = ended.result()
        finally:
            connection.end()
            self._hub.detach(connection, *why)  # first: this coroutine may be cancelled again while it waits
            await asyncio.gather(*tasks, return_exceptions=True)

    async def Status(self, _: AsyncIterator[bytes], context: Stream) -> bytes:
        """Report the progress of the run, to its clients only."""
        try:
            token = read_status_request(await self._first(context) or b"")
            self._admission.check_member(token, self._identity(context))
        except FismError as error:
            await self._refuse(context, error, "")
        present = len(self._roster.present())
        return write_status(Status(self._run_id, self._hub.round, present, self._roster.expected))

    async def Check(
        self, _: AsyncIterator[bytes], context: grpc.aio.ServicerContext[bytes, health_pb2.HealthCheckResponse]
    ) -> health_pb2.HealthCheckResponse:
        """Report that the server is healthy."""
        try:
            await self._first(context)
            self._identity(context)
        except FismError as error:
            await self._refuse(context, error, "")
        return health_pb2.HealthCheckResponse(status=health_pb2.HealthCheckResponse.SERVING)

    def _identity(self, context: grpc.aio.ServicerContext[bytes, Response]) -> str | None:
        """Return the name in the caller's certificate; None in plain text."""
        self._connections.call(context.peer())
        return identity(context.auth_context(), secure=self._secure)

    def _open(self, raw: bytes, context: Stream) -> Member:
        """Return the member that a stream belongs to, from its first message."""
        first = read_client_message(raw)
        if not isinstance(first, Opening):
            raise ContractError("the first message of a stream must be Opening")
        return self._admission.open(first.token, first.shard_digest, self._identity(context))

    @staticmethod
    async def _first(context: grpc.aio.ServicerContext[bytes, Response]) -> bytes | None:
        """Return the first message of a call, None if it ends without one; raise NotJoinedError if none comes soon."""
        try:
            async with asyncio.timeout(_SECONDS_TO_SPEAK):
                return await _read(context)
        except TimeoutError:
            raise NotJoinedError(f"no message in {_SECONDS_TO_SPEAK:g} s") from None

    async def _refuse(
        self, context: grpc.aio.ServicerContext[bytes, Response], error: FismError, name: str
    ) -> NoReturn:
        """End the call with the error's status and text."""
        self._journal.note(EventKind.REFUSED, _in_one_line(name), str(error))
        await context.abort(getattr(grpc.StatusCode, meaning(error).status), str(error))

    async def _receive(self, connection: Connection, context: Stream) -> tuple[EventKind, str]:
        """Handle the client's messages; return why there are no more."""
        while (raw := await _read(context)) is not None:
            if connection.ending:
                continue
            try:
                reason = self._hub.receive(connection, read_client_message(raw))
            except ContractError as error:
                self._hub.violate(connection, str(error))
            else:
                if reason is not None:
                    return EventKind.LEFT, _in_one_line(reason)
        return EventKind.LOST, "the connection is lost"  # an end of stream also arrives when the peer is killed


async def _read(context: grpc.aio.ServicerContext[bytes, Response]) -> bytes | None:
    """Return the next message; None at the end of the stream, which gRPC's types do not include."""
    received: object = await context.read()
    return received if isinstance(received, bytes) else None


def _in_one_line(text: str) -> str:
    """Return remote text as one short line, so that it cannot be mistaken for ours."""
    text = text[:_LONGEST_TEXT]
    return text if text.isprintable() else repr(text)


async def _send(connection: Connection, context: Stream) -> tuple[EventKind, str]:
    """Send what is queued, until the server hangs up."""
    while (messages := await connection.outbox.get()) is not None:
        for message in messages:
            await context.write(message)
        messages, message = (), b""  # as long as two vectors: not kept until the next question
    return EventKind.LEFT, "finished"
