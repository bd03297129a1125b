"""The gRPC edge of the server: the rpcs, and the one place where errors become statuses."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, NoReturn, TypeAlias, TypeVar

import grpc
import grpc.aio
from grpc_health.v1 import health_pb2

from fism_common import __version__
from fism_common.data.columns import recipe_message
from fism_common.errors import ContractError, FismError, MismatchError, NotJoinedError, meaning
from fism_common.wire.codec import read_client_message, read_message
from fism_common.wire.pb import federation_pb2 as pb
from fism_common.wire.terms import loss_message, set_message
from fism_server.archive.events import Kind
from fism_server.net.access import identity
from fism_server.net.link import Link

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from fism_common.data.columns import Recipe
    from fism_server.archive.events import Journal
    from fism_server.federation.roster import Member, Members
    from fism_server.net.access import Connections
    from fism_server.net.hub import Hub
    from fism_server.problem.plan import Plan

_log = logging.getLogger(__name__)

_SECONDS_TO_SPEAK = 10.0
_LONGEST_TEXT = 200

Response = TypeVar("Response")
Stream: TypeAlias = "grpc.aio.ServicerContext[bytes, bytes]"


class FederationService:
    """Join, Round and Status, and the health check beside them."""

    def __init__(  # noqa: PLR0913, PLR0917
        self,
        run_id: str,
        plan: Plan,
        members: Members,
        hub: Hub,
        journal: Journal,
        connections: Connections,
        *,
        secure: bool,
    ) -> None:
        """Take the run that this is the edge of; ``secure`` lets nobody in without a certificate."""
        self._run_id, self._plan, self._members, self._hub, self._journal = run_id, plan, members, hub, journal
        self._connections, self._secure = connections, secure
        self.over = False

    def handler(self) -> grpc.GenericRpcHandler:
        """Return the rpcs for a server.

        What they receive is bytes still: an error in reading them is ours to tell. What Round sends is bytes already: a
        broadcast is serialised once. All of them are streams of requests, of which Join and Status read one: gRPC would
        wait for it without end, and hold what has come.
        """
        return grpc.method_handlers_generic_handler(
            "fism.v1.Federation",
            {
                "Join": grpc.stream_unary_rpc_method_handler(
                    self.Join,
                    response_serializer=pb.JoinReply.SerializeToString,
                ),
                "Round": grpc.stream_stream_rpc_method_handler(self.Round),
                "Status": grpc.stream_unary_rpc_method_handler(
                    self.Status,
                    response_serializer=pb.StatusReply.SerializeToString,
                ),
            },
        )

    def health_handler(self) -> grpc.GenericRpcHandler:
        """Return the rpc that tells a health check that the server serves, under the limits of the others."""
        check: grpc.RpcMethodHandler[bytes, health_pb2.HealthCheckResponse] = grpc.stream_unary_rpc_method_handler(
            self.Check, response_serializer=health_pb2.HealthCheckResponse.SerializeToString
        )
        return grpc.method_handlers_generic_handler("grpc.health.v1.Health", {"Check": check})

    async def Join(
        self, _: AsyncIterator[bytes], context: grpc.aio.ServicerContext[bytes, pb.JoinReply]
    ) -> pb.JoinReply:
        """Let a client in, or tell it why not."""
        request = pb.JoinRequest()
        try:
            request = read_message(pb.JoinRequest, await self._first(context) or b"")
            if self.over:
                raise MismatchError("the run is over")
            caller = self._identity(context)
            if request.probe:
                return self._terms(self._members.probe(request, caller))
            member = self._members.join(request, caller)
        except FismError as error:
            await self._refuse(context, error, request.name)
        _log.info("joined client=%s rows=%d shards=%d", member.name, member.rows, member.shards)
        terms = self._terms(self._members.recipe)
        terms.token = member.token
        return terms

    def _terms(self, recipe: Recipe) -> pb.JoinReply:
        return pb.JoinReply(
            run_id=self._run_id,
            loss=loss_message(self._plan.loss),
            set=set_message(self._plan.constraint),
            round=self._hub.round,
            recipe=recipe_message(recipe),
            version=__version__,
        )

    async def Round(self, _: AsyncIterator[bytes], context: Stream) -> None:
        """Serve one client's stream until it ends."""
        try:
            first = await self._first(context)
            if first is None:
                return  # it went before it said a word
            member = self._open(first, context)
        except FismError as error:
            await self._refuse(context, error, "")
        tasks: list[asyncio.Task[tuple[Kind, str]]] = []
        link = Link(member, lambda: [task.cancel() for task in tasks])
        self._hub.attach(link)
        tasks += [asyncio.create_task(_send(link, context)), asyncio.create_task(self._receive(link, context))]
        why = (Kind.LOST, "the connection is lost")
        try:
            done, _pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            ended = next(iter(done))
            if not ended.cancelled():
                why = ended.result()
        finally:
            link.end()
            self._hub.detach(link, *why)  # first: this coroutine may be cancelled once more while it waits
            await asyncio.gather(*tasks, return_exceptions=True)

    async def Status(
        self, _: AsyncIterator[bytes], context: grpc.aio.ServicerContext[bytes, pb.StatusReply]
    ) -> pb.StatusReply:
        """Tell a client of the run how far it is, and nobody else."""
        try:
            token = read_message(pb.StatusRequest, await self._first(context) or b"").token
            self._members.check_member(token, self._identity(context))
        except FismError as error:
            await self._refuse(context, error, "")
        return pb.StatusReply(
            run_id=self._run_id,
            round=self._hub.round,
            clients_present=len(self._members.present()),
            clients_expected=self._members.expected,
        )

    async def Check(
        self, _: AsyncIterator[bytes], context: grpc.aio.ServicerContext[bytes, health_pb2.HealthCheckResponse]
    ) -> health_pb2.HealthCheckResponse:
        """Say that the server serves."""
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
        """Return the member whose stream this is, as its first message shows."""
        first = read_client_message(raw)[0]
        if first.WhichOneof("kind") != "opening":
            raise ContractError("the first message of a stream is Opening")
        return self._members.open(first.opening.token, first.opening.shard_digest, self._identity(context))

    @staticmethod
    async def _first(context: grpc.aio.ServicerContext[bytes, Response]) -> bytes | None:
        """Return the first message of a call, None if it ends without one; it must come soon."""
        try:
            async with asyncio.timeout(_SECONDS_TO_SPEAK):
                return await _read(context)
        except TimeoutError:
            raise NotJoinedError(f"no message in {_SECONDS_TO_SPEAK:g} s") from None

    async def _refuse(
        self, context: grpc.aio.ServicerContext[bytes, Response], error: FismError, name: str
    ) -> NoReturn:
        """End the call with the status that the error means, and its text."""
        self._journal.note(Kind.REFUSED, _in_one_line(name), str(error))
        await context.abort(getattr(grpc.StatusCode, meaning(error).status), str(error))

    async def _receive(self, link: Link, context: Stream) -> tuple[Kind, str]:
        """Take the client's messages; return why there are no more."""
        while (raw := await _read(context)) is not None:
            if link.finished:
                continue
            try:
                message, x = read_client_message(raw)
                if message.WhichOneof("kind") == "leaving":
                    return Kind.LEFT, _in_one_line(message.leaving.reason)
                self._hub.receive(link, message, x)
            except ContractError as error:
                self._hub.offend(link, error)
        return Kind.LOST, "the connection is lost"  # an end of stream also arrives when the peer is killed


async def _read(context: grpc.aio.ServicerContext[bytes, Response]) -> bytes | None:
    """Return the next message; None at the end of the stream, which gRPC's own types forget."""
    received: object = await context.read()
    return received if isinstance(received, bytes) else None


def _in_one_line(text: str) -> str:
    """Return what somebody else has written so that it cannot pass for ours."""
    text = text[:_LONGEST_TEXT]
    return text if text.isprintable() else repr(text)


async def _send(link: Link, context: Stream) -> tuple[Kind, str]:
    """Send what is posted, until the server hangs up."""
    while (messages := await link.outbox.get()) is not None:
        for message in messages:
            await context.write(message)
    return Kind.LEFT, "finished"
