"""The hub: all open connections of a run. Carries out what the federation core decides, and keeps its clock."""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fism_common.exchange import Solution, with_summands
from fism_common.problem.registry import vectors_of
from fism_common.wire.codec import goodbye_message, kind_of, question_messages, refused_message, setup_messages
from fism_common.wire.messages import Goodbye, Leaving, Refused
from fism_server.federation.gathering import TICK
from fism_server.federation.notices import Ask, Disconnect, EventKind, Exclude, Note, Reject

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fism_common.data.moments import Scaling
    from fism_common.exchange import Question
    from fism_common.problem.sets import ConstraintSet
    from fism_common.wire.messages import ClientMessage, Key, QuestionKind
    from fism_server.archive.events import Journal
    from fism_server.federation.aggregation import Aggregation, Sums
    from fism_server.federation.gathering import Gathering, Timing
    from fism_server.federation.notices import Action
    from fism_server.federation.roster import Member, Roster
    from fism_server.net.connection import Connection

_log = logging.getLogger(__name__)


class AbsentError(Exception):
    """Members have been absent for too long; the run decides what to do about it."""

    def __init__(self, members: list[Member]) -> None:
        """Take the absent members."""
        super().__init__(f"absent for too long: {', '.join(member.name for member in members)}")
        self.members = members


@dataclass(frozen=True, slots=True)
class Gathered:
    """The sums over all answers to a question, and how long the answers took."""

    sums: Sums
    members: list[Member]
    """Who has answered, in federation order."""
    timings: list[Timing]


@dataclass(frozen=True, slots=True)
class Broadcast:
    """The current question, serialised."""

    key: Key
    kind: QuestionKind
    messages: Sequence[bytes]


class Hub:
    """All connections of a run. A client that reconnects is asked again."""

    def __init__(self, roster: Roster, gathering: Gathering, journal: Journal) -> None:
        """Take the members, the rules for gathering answers, and the journal of events."""
        self._roster, self._gathering, self._journal = roster, gathering, journal
        self._connections: dict[Member, Connection] = {}
        self._setup: Sequence[bytes] = ()
        self._broadcast: Broadcast | None = None
        self._goodbye: bytes | None = None
        self.round = 0
        """The current round; 0 before the first."""
        self._began = time.monotonic()
        self._changed = asyncio.Event()

    def waiting(self) -> list[tuple[str, float]]:
        """Return the clients that the run waits for, each with the seconds so far."""
        now = time.monotonic()
        if self._gathering.pending is None:
            return [(name, now - self._began) for name in self._roster.missing()]
        return self._gathering.waiting(now)

    async def everyone(self) -> list[Member]:
        """Wait until every expected client has an open stream; return them in federation order."""
        while len(self._roster.present()) < self._roster.expected:
            self._changed.clear()
            await self._changed.wait()
        return self._roster.in_order()

    def set_up(self, constraint: ConstraintSet, scaling: Scaling | None) -> None:
        """Send the vectors of the problem to every client, including those that connect later."""
        vectors = vectors_of(constraint) | ({} if scaling is None else vars(scaling))
        self._setup = setup_messages(vectors)
        if self._setup:
            for connection in self._connections.values():
                connection.send(*self._setup)

    async def ask(self, question: Question, key: Key, aggregation: Aggregation) -> Gathered:
        """Ask the clients a question; return when it is answered. Raises AbsentError if some stay absent."""
        gathering, loop = self._gathering, asyncio.get_running_loop()
        actions = gathering.begin(question, key, aggregation, time.monotonic())
        asked = with_summands(question, gathering.summands)
        self._broadcast = Broadcast(key, kind_of(question), question_messages(asked, key, self.round))
        self._do(actions)
        while not gathering.complete:
            actions, absent, pause = gathering.check_time(time.monotonic())
            self._do(actions)
            if absent:
                raise AbsentError(absent)
            self._changed.clear()
            began = time.monotonic()
            wake = loop.call_later(pause, self._changed.set)  # cheaper than a timeout
            try:
                await self._changed.wait()
            finally:
                wake.cancel()
            late = time.monotonic() - began - pause
            if late > TICK:
                _log.warning("this process was suspended for %.1f s; all time limits are extended by that", late)
                gathering.forgive(late)
        if not isinstance(question, Solution):  # which clients that return still need
            self._broadcast = None  # as long as two vectors
        pending = gathering.pending
        assert pending is not None  # noqa: S101  # it has just begun
        members = [member for member in pending.chosen if member in pending.timings]
        return Gathered(pending.sums, members, [pending.timings[member] for member in members])

    def goodbye(self, *, finished: bool, reason: str) -> None:
        """Tell every client, including those that connect later, that the run is over.

        Each client ends its stream when it has read this. If the server ended the stream, the client might not read it.
        """
        self._goodbye = goodbye_message(Goodbye(finished, reason))
        if not finished:
            self._broadcast = None
        for connection in self._connections.values():
            connection.say_goodbye(self._goodbye)

    async def emptied(self, seconds: float) -> None:
        """Wait until every client has hung up; after ``seconds`` end the streams that are left."""
        try:
            async with asyncio.timeout(seconds):
                while self._roster.present():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            left = self._roster.present()
            _log.warning("clients did not hang up in %g s: %s", seconds, ", ".join(member.name for member in left))
            for member in left:
                self._connections[member].end()

    def attach(self, connection: Connection) -> None:
        """Add a member's new stream, and end its older one."""
        member = connection.member
        if member in self._connections:
            self._do(
                self._gathering.disconnected(member, time.monotonic(), EventKind.LOST, "a new stream replaces this one")
            )
            self._connections.pop(member).end()
        self._connections[member] = connection
        if self._setup:
            connection.send(*self._setup)
        self._do(self._gathering.connected(member, time.monotonic()))
        if self._goodbye is not None:
            connection.say_goodbye(self._goodbye)
        self._changed.set()

    def detach(self, connection: Connection, kind: EventKind, reason: str) -> None:
        """Remove a stream that has ended."""
        member = connection.member
        if self._connections.get(member) is not connection:
            return
        del self._connections[member]
        actions = self._gathering.disconnected(member, time.monotonic(), kind, reason)
        if not connection.ending:
            self._do(actions)
        self._changed.set()

    def receive(self, connection: Connection, message: ClientMessage) -> str | None:
        """Handle a message; return why the client leaves, if it does. Raises ContractError for a violation."""
        found = connection.conversation.receive(message)
        if found is None:
            return None
        if isinstance(found, Leaving):
            return found.reason
        actions = self._gathering.answered(connection.member, found, time.monotonic())
        self._do(actions)
        if not actions and self._gathering.complete:
            self._changed.set()
        return None

    def violate(self, connection: Connection, reason: str) -> None:
        """Handle a message that is not allowed."""
        self._do(self._gathering.violated(connection.member, reason, time.monotonic()))

    def _do(self, actions: list[Action]) -> None:
        """Carry out what the core has decided."""
        for action in actions:
            match action:
                case Ask(member):
                    broadcast, connection = self._broadcast, self._connections.get(member)
                    if broadcast is not None and connection is not None:
                        connection.ask(broadcast.key, broadcast.kind, broadcast.messages)
                case Reject(member, reason):
                    self._connections[member].send(self._refusal(reason, excluded=False))
                case Exclude(member, reason):
                    self._connections.pop(member).hang_up(self._refusal(reason, excluded=True))
                    self._changed.set()
                case Disconnect(member):
                    self._connections.pop(member).end()
                    self._changed.set()
                case Note(kind, member_name, text):
                    self._journal.note(kind, member_name, text)

    def _refusal(self, reason: str, *, excluded: bool) -> bytes:
        return refused_message(Refused(self.round, reason, excluded))
