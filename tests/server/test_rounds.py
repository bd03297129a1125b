"""The round loop, without clients: replies are made up here."""

from __future__ import annotations

import numpy as np
import pytest

import fism
from fism_common.errors import NumericalError
from fism_common.exchange import Order, Reply
from fism_server.algorithm.rounds import Rounds, State, Stop
from fism_server.problem.outer import SquaredNorm

STEPS = fism.PowerSteps(gamma=0.5, a=0.75, lam=2.0, b=0.125)


def begin(rounds: int = 3, tolerance: float | None = None, first_round: int = 1) -> Rounds:
    """Return a run in two dimensions."""
    state = State.at(first_round, np.array([1.0, 2.0]))
    return Rounds(SquaredNorm(), STEPS, m=8, state=state, last_round=first_round + rounds - 1, tolerance=tolerance)


def reply(*x: float, inner: float = 1.0) -> Reply:
    """Return a client's reply."""
    return Reply(np.array(x), inner)


def test_order_has_the_point_the_subgradient_and_two_scalars() -> None:
    """The weight is lambda_k over the rows of all clients."""
    order = begin(first_round=16).order()
    np.testing.assert_array_equal(order.x, [1.0, 2.0])
    np.testing.assert_array_equal(order.h, [1.0, 2.0])
    assert (order.round, order.gamma, order.weight) == (16, STEPS.gamma(16), STEPS.lam(16) / 8)


def test_order_is_the_same_until_its_round_is_closed() -> None:
    """So that a round can be sent again."""
    rounds = begin()
    first = rounds.order()
    assert rounds.order() is first
    rounds.close([reply(0.0, 0.0)])
    assert rounds.order().round == 2


def test_mean_is_uniform() -> None:
    """Each reply counts the same."""
    rounds = begin()
    rounds.close([reply(0.0, 3.0), reply(1.0, 0.0), reply(2.0, 0.0), reply(5.0, 1.0)])
    np.testing.assert_array_equal(rounds.x, [2.0, 1.0])


def test_replies_are_added_in_the_order_given() -> None:
    """(1 + 2^-53) + 2^-53 is 1, while 1 + (2^-53 + 2^-53) is not: order decides bits."""
    tiny = 2.0**-53
    forward, backward = begin(), begin()
    replies = [reply(1.0, 0.0), reply(tiny, 0.0), reply(tiny, 0.0)]
    forward.close(replies)
    backward.close(replies[::-1])
    assert forward.x[0] < backward.x[0]


def test_replies_are_left_as_they_are() -> None:
    """The sum is not made in the first reply's place."""
    replies = [reply(1.0, 1.0), reply(2.0, 2.0)]
    begin().close(replies)
    np.testing.assert_array_equal(replies[0].x, [1.0, 1.0])


def test_run_ends_after_its_rounds() -> None:
    """And not before."""
    rounds = begin(rounds=2)
    rounds.close([reply(0.0, 0.0)])
    assert rounds.stopped is None
    rounds.close([reply(0.0, 0.0)])
    assert rounds.stopped is Stop.ROUNDS


def test_replies_that_show_the_run_has_settled_are_discarded() -> None:
    """F(x_2) comes with round 2; if it settles round 1, x_2 is the answer."""
    rounds = begin(rounds=9, tolerance=0.5)
    record = rounds.close([reply(1.1, 2.1, inner=4.0)])
    assert record is not None
    assert rounds.close([reply(7.0, 7.0, inner=4.1)]) is None
    assert rounds.stopped is Stop.TOLERANCE
    np.testing.assert_array_equal(rounds.x, [1.1, 2.1])
    np.testing.assert_array_equal(rounds.state.average, [1.0, 2.0])


@pytest.mark.parametrize(
    ("after", "inner", "settled"),
    [((100.5, 0.0), 4.0, True), ((100.0, 0.0), 9.0, False), ((101.4, 0.0), 4.0, False), ((0.0, 100.0), 4.0, False)],
    ids=["none", "F alone", "H alone", "x alone"],
)
def test_large_change_of_any_of_the_three_goes_on(after: tuple[float, float], inner: float, settled: bool) -> None:  # noqa: FBT001
    """H = |x|^2 / 2 changes twice as much as x does along x, and not at all around it."""
    state = State.at(1, np.array([100.0, 0.0]))
    rounds = Rounds(SquaredNorm(), STEPS, m=8, state=state, last_round=9, tolerance=0.02)
    rounds.close([reply(*after, inner=4.0)])
    assert (rounds.close([reply(*after, inner=inner)]) is None) is settled


def test_restarted_round_keeps_all_but_the_rows() -> None:
    """The same x_k, h and gamma_k; lambda_k over the rows that are left."""
    rounds = begin()
    rounds.close([reply(0.5, 0.5)])
    before = rounds.order()
    rounds.restart(m=5)
    after = rounds.order()
    assert (after.round, after.x, after.h, after.gamma) == (2, before.x, before.h, before.gamma)
    assert after.weight == STEPS.lam(2) / 5


def test_restart_begins_the_means_anew_and_compares_no_values_across_it() -> None:
    """F is another function from there on."""
    rounds = begin(rounds=9, tolerance=0.5)
    rounds.close([reply(1.1, 2.1, inner=4.0)])
    rounds.restart(m=5)
    record = rounds.close([reply(3.0, 3.0, inner=4.1)])
    assert record is not None
    assert rounds.state.since == 2
    np.testing.assert_array_equal(rounds.state.average, [1.1, 2.1])
    np.testing.assert_array_equal(rounds.state.weighted, [1.1, 2.1])


def test_restart_after_the_last_round_keeps_the_means() -> None:
    """There is no round to begin again; F at the answer is not compared."""
    rounds = begin(rounds=1, tolerance=0.5)
    rounds.close([reply(1.0, 2.0, inner=4.0)])
    rounds.restart(m=5)
    rounds.conclude(4.0)
    assert rounds.stopped is Stop.ROUNDS
    np.testing.assert_array_equal(rounds.state.average, [1.0, 2.0])


def test_state_after_the_last_round_has_stopped() -> None:
    """A run that is resumed there has only its closing exchange left."""
    state = State.at(4, np.ones(2))
    assert Rounds(SquaredNorm(), STEPS, m=8, state=state, last_round=3).stopped is Stop.ROUNDS


def test_closing_value_settles_the_last_round() -> None:
    """F at the answer is the one thing that the last round's rule still needs."""
    rounds = begin(rounds=1, tolerance=0.5)
    rounds.close([reply(1.0, 2.0, inner=4.0)])
    assert rounds.conclude(4.0) == 2.5
    assert rounds.stopped is Stop.TOLERANCE


@pytest.mark.parametrize("bad", [reply(np.nan, 0.0), reply(0.0, 0.0, inner=np.inf)], ids=["x", "F"])
def test_numbers_that_are_not_finite_end_the_run(bad: Reply) -> None:
    """With the round's number."""
    with pytest.raises(NumericalError, match="round 1 overflowed"):
        begin().close([bad])


def test_order_carries_nothing_else_of_the_outer_objective() -> None:
    """The fields that reach a client are these, and no more."""
    assert Order.__slots__ == ("round", "x", "h", "gamma", "weight")
