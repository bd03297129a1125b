"""The open streams: sends orders to all clients, and gathers their replies. Knows messages, but no gRPC call."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fism_common.errors import ContractError
from fism_common.exchange import Evaluation, Reply
from fism_common.pb import federation_pb2 as pb
from fism_common.terms import setup_messages
from fism_common.wire import Assembly, closing_messages, from_message, order_messages
from fism_server.replies import fault, slack

if TYPE_CHECKING:
    from collections.abc import Callable

    from fism_common.exchange import Order
    from fism_common.sets import ConstraintSet
    from fism_common.vectors import Vector
    from fism_server.members import Member, Members

_log = logging.getLogger(__name__)


class Link:
    """One client's stream: what is to be sent on it, and the reply that is being put together."""

    def __init__(self, member: Member, end: Callable[[], object]) -> None:
        """Take the member, and what ends the stream."""
        self.member, self.end = member, end
        self.outbox: asyncio.Queue[list[bytes] | None] = asyncio.Queue()
        self.assembly = Assembly(member.columns, 1)
        self.evaluation: Evaluation | None = None
        self.finished = False

    def post(self, *messages: pb.ServerMessage) -> None:
        """Send these next."""
        self.outbox.put_nowait([message.SerializeToString() for message in messages])

    def finish(self) -> None:
        """End the stream when all that was posted is sent."""
        self.finished = True
        self.outbox.put_nowait(None)


@dataclass(slots=True)
class Pending:
    """A question to all clients, and the answers so far."""

    round: int
    """The round that was asked; 0 for the closing exchange."""
    attempt: int
    messages: list[bytes]
    waiting: set[Member]
    replies: dict[Member, Reply] = field(default_factory=dict)
    seconds: dict[Member, float] = field(default_factory=dict)
    evaluation: Evaluation | None = None
    done: asyncio.Event = field(default_factory=asyncio.Event)

    def accept(self, member: Member, reply: Reply, seconds: float, evaluation: Evaluation | None) -> None:
        """Take a member's answer."""
        self.waiting.discard(member)
        self.replies[member], self.seconds[member] = reply, seconds
        if evaluation is not None:
            self.evaluation = evaluation if self.evaluation is None else self.evaluation + evaluation
        if not self.waiting:
            self.done.set()


class Hub:
    """All links of a run. A client that comes back gets the current question again."""

    def __init__(self, members: Members, constraint: ConstraintSet, round_limit: float) -> None:
        """Take who may come, the set that replies must be in, and how long a reply may take."""
        self._members, self._constraint, self._round_limit = members, constraint, round_limit
        self._setup = setup_messages(constraint)
        self._pending: Pending | None = None
        self._slack = 0.0
        self._came, self._went = asyncio.Event(), asyncio.Event()

    @property
    def round(self) -> int:
        """The round under way; 0 before the first."""
        return 0 if self._pending is None else self._pending.round

    def attach(self, link: Link) -> None:
        """Take a member's new stream; one that it had before is ended."""
        member = link.member
        if member.link is not None:
            _log.warning("a new stream replaces the old one client=%s", member.name)
            member.link.end()
        member.link = link
        if self._setup:
            link.outbox.put_nowait(self._setup)
        if self._pending is not None and member in self._pending.waiting:
            link.outbox.put_nowait(self._pending.messages)
        self._came.set()

    def detach(self, link: Link, reason: str) -> None:
        """Forget a stream that has ended."""
        if link.member.link is link:
            link.member.link = None
            self._went.set()
            if not link.finished:
                _log.warning("%s client=%s round=%d", reason, link.member.name, self.round)

    async def everyone(self) -> list[Member]:
        """Wait until every expected client has an open stream; return them in federation order."""
        while len(self._members.present()) < self._members.expected:
            self._came.clear()
            await self._came.wait()
        members = self._members.in_order()
        self._slack = slack(self._constraint, members[0].columns)
        return members

    async def gather(self, order: Order, *, evaluate: bool) -> Pending:
        """Send the order to every client, and return when all have answered."""
        return await self._ask(order.round, order_messages(order, attempt=1, evaluate=evaluate))

    async def close(self, x: Vector) -> Pending:
        """Send the solution to every client, and return when all have told F_i there."""
        return await self._ask(0, closing_messages(x))

    def replies(self, pending: Pending) -> list[Reply]:
        """Return the answers in federation order."""
        return [pending.replies[member] for member in self._members.in_order()]

    def goodbye(self, *, finished: bool, reason: str) -> None:
        """Tell every client that this is the end, and end the streams."""
        for member in self._members.present():
            member.link.post(pb.ServerMessage(goodbye=pb.Goodbye(finished=finished, reason=reason)))
            member.link.finish()

    async def emptied(self, seconds: float) -> None:
        """Wait until every stream has ended, but no longer than ``seconds``."""
        try:
            async with asyncio.timeout(seconds):
                while self._members.present():
                    self._went.clear()
                    await self._went.wait()
        except TimeoutError:
            _log.warning("streams still open after %g s: %s", seconds, [m.name for m in self._members.present()])

    def receive(self, link: Link, message: pb.ClientMessage, x: bytes | memoryview) -> None:
        """Take a message of a client, with a reply's x; raise ContractError for one that has no place here."""
        match message.WhichOneof("kind"):
            case "reply":
                self._reply(link, message.reply, x)
            case "closed":
                self._closed(link, message.closed)
            case kind:
                raise ContractError(f"a message {kind!r} has no place in an open stream")

    async def _ask(self, round_: int, messages: list[bytes]) -> Pending:
        members = self._members.in_order()
        pending = self._pending = Pending(round_, 1, messages, set(members))
        for member in members:
            if member.link is not None:
                member.link.outbox.put_nowait(messages)
        while not pending.done.is_set():
            try:
                async with asyncio.timeout(self._round_limit):
                    await pending.done.wait()
            except TimeoutError:
                self._drop_silent(pending)
        pending.messages = []  # nobody needs them again, and they are as long as two vectors
        return pending

    def _drop_silent(self, pending: Pending) -> None:
        for member in pending.waiting:
            if member.link is not None:
                _log.warning(
                    "no reply in %g s: counted as lost client=%s round=%d",
                    self._round_limit,
                    member.name,
                    pending.round,
                )
                member.link.end()

    def _reply(self, link: Link, message: pb.Reply, x: bytes | memoryview) -> None:
        pending, member = self._pending, link.member
        asked = pending is not None and (message.round, message.attempt) == (pending.round, pending.attempt)
        if pending is None or not asked or member not in pending.waiting:
            _log.warning("a reply that nobody waits for is ignored client=%s round=%d", member.name, message.round)
            return
        if message.offset == 0:
            link.evaluation = from_message(message.evaluation) if message.HasField("evaluation") else None
        if not link.assembly.add(message.offset, x):
            return
        reply = Reply(link.assembly.vectors[0], message.inner, member.shards)
        reason = fault(reply, self._constraint, self._slack)
        if reason is not None:
            raise ContractError(f"the reply to round {message.round} is not used: {reason}")
        pending.accept(member, reply, message.seconds, link.evaluation)

    def _closed(self, link: Link, message: pb.Closed) -> None:
        pending = self._pending
        if pending is None or pending.round != 0 or link.member not in pending.waiting:
            _log.warning("a closing answer that nobody waits for is ignored client=%s", link.member.name)
            return
        evaluation = from_message(message.evaluation) if message.HasField("evaluation") else None
        pending.accept(link.member, Reply(link.assembly.vectors[0], message.inner, link.member.shards), 0.0, evaluation)
