"""Who is asked, who is late, who is excluded: the rules, without a network and with a clock of our own."""

from __future__ import annotations

import math

import numpy as np
import pytest

import fism
from fism_common.data.columns import Recipe
from fism_common.exchange import Answer, Pass, PassAnswer, Question, Solution, SolutionAnswer
from fism_common.sums.grid import grid_of
from fism_common.wire.messages import Key
from fism_server.federation.aggregation import OpenAggregation
from fism_server.federation.conversation import Answered
from fism_server.federation.gathering import TICK, Gathering, TimeLimits
from fism_server.federation.notices import Action, Ask, Disconnect, EventKind, Exclude, Note, Reject
from fism_server.federation.participation import AllClients
from fism_server.federation.roster import Member, Roster

KEY = Key(1, 1)
QUESTION = Pass(np.zeros(2), np.zeros(2), 0.1, 0.1)
AGGREGATION = OpenAggregation(fism.Box(-1, 1), 2)


def point(*x: float, inner: float = 1.0) -> PassAnswer:
    """Return the answer of one of three clients."""
    return PassAnswer(grid_of(AGGREGATION.constraint, 2, 3).words(np.array(x)), (inner,))


GOOD = point(0.0, 0.0)


class Federation:
    """Three clients, and the seconds that have passed."""

    def __init__(self, absence: float = 30.0, round_limit: float = 10.0) -> None:
        """Let all of them be connected."""
        self.a, self.b, self.c = self.members = [Member(name, 4, 2, 1, 2) for name in "abc"]
        roster = Roster(3, Recipe())
        roster.restore(self.members, {}, (), now=0.0)
        self.gathering = Gathering(roster, AllClients(), TimeLimits(round_limit, absence))
        for member in self.members:
            self.gathering.connected(member, 0.0)

    def begin(self, question: Question = QUESTION, key: Key = KEY, now: float = 0.0) -> list[Action]:
        """Ask everybody."""
        return self.gathering.begin(question, key, AGGREGATION, now)

    def answer(
        self, member: Member, now: float, answer: Answer = GOOD, key: Key = KEY, seconds: float = 0.0
    ) -> list[Action]:
        """Let a member answer."""
        return self.gathering.answered(member, Answered(key, answer, seconds), now)


@pytest.fixture
def given() -> Federation:
    """Return a federation whose clients have been asked."""
    federation = Federation()
    federation.begin()
    return federation


def kinds(actions: list[Action]) -> list[str]:
    """Return actions by their names, events by their kinds."""
    return [str(one.kind) if isinstance(one, Note) else type(one).__name__ for one in actions]


def test_all_connected_clients_are_asked_in_order() -> None:
    """An absent one is asked when it returns."""
    federation = Federation()
    federation.gathering.disconnected(federation.b, 1.0, EventKind.LOST, "gone")
    assert federation.begin(now=2.0) == [Ask(federation.a), Ask(federation.c)]
    actions = federation.gathering.connected(federation.b, 5.0)
    assert actions == [Note(EventKind.RETURNED, "b", "after 4.0 s"), Ask(federation.b)]


def test_round_is_complete_when_all_have_answered(given: Federation) -> None:
    """In whatever order they answer."""
    for member in (given.c, given.a, given.b):
        assert not given.gathering.complete
        assert given.answer(member, 1.0) == []
    assert given.gathering.complete


def test_client_that_has_answered_is_not_asked_again_when_it_reconnects(given: Federation) -> None:
    """Its answer counts."""
    given.answer(given.a, 1.0)
    given.gathering.disconnected(given.a, 2.0, EventKind.LOST, "gone")
    assert kinds(given.gathering.connected(given.a, 3.0)) == ["returned"]


def test_second_answer_has_no_effect(given: Federation) -> None:
    """Nor is it a violation: a new process may answer again."""
    given.answer(given.a, 1.0)
    assert given.answer(given.a, 2.0, point(1.0, 1.0, inner=9.0)) == []
    assert given.a.violations == 0
    for member in (given.b, given.c):
        given.answer(member, 3.0)
    assert given.gathering.pending is not None
    assert given.gathering.pending.sums.total().inner == 3.0


def test_answer_to_an_abandoned_attempt_is_late_and_no_violation(given: Federation) -> None:
    """It is not used."""
    given.begin(key=Key(1, 2), now=5.0)
    assert kinds(given.answer(given.a, 6.0, key=Key(1, 1))) == ["late"]
    assert (given.a.violations, given.gathering.complete) == (0, False)


def test_answer_after_the_round_is_late(given: Federation) -> None:
    """To a question of before."""
    given.begin(key=Key(2, 1), now=5.0)
    assert kinds(given.answer(given.a, 6.0, key=Key(1, 1))) == ["late"]


@pytest.mark.parametrize("answer", [point(2.0, 0.0), point(0.0, 0.0, inner=math.nan)], ids=["outside X", "NaN"])
def test_rejected_answer_is_asked_again(given: Federation, answer: Answer) -> None:
    """With the reason; the round waits."""
    actions = given.answer(given.a, 1.0, answer)
    assert kinds(actions) == ["rejected", "Reject", "Ask"]
    assert isinstance(actions[1], Reject)
    assert "the answer is not used" in actions[1].reason
    assert given.answer(given.a, 2.0) == []


def test_malformed_answer_is_rejected(given: Federation) -> None:
    """Its vectors did not fit together."""
    found = Answered(Key(1, 1), None, fault="a slice too many")
    assert kinds(given.gathering.answered(given.a, found, 1.0)) == ["rejected", "Reject", "Ask"]


def test_third_violation_excludes(given: Federation) -> None:
    """It is told why, and is not asked again."""
    bad = point(2.0, 0.0)
    given.answer(given.a, 1.0, bad)
    given.gathering.violated(given.a, "nonsense", 2.0)
    actions = given.answer(given.a, 3.0, bad)
    assert kinds(actions) == ["rejected", "Exclude", "excluded"]
    assert isinstance(actions[1], Exclude)
    assert "3 messages were rejected, the last" in actions[1].reason
    assert (given.a.connected, bool(given.a.excluded)) == (False, True)


def test_missed_deadline_disconnects(given: Federation) -> None:
    """The client may reconnect, and is asked again."""
    given.answer(given.b, 1.0)
    given.answer(given.c, 1.0)
    assert given.gathering.check_time(9.75) == ([], [], 0.25)
    actions, absent, _ = given.gathering.check_time(10.0)
    assert actions == [Note(EventKind.LOST, "a", "no answer in 10 s"), Disconnect(given.a)]
    assert absent == []
    assert kinds(given.gathering.connected(given.a, 12.0)) == ["returned", "Ask"]


def test_deadline_starts_anew_with_every_time_of_asking(given: Federation) -> None:
    """A client that was away has the whole time."""
    for member in (given.b, given.c):
        given.answer(member, 1.0)
    given.gathering.disconnected(given.a, 5.0, EventKind.LOST, "gone")
    given.gathering.connected(given.a, 8.0)
    assert given.gathering.check_time(17.5)[0] == []
    assert kinds(given.gathering.check_time(18.0)[0]) == ["lost", "Disconnect"]


def test_third_missed_deadline_of_one_round_excludes(given: Federation) -> None:
    """With what to do about it."""
    for member in (given.b, given.c):
        given.answer(member, 1.0)
    for now in (10.0, 20.0):
        given.gathering.check_time(now)
        given.gathering.connected(given.a, now)
    actions, _, _ = given.gathering.check_time(30.0)
    assert kinds(actions) == ["Exclude", "excluded"]
    assert "raise limits.round_seconds" in given.a.excluded


def test_missed_deadlines_of_other_rounds_do_not_count(given: Federation) -> None:
    """A slow day is not an offence."""
    for k in range(1, 6):
        given.begin(key=Key(k, 1), now=100.0 * k)
        for member in (given.b, given.c):
            given.answer(member, 100.0 * k, key=Key(k, 1))
        given.gathering.check_time(100.0 * k + 10)
        given.gathering.connected(given.a, 100.0 * k + 10)
        given.answer(given.a, 100.0 * k + 11, key=Key(k, 1))
    assert not given.a.excluded


def test_absence_is_told_when_it_is_too_long(given: Federation) -> None:
    """And not before; the pause ends at that moment."""
    for member in (given.b, given.c):
        given.answer(member, 1.0)
    given.gathering.disconnected(given.a, 5.0, EventKind.LOST, "gone")
    assert given.gathering.check_time(34.5) == ([], [], 0.5)
    assert given.gathering.check_time(35.0)[1] == [given.a]


def test_all_absent_clients_are_told_at_once(given: Federation) -> None:
    """So that a round is abandoned once."""
    for member in (given.a, given.b):
        given.gathering.disconnected(member, 5.0, EventKind.LOST, "gone")
    given.answer(given.c, 1.0)
    assert given.gathering.check_time(35.0)[1] == [given.a, given.b]


def test_absence_of_a_client_that_has_answered_matters_to_the_next_round(given: Federation) -> None:
    """This one does not wait for it."""
    given.answer(given.a, 1.0)
    given.gathering.disconnected(given.a, 2.0, EventKind.LOST, "gone")
    assert given.gathering.check_time(5.0)[1] == []
    for member in (given.b, given.c):
        given.answer(member, 6.0)
    given.begin(key=Key(2, 1), now=7.0)
    assert given.gathering.check_time(32.0)[1] == [given.a]


@pytest.mark.parametrize(("absence", "absent"), [(30.0, ["a"]), (math.inf, [])], ids=["continue or stop", "wait"])
def test_excluded_client_is_not_awaited(absence: float, absent: list[str]) -> None:
    """But with "wait" it may be started anew, and the run waits for that."""
    federation = Federation(absence)
    federation.begin()
    for _ in range(3):
        federation.gathering.violated(federation.a, "nonsense", 1.0)
    assert [member.name for member in federation.gathering.check_time(1.0)[1]] == absent


def test_time_in_which_the_server_did_not_run_counts_against_nobody(given: Federation) -> None:
    """Neither for deadlines nor for absences."""
    given.answer(given.c, 1.0)
    given.gathering.disconnected(given.b, 2.0, EventKind.LOST, "gone")
    given.gathering.forgive(100.0)
    actions, absent, pause = given.gathering.check_time(109.0)
    assert (actions, absent, pause) == ([], [], TICK)
    assert kinds(given.gathering.check_time(110.0)[0]) == ["lost", "Disconnect"]
    assert given.gathering.check_time(132.0)[1] == [given.b]


def test_client_that_has_the_solution_gets_it_again_and_nobody_waits_for_it() -> None:
    """A new process needs it too; its second answer changes nothing."""
    federation = Federation()
    federation.begin(Solution(np.zeros(2)))
    federation.answer(federation.a, 1.0, SolutionAnswer((1.0,)))
    federation.gathering.disconnected(federation.a, 2.0, EventKind.LOST, "gone")
    assert kinds(federation.gathering.connected(federation.a, 3.0)) == ["returned", "Ask"]
    for member in (federation.b, federation.c):
        federation.answer(member, 4.0, SolutionAnswer((1.0,)))
    assert federation.gathering.complete
    assert federation.answer(federation.a, 5.0, SolutionAnswer((7.0,))) == []
    federation.gathering.disconnected(federation.b, 6.0, EventKind.LOST, "gone")
    assert kinds(federation.gathering.connected(federation.b, 7.0)) == ["returned", "Ask"]


@pytest.mark.parametrize(("said", "kept"), [(0.25, 0.25), (7.0, 0.5), (math.inf, 0.5), (-1.0, 0.0), (math.nan, 0.0)])
def test_client_cannot_claim_to_have_computed_longer_than_it_was_awaited(said: float, kept: float) -> None:
    """What a client says of its time is a claim; the server's clock bounds it."""
    federation = Federation()
    federation.begin(now=1.0)
    federation.answer(federation.a, 1.5, seconds=said)
    assert federation.gathering.pending is not None
    assert federation.gathering.pending.timings[federation.a] == (kept, 0.5)


def test_waiting_names_those_who_have_not_answered(given: Federation) -> None:
    """Since they were asked, or since they are away."""
    given.answer(given.a, 1.0)
    given.gathering.disconnected(given.b, 6.0, EventKind.LOST, "gone")
    assert given.gathering.waiting(10.0) == [("b", 4.0), ("c", 10.0)]
