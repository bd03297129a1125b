"""The gRPC edge of the server: the rpcs, and the one place where errors become statuses."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, NoReturn, TypeAlias, TypeVar

import grpc
import grpc.aio

from fism_common.errors import ContractError, FismError, MismatchError, meaning
from fism_common.pb import federation_pb2 as pb
from fism_common.terms import loss_message, set_message
from fism_common.wire import read_client_message
from fism_server.hub import Link

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from fism_server.hub import Hub
    from fism_server.members import Members
    from fism_server.plan import Plan

_log = logging.getLogger(__name__)

Request = TypeVar("Request")
Response = TypeVar("Response")
Received: TypeAlias = tuple[pb.ClientMessage, bytes | memoryview]
Stream: TypeAlias = "grpc.aio.ServicerContext[Received, bytes]"


class FederationService:
    """Join, Round and Status."""

    def __init__(self, run_id: str, plan: Plan, members: Members, hub: Hub) -> None:
        """Take the run that this is the edge of."""
        self._run_id, self._plan, self._members, self._hub = run_id, plan, members, hub
        self.over = False

    def handler(self) -> grpc.GenericRpcHandler:
        """Return the rpcs for a server. What Round sends is bytes already: a broadcast is serialised once."""
        return grpc.method_handlers_generic_handler(
            "fism.v1.Federation",
            {
                "Join": grpc.unary_unary_rpc_method_handler(
                    self.Join,
                    request_deserializer=pb.JoinRequest.FromString,
                    response_serializer=pb.JoinReply.SerializeToString,
                ),
                "Round": grpc.stream_stream_rpc_method_handler(
                    self.Round, request_deserializer=read_client_message, response_serializer=bytes
                ),
                "Status": grpc.unary_unary_rpc_method_handler(
                    self.Status,
                    request_deserializer=pb.StatusRequest.FromString,
                    response_serializer=pb.StatusReply.SerializeToString,
                ),
            },
        )

    async def Join(
        self, request: pb.JoinRequest, context: grpc.aio.ServicerContext[pb.JoinRequest, pb.JoinReply]
    ) -> pb.JoinReply:
        """Let a client in, or tell it why not."""
        try:
            if self.over:
                raise MismatchError("the run is over")
            member = self._members.join(request)
            self._plan.outer.check(member.columns)
        except FismError as error:
            _log.warning("refused to join: %s client=%s", error, request.name)
            await refuse(context, error)
        _log.info("joined client=%s rows=%d shards=%d", member.name, member.rows, member.shards)
        return pb.JoinReply(
            run_id=self._run_id,
            token=member.token,
            loss=loss_message(self._plan.loss),
            set=set_message(self._plan.constraint),
            round=self._hub.round,
        )

    async def Round(self, _: AsyncIterator[Received], context: Stream) -> None:
        """Serve one client's stream until it ends."""
        first = await _read(context)
        try:
            if first is None or first[0].WhichOneof("kind") != "opening":
                raise ContractError("the first message of a stream is Opening")
            opening = first[0].opening
            member = self._members.by_token(opening.token)
        except FismError as error:
            await refuse(context, error)
        member.digest = opening.shard_digest
        tasks: list[asyncio.Task[str]] = []
        link = Link(member, lambda: [task.cancel() for task in tasks])
        self._hub.attach(link)
        tasks += [asyncio.create_task(_send(link, context)), asyncio.create_task(self._receive(link, context))]
        reason = "the connection is lost"
        try:
            done, _pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            ended = next(iter(done))
            if not ended.cancelled():
                reason = ended.result()
        finally:
            link.end()
            self._hub.detach(link, reason)  # first: this coroutine may be cancelled once more while it waits
            await asyncio.gather(*tasks, return_exceptions=True)

    async def Status(
        self, _: pb.StatusRequest, _context: grpc.aio.ServicerContext[pb.StatusRequest, pb.StatusReply]
    ) -> pb.StatusReply:
        """Tell how far the run is."""
        return pb.StatusReply(
            run_id=self._run_id,
            round=self._hub.round,
            clients_present=len(self._members.present()),
            clients_expected=self._members.expected,
        )

    async def _receive(self, link: Link, context: Stream) -> str:
        """Take the client's messages; return why there are no more."""
        while True:
            received = await _read(context)
            if received is None:
                return "the connection is lost"  # an end of stream also arrives when the peer is killed
            message, x = received
            if message.WhichOneof("kind") == "leaving":
                return f"left: {message.leaving.reason}"
            try:
                self._hub.receive(link, message, x)
            except ContractError as error:
                link.post(pb.ServerMessage(refused=pb.Refused(round=message.reply.round, reason=str(error))))
                link.finish()
                _log.warning("refused: %s client=%s", error, link.member.name)


async def _read(context: Stream) -> Received | None:
    """Return the next message; None at the end of the stream, which gRPC's own types forget."""
    received: object = await context.read()
    return received if isinstance(received, tuple) else None


async def _send(link: Link, context: Stream) -> str:
    """Send what is posted, until the link is finished."""
    while (messages := await link.outbox.get()) is not None:
        for message in messages:
            await context.write(message)
    return "finished"


async def refuse(context: grpc.aio.ServicerContext[Request, Response], error: FismError) -> NoReturn:
    """End the call with the status that the error means, and its text."""
    await context.abort(getattr(grpc.StatusCode, meaning(error).status), str(error))
