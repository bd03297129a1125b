"""The open streams: asks all clients, gathers their answers, and knows who is waited for. No gRPC call here."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from dataclasses import dataclass, field
from functools import reduce
from math import isfinite
from operator import add
from typing import TYPE_CHECKING

from fism_common.wire.codec import closing_messages, order_messages
from fism_common.wire.pb import federation_pb2 as pb
from fism_common.wire.terms import setup_messages
from fism_server.archive.events import Kind
from fism_server.archive.timing import took
from fism_server.federation.acceptance import closing_fault, evaluation_fault, fault, moments_fault, slack
from fism_server.net.link import CLOSING, MEASURING

if TYPE_CHECKING:
    from fism_common.data.moments import Moments, Scaling
    from fism_common.errors import ContractError
    from fism_common.exchange import Evaluation, Order, Reply
    from fism_common.problem.sets import ConstraintSet
    from fism_common.vectors import Vector
    from fism_server.archive.events import Journal
    from fism_server.archive.timing import Took
    from fism_server.federation.roster import Member, Members
    from fism_server.net.link import Answer, Key, Link

_log = logging.getLogger(__name__)
_TRIES = 3
"""How often a client may offend in a run, or miss the deadline in one round, before it is put out."""
_TICK = 1.0


class AbsentError(Exception):
    """Clients have been away for longer than the run waits; it is for the run to decide what to do."""

    def __init__(self, members: list[Member]) -> None:
        """Take who is away."""
        super().__init__(f"away for too long: {', '.join(member.name for member in members)}")
        self.members = members


@dataclass(slots=True, eq=False)
class Pending:
    """A question to all clients, and the answers so far."""

    key: Key
    messages: list[bytes]
    waiting: set[Member]
    began: float = field(default_factory=time.monotonic)
    asked: dict[Member, float] = field(default_factory=dict)
    """When each was asked last, by the monotonic clock."""
    missed: dict[Member, int] = field(default_factory=dict)
    """How often each missed the deadline."""
    answers: dict[Member, Answer] = field(default_factory=dict)
    times: dict[Member, Took] = field(default_factory=dict)

    def ask(self, member: Member) -> None:
        """Put the question to a member, if it is there."""
        if member.link is not None:
            self.asked[member] = time.monotonic()
            member.link.ask(self.key, self.messages)

    def take(self, member: Member, answer: Answer) -> None:
        """Take a member's answer: it is waited for no longer."""
        self.answers[member] = answer
        self.times[member] = took(answer.seconds, time.monotonic() - self.began)
        self.waiting.discard(member)


@dataclass(frozen=True, slots=True)
class Gathered:
    """All answers to a question, in federation order."""

    replies: list[Reply]
    evaluation: Evaluation | None
    times: list[Took]


class Hub:
    """All links of a run. A client that comes back is asked again."""

    def __init__(  # noqa: PLR0913
        self,
        members: Members,
        constraint: ConstraintSet,
        journal: Journal,
        *,
        round_limit: float,
        absence: float,
        measured: bool = False,
    ) -> None:
        """Take who may come, and the set that replies must be in; ``measured`` if columns are to be measured first.

        ``round_limit`` is how many seconds a reply may take, ``absence`` how many a lost client may stay away, for
        ever if it is infinite.
        """
        self._members, self._constraint, self._journal = members, constraint, journal
        self._round_limit, self._absence = round_limit, absence
        self._setup = [] if measured else setup_messages(constraint)
        self._pending: Pending | None = None
        self._closing: list[bytes] = []
        """The solution, once it is known."""
        self._goodbye: pb.ServerMessage | None = None
        self._slack = 0.0
        self._began = time.monotonic()
        self._changed = asyncio.Event()

    @property
    def round(self) -> int:
        """The round under way; 0 before the first."""
        return self._journal.round

    def waiting(self) -> list[tuple[str, float]]:
        """Return who is waited for, each with the seconds so far."""
        now, pending = time.monotonic(), self._pending
        if pending is None:
            return [(name, now - self._began) for name in self._members.missing()]
        awaited = [member for member in self._members.in_order() if member in pending.waiting]
        return [(m.name, now - (pending.asked[m] if m.link else m.away_since or now)) for m in awaited]

    def attach(self, link: Link) -> None:
        """Take a member's new stream; one that it had before is ended."""
        member = link.member
        if member.link is not None:
            self._lose(member.link, "a new stream replaces this one")
        if member.away_since is not None:
            self._journal.note(Kind.RETURNED, member.name, f"after {time.monotonic() - member.away_since:.1f} s")
        member.link, member.away_since = link, None
        self._changed.set()
        if self._setup:
            link.outbox.put_nowait(self._setup)
        pending = self._pending
        if self._goodbye is not None:
            if self._goodbye.goodbye.finished:
                link.outbox.put_nowait(self._closing)
            link.say_goodbye(self._goodbye)
        elif pending is not None and pending.key[0] == CLOSING:
            if pending.waiting:
                pending.waiting.add(member)  # a new process of one that has answered needs the solution too
                pending.ask(member)
            else:
                link.ask(pending.key, self._closing)
        elif pending is not None and member in pending.waiting:
            pending.ask(member)

    def detach(self, link: Link, kind: Kind, reason: str) -> None:
        """Forget a stream that has ended."""
        member = link.member
        if member.link is link:
            member.link, member.away_since = None, time.monotonic()
            if not link.finished:
                self._journal.note(kind, member.name, reason)
            self._changed.set()

    async def everyone(self) -> list[Member]:
        """Wait until every expected client has an open stream; return them in federation order."""
        while len(self._members.present()) < self._members.expected:
            self._changed.clear()
            await self._changed.wait()
        return self._members.in_order()

    async def measure(self, attempt: int) -> list[Moments]:
        """Ask every client for the moments of its columns; raise AbsentError if some do not answer."""
        asked = pb.ServerMessage(measure=pb.Measure(attempt=attempt)).SerializeToString()
        answers, _ = await self._ask((MEASURING, attempt), [asked])
        return [answer.moments for answer in answers if answer.moments is not None]

    def set_up(self, scaling: Scaling) -> None:
        """Tell every client, also those that come later, the scaling of the columns."""
        self._setup = setup_messages(self._constraint, scaling)
        for member in self._members.present():
            if member.link is not None:
                member.link.outbox.put_nowait(self._setup)

    async def gather(self, order: Order, attempt: int, *, evaluate: bool) -> Gathered:
        """Send the order to every client, and return when all have answered; raise AbsentError if some do not."""
        messages = order_messages(order, attempt, evaluate=evaluate)
        return _together(*await self._ask((order.round, attempt), messages))

    async def close(self, x: Vector, attempt: int) -> Gathered:
        """Send the solution to every client, and return when all have told F_i there; raise AbsentError likewise.

        Whoever comes later gets it too.
        """
        self._closing = closing_messages(x)
        return _together(*await self._ask((CLOSING, attempt), self._closing))

    def goodbye(self, *, finished: bool, reason: str) -> None:
        """Tell every client, also those that come later, that this is the end.

        Each ends its stream when it has heard: if the stream were ended here, it might not hear.
        """
        self._goodbye = pb.ServerMessage(goodbye=pb.Goodbye(finished=finished, reason=reason))
        for member in self._members.present():
            if member.link is not None:
                member.link.say_goodbye(self._goodbye)

    async def emptied(self, seconds: float) -> None:
        """Wait until every client has hung up; after ``seconds`` end the streams that are left."""
        try:
            async with asyncio.timeout(seconds):
                while self._members.present():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            left = self._members.present()
            _log.warning("did not hang up in %g s: %s", seconds, ", ".join(member.name for member in left))
            for member in left:
                if member.link is not None:
                    member.link.end()

    def receive(self, link: Link, message: pb.ClientMessage, x: bytes | memoryview) -> None:
        """Take a message of a client, with a reply's x; raise ContractError for one that has no place here."""
        pending, member = self._pending, link.member
        answer = link.take(message, x)
        if answer is None:
            return
        if pending is not None and answer.key == pending.key and member in pending.answers:
            return  # of a new process, to the solution
        if pending is None or answer.key != pending.key or member not in pending.waiting:
            self._journal.note(Kind.LATE, member.name, f"an answer to attempt {answer.key[1]}, which was abandoned")
            return
        reason = answer.fault or self._fault(answer, member)
        if reason is None:
            pending.take(member, answer)
            if not pending.waiting:
                self._changed.set()
        elif not self.offend(link, f"the answer is not used: {reason}"):
            pending.ask(member)

    def offend(self, link: Link, error: ContractError | str) -> bool:
        """Count a message that cannot be used, and tell the client; return whether it is put out for it."""
        link.member.offences += 1
        self._journal.note(Kind.BAD, link.member.name, str(error))
        if link.member.offences >= _TRIES:
            self._put_out(link, f"{_TRIES} messages could not be used, the last: {error}")
            return True
        link.post(pb.ServerMessage(refused=pb.Refused(round=self.round, reason=str(error))))
        return False

    def _put_out(self, link: Link, reason: str) -> None:
        link.member.put_out = reason
        link.hang_up(pb.ServerMessage(refused=pb.Refused(round=self.round, reason=reason, put_out=True)))
        self._journal.note(Kind.PUT_OUT, link.member.name, reason)
        self.detach(link, Kind.LOST, reason)

    async def _ask(self, key: Key, messages: list[bytes]) -> tuple[list[Answer], list[Took]]:
        """Return all answers, in federation order, and how long they took."""
        members = self._members.in_order()
        if not self._slack:
            self._slack = slack(self._constraint, members[0].width)
        pending = self._pending = Pending(key, messages, set(members))
        for member in members:
            pending.ask(member)
        while pending.waiting:
            pause = self._enforce(pending)
            self._changed.clear()
            began = time.monotonic()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._changed.wait()
            self._forgive(pending, time.monotonic() - began - pause)
        pending.messages = []  # nobody needs them again, and they are as long as two vectors
        return [pending.answers[member] for member in members], [pending.times[member] for member in members]

    def _enforce(self, pending: Pending) -> float:
        """Apply both time limits; return the seconds until that is to be done again. Raises AbsentError."""
        now, pause, absent = time.monotonic(), _TICK, []
        for member in [one for one in self._members.in_order() if one in pending.waiting]:
            if member.link is not None:
                left = pending.asked[member] + self._round_limit - now
                if left > 0:
                    pause = min(pause, left)
                    continue
                self._miss(pending, member.link)
            assert member.away_since is not None  # noqa: S101  # who has no link has lost it
            left = member.away_since + self._absence - now
            if left <= 0 or (member.put_out and isfinite(self._absence)):
                absent.append(member)
            pause = min(pause, left)
        if absent:
            raise AbsentError(absent)
        return pause

    def _miss(self, pending: Pending, link: Link) -> None:
        """Count a deadline that was missed: its client is lost, and put out if it goes on like that."""
        member, reason = link.member, f"no reply in {self._round_limit:g} s"
        pending.missed[member] = pending.missed.get(member, 0) + 1
        if pending.missed[member] >= _TRIES:
            self._put_out(link, f"{_TRIES} times {reason} in one round: raise limits.round, or give it fewer rows")
        else:
            self._lose(link, reason)

    def _lose(self, link: Link, reason: str) -> None:
        self.detach(link, Kind.LOST, reason)
        link.end()

    def _forgive(self, pending: Pending, late: float) -> None:
        """Hold nothing against anybody for the time in which this process did not run."""
        if late > _TICK:
            _log.warning("this process did not run for %.1f s, which counts against nobody", late)
            pending.asked = {member: asked + late for member, asked in pending.asked.items()}
            for member in self._members.in_order():
                if member.away_since is not None:
                    member.away_since += late

    def _fault(self, answer: Answer, member: Member) -> str | None:
        """Return why an answer cannot be used; None if it can."""
        if answer.moments is not None:
            return moments_fault(answer.moments, member.rows, self._members.recipe.numeric(member.width))
        closing = answer.key[0] == CLOSING
        found = closing_fault(answer.reply.inner) if closing else fault(answer.reply, self._constraint, self._slack)
        return found or evaluation_fault(answer.evaluation)


def _together(answers: list[Answer], times: list[Took]) -> Gathered:
    evaluations = [answer.evaluation for answer in answers if answer.evaluation is not None]
    return Gathered(
        replies=[answer.reply for answer in answers],
        evaluation=reduce(add, evaluations) if evaluations else None,
        times=times,
    )
