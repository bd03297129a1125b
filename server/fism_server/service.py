"""The gRPC edge of the server: the rpcs, and the one place where errors become statuses."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, NoReturn, TypeAlias, TypeVar

import grpc
import grpc.aio

from fism_common.errors import ContractError, FismError, MismatchError, NotAllowedError, NotJoinedError, meaning
from fism_common.pb import federation_pb2 as pb
from fism_common.terms import loss_message, set_message
from fism_common.wire import read_client_message, read_message
from fism_server.access import identity
from fism_server.events import Kind
from fism_server.link import Link

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from fism_server.access import Connections
    from fism_server.events import Journal
    from fism_server.hub import Hub
    from fism_server.members import Member, Members
    from fism_server.plan import Plan

_log = logging.getLogger(__name__)

_SECONDS_TO_OPEN = 10.0
_LONGEST_TEXT = 200

Response = TypeVar("Response")
Stream: TypeAlias = "grpc.aio.ServicerContext[bytes, bytes]"


class FederationService:
    """Join, Round and Status."""

    def __init__(  # noqa: PLR0913, PLR0917
        self, run_id: str, plan: Plan, members: Members, hub: Hub, journal: Journal, connections: Connections
    ) -> None:
        """Take the run that this is the edge of."""
        self._run_id, self._plan, self._members, self._hub, self._journal = run_id, plan, members, hub, journal
        self._connections = connections
        self.over = False

    def handler(self) -> grpc.GenericRpcHandler:
        """Return the rpcs for a server.

        What Join and Round receive is bytes still: an error in reading them is ours to tell. What Round sends is bytes
        already: a broadcast is serialised once.
        """
        return grpc.method_handlers_generic_handler(
            "fism.v1.Federation",
            {
                "Join": grpc.unary_unary_rpc_method_handler(
                    self.Join,
                    response_serializer=pb.JoinReply.SerializeToString,
                ),
                "Round": grpc.stream_stream_rpc_method_handler(self.Round),
                "Status": grpc.unary_unary_rpc_method_handler(
                    self.Status,
                    response_serializer=pb.StatusReply.SerializeToString,
                ),
            },
        )

    async def Join(self, raw: bytes, context: grpc.aio.ServicerContext[bytes, pb.JoinReply]) -> pb.JoinReply:
        """Let a client in, or tell it why not."""
        request = pb.JoinRequest()
        try:
            request = read_message(pb.JoinRequest, raw)
            if self.over:
                raise MismatchError("the run is over")
            member = self._members.join(request, self._identity(context))
        except FismError as error:
            await self._refuse(context, error, request.name)
        _log.info("joined client=%s rows=%d shards=%d", member.name, member.rows, member.shards)
        return pb.JoinReply(
            run_id=self._run_id,
            token=member.token,
            loss=loss_message(self._plan.loss),
            set=set_message(self._plan.constraint),
            round=self._hub.round,
        )

    async def Round(self, _: AsyncIterator[bytes], context: Stream) -> None:
        """Serve one client's stream until it ends."""
        try:
            member = await self._open(context)
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

    def _identity(self, context: grpc.aio.ServicerContext[bytes, Response]) -> str | None:
        """Return the name in the caller's certificate; None in plain text."""
        self._connections.call(context.peer())
        return identity(context.auth_context())

    async def _open(self, context: Stream) -> Member:
        """Return the member whose stream this is, as its first message shows."""
        try:
            async with asyncio.timeout(_SECONDS_TO_OPEN):
                raw = await _read(context)
        except TimeoutError:
            raise NotJoinedError(f"no Opening in {_SECONDS_TO_OPEN:g} s") from None
        first = pb.ClientMessage() if raw is None else read_client_message(raw)[0]
        if first.WhichOneof("kind") != "opening":
            raise ContractError("the first message of a stream is Opening")
        return self._members.open(first.opening.token, first.opening.shard_digest, self._identity(context))

    async def _refuse(
        self, context: grpc.aio.ServicerContext[bytes, Response], error: FismError, name: str
    ) -> NoReturn:
        """End the call with the status that the error means, and its text."""
        self._journal.note(Kind.REFUSED, _in_one_line(name), str(error))
        await context.abort(getattr(grpc.StatusCode, meaning(error).status), str(error))

    async def Status(self, raw: bytes, context: grpc.aio.ServicerContext[bytes, pb.StatusReply]) -> pb.StatusReply:
        """Tell a client of the run how far it is, and nobody else."""
        try:
            token = read_message(pb.StatusRequest, raw).token
            if not self._members.is_member(token, self._identity(context)):
                raise NotAllowedError("only clients of the run are told how far it is")
        except FismError as error:
            await self._refuse(context, error, "")
        return pb.StatusReply(
            run_id=self._run_id,
            round=self._hub.round,
            clients_present=len(self._members.present()),
            clients_expected=self._members.expected,
        )

    async def _receive(self, link: Link, context: Stream) -> tuple[Kind, str]:
        """Take the client's messages; return why there are no more."""
        while (raw := await _read(context)) is not None:
            if link.finished:
                continue  # said goodbye: what is still on its way has no effect
            try:
                message, x = read_client_message(raw)
                if message.WhichOneof("kind") == "leaving":
                    return Kind.LEFT, _in_one_line(message.leaving.reason)
                self._hub.receive(link, message, x)
            except ContractError as error:
                self._hub.offend(link, error)
        return Kind.LOST, "the connection is lost"  # an end of stream also arrives when the peer is killed


async def _read(context: Stream) -> bytes | None:
    """Return the next message; None at the end of the stream, which gRPC's own types forget."""
    received: object = await context.read()
    return received if isinstance(received, bytes) else None


def _in_one_line(text: str) -> str:
    """Return what somebody else has written so that it cannot pass for ours."""
    text = text[:_LONGEST_TEXT]
    return text if text.isprintable() else repr(text)


async def _send(link: Link, context: Stream) -> tuple[Kind, str]:
    """Send what is posted, until the link is finished."""
    while (messages := await link.outbox.get()) is not None:
        for message in messages:
            await context.write(message)
    return Kind.LEFT, "finished"
