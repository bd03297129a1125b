"""Gathering: who was asked, who answered, who is late, absent or excluded. No I/O; the time is an argument.

Every method takes what happened and returns the actions that the connection layer must carry out, in order.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isfinite
from typing import TYPE_CHECKING

from fism_common.exchange import Solution
from fism_server.federation.notices import Ask, Disconnect, EventKind, Exclude, Note, Reject

if TYPE_CHECKING:
    from fism_common.exchange import Question
    from fism_common.wire.messages import Key
    from fism_server.federation.aggregation import Aggregation, Sums
    from fism_server.federation.conversation import Answered
    from fism_server.federation.notices import Action
    from fism_server.federation.participation import Participation
    from fism_server.federation.roster import Member, Roster

_TRIES = 3
"""Violations in a run, or missed deadlines in one round, that exclude a client."""
TICK = 1.0
"""The longest pause, in seconds, between two checks of the time limits."""

Timing = tuple[float, float]
"""Seconds of one answer: how long the client reports to have computed, and how long the server waited."""


@dataclass(frozen=True, slots=True)
class TimeLimits:
    """Seconds."""

    round: float
    """How long a client may take for one answer."""
    absence: float
    """How long a client may be absent; infinite to wait forever."""


@dataclass(slots=True, eq=False)
class Pending:
    """A question, and the answers so far."""

    solution: bool
    """Whether the question is the solution. The question itself is not kept: it is as long as two vectors."""
    key: Key
    chosen: list[Member]
    """Who takes part, in federation order."""
    sums: Sums
    waiting: set[Member]
    began: float
    asked: dict[Member, float] = field(default_factory=dict)
    """When each was asked last."""
    missed: dict[Member, int] = field(default_factory=dict)
    """How often each missed the deadline."""
    timings: dict[Member, Timing] = field(default_factory=dict)
    """The timings of the members that have answered."""

    def ask(self, member: Member, now: float) -> Ask:
        """Ask a member now."""
        self.asked[member] = now
        return Ask(member)


class Gathering:
    """Sends questions to the members of a roster, and keeps track of the answers."""

    def __init__(self, roster: Roster, participation: Participation, limits: TimeLimits) -> None:
        """Take the members, the rule for who takes part, and the time limits."""
        self._roster, self._participation, self._limits = roster, participation, limits
        self.pending: Pending | None = None
        """The current question, or the last one."""

    def begin(self, question: Question, key: Key, aggregation: Aggregation, now: float) -> list[Action]:
        """Send a question to all members that take part."""
        chosen = self._participation.choose(self._roster.in_order())
        pending = self.pending = Pending(
            isinstance(question, Solution), key, chosen, aggregation.begin(chosen), set(chosen), now
        )
        return [pending.ask(member, now) for member in chosen if member.connected]

    @property
    def summands(self) -> int:
        """How many points the answers to the current question add up to."""
        assert self.pending is not None  # noqa: S101  # only called while there is a question
        return self.pending.sums.summands

    @property
    def complete(self) -> bool:
        """Whether the current question is answered."""
        return self.pending is None or self._participation.is_complete(self.pending.waiting)

    def waiting(self, now: float) -> list[tuple[str, float]]:
        """Return who has not answered the current question, in order, each with the seconds so far."""
        pending = self.pending
        if pending is None:
            return []
        awaited = [member for member in self._roster.in_order() if member in pending.waiting]
        return [(m.name, now - (pending.asked[m] if m.connected else m.absent_since or now)) for m in awaited]

    def connected(self, member: Member, now: float) -> list[Action]:
        """Add a member's new stream; ask it what it has not answered."""
        actions: list[Action] = []
        if member.absent_since is not None:
            actions.append(Note(EventKind.RETURNED, member.name, f"after {now - member.absent_since:.1f} s"))
        member.connected, member.absent_since = True, None
        pending = self.pending
        # A restarted client that has answered needs the solution too, but nobody waits for it.
        if pending is not None and (member in pending.waiting or pending.solution):
            actions.append(pending.ask(member, now))
        return actions

    def disconnected(self, member: Member, now: float, kind: EventKind, reason: str) -> list[Action]:
        """Record the end of a member's stream."""
        member.connected, member.absent_since = False, now
        return [Note(kind, member.name, reason)]

    def answered(self, member: Member, found: Answered, now: float) -> list[Action]:
        """Handle a complete answer: use it, reject it and ask again, or ignore it if nobody waits for it."""
        pending = self.pending
        if pending is not None and found.key == pending.key and member in pending.timings:
            return []  # a restarted client answers the solution again
        if pending is None or found.key != pending.key or member not in pending.waiting:
            text = f"an answer to attempt {found.key.attempt}, which was abandoned"
            return [Note(EventKind.LATE, member.name, text)]
        fault = found.fault
        if fault is None and found.answer is not None:
            fault = pending.sums.fault(found.answer, member)
        if fault is not None or found.answer is None:
            actions = self.violated(member, f"the answer is not used: {fault}", now)
            return actions if member.excluded else [*actions, pending.ask(member, now)]
        pending.sums.add(found.answer, member)
        waited = now - pending.began
        # A client cannot have computed for longer than the server waited; max(0, nan) is 0.
        pending.timings[member] = min(max(0.0, found.seconds), waited), waited
        pending.waiting.discard(member)
        return []

    def violated(self, member: Member, reason: str, now: float) -> list[Action]:
        """Count a message that cannot be used; exclude the member if it was one too many."""
        member.violations += 1
        note = Note(EventKind.REJECTED, member.name, reason)
        if member.violations >= _TRIES:
            return [note, *self._exclude(member, f"{_TRIES} messages were rejected, the last: {reason}", now)]
        return [note, Reject(member, reason)]

    def check_time(self, now: float) -> tuple[list[Action], list[Member], float]:
        """Apply both time limits.

        Returns actions, the members that have been absent for too long, and the seconds until the next check.
        """
        pending = self.pending
        assert pending is not None  # noqa: S101  # only called while there is a question
        actions: list[Action] = []
        absent: list[Member] = []
        pause = TICK
        for member in [one for one in pending.chosen if one in pending.waiting]:
            if member.connected:
                left = pending.asked[member] + self._limits.round - now
                if left > 0:
                    pause = min(pause, left)
                    continue
                actions += self._miss(pending, member, now)
            since = now if member.absent_since is None else member.absent_since
            left = since + self._limits.absence - now
            if left <= 0 or (member.excluded and isfinite(self._limits.absence)):
                absent.append(member)
            pause = min(pause, left)
        return actions, absent, pause

    def forgive(self, seconds: float) -> None:
        """Extend all time limits by the seconds in which this process did not run."""
        if self.pending is not None:
            self.pending.asked = {member: asked + seconds for member, asked in self.pending.asked.items()}
        for member in self._roster.in_order():
            if member.absent_since is not None:
                member.absent_since += seconds

    def _miss(self, pending: Pending, member: Member, now: float) -> list[Action]:
        """Count a missed deadline: the member is lost, and excluded if that was one too many in this round."""
        reason = f"no answer in {self._limits.round:g} s"
        pending.missed[member] = pending.missed.get(member, 0) + 1
        if pending.missed[member] >= _TRIES:
            advice = f"{_TRIES} times {reason} in one round: raise limits.round_seconds, or give it fewer rows"
            return self._exclude(member, advice, now)
        return [*self.disconnected(member, now, EventKind.LOST, reason), Disconnect(member)]

    def _exclude(self, member: Member, reason: str, now: float) -> list[Action]:
        member.excluded = reason
        member.connected, member.absent_since = False, now
        return [Exclude(member, reason), Note(EventKind.EXCLUDED, member.name, reason)]
