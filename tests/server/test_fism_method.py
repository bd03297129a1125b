"""FISM as a method, without clients: sums are made up here."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fism
from fism_common.errors import NumericalError
from fism_common.exchange import Pass, Total
from fism_server.algorithm.methods.fism import Fism, start
from fism_server.algorithm.record import Record, Stop
from fism_server.algorithm.step_rules import RunState, StepRule
from fism_server.algorithm.stop_rules import RelativeChange, StopRule
from fism_server.problem.outer import SquaredNorm

STEPS = fism.PowerSteps(gamma=0.5, a=0.75, lam=2.0, b=0.125)


def begin(
    rounds: int = 3, tolerance: float | None = None, first_round: int = 1, x: tuple[float, float] = (1.0, 2.0)
) -> Fism:
    """Return a run in two dimensions."""
    state = start(np.array(x), first_round)
    stop = None if tolerance is None else RelativeChange(tolerance)
    return Fism(SquaredNorm(), STEPS, m=8, state=state, last_round=first_round + rounds - 1, stop=stop)


def total(*points: float, inner: float = 1.0, clients: int = 1) -> Total:
    """Return the sums of so many clients."""
    return Total(clients, inner, np.array(points))


def asked(method: Fism) -> Pass:
    """Return the question of this round."""
    question = method.ask()
    assert question is not None
    return question


def test_question_has_the_point_the_subgradient_and_two_scalars() -> None:
    """The weight is lambda_k over the rows of all clients."""
    method = begin(first_round=16)
    question = asked(method)
    np.testing.assert_array_equal(question.x, [1.0, 2.0])
    np.testing.assert_array_equal(question.h, [1.0, 2.0])
    assert (method.round, question.gamma, question.weight) == (16, STEPS.gamma(16), STEPS.lam(16) / 8)


def test_question_is_the_same_until_its_round_is_closed() -> None:
    """So that a round can be asked again."""
    method = begin()
    first = method.ask()
    assert method.ask() is first
    method.tell(total(0.0, 0.0))
    assert method.round == 2
    assert method.ask() is not first


def test_mean_is_uniform() -> None:
    """Each summand counts the same."""
    method = begin()
    method.tell(total(8.0, 4.0, clients=4))
    np.testing.assert_array_equal(method.x, [2.0, 1.0])


def test_held_out_rows_are_evaluated_every_so_many_rounds() -> None:
    """And never unless asked for."""
    state = start(np.zeros(2))
    method = Fism(SquaredNorm(), STEPS, m=8, state=state, last_round=6, evaluate_every=3)
    found = []
    while (question := method.ask()) is not None:
        found.append(question.evaluate)
        method.tell(total(0.0, 0.0))
    assert found == [False, False, True, False, False, True]
    assert not asked(begin()).evaluate


def test_run_ends_after_its_rounds() -> None:
    """And not before."""
    method = begin(rounds=2)
    method.tell(total(0.0, 0.0))
    assert method.ask() is not None
    method.tell(total(0.0, 0.0))
    assert (method.stopped, method.ask()) == (Stop.ROUNDS, None)


def test_sums_that_show_the_run_has_settled_are_discarded() -> None:
    """F(x_2) comes with round 2; if it settles round 1, x_2 is the answer."""
    method = begin(rounds=9, tolerance=0.5)
    assert method.tell(total(1.1, 2.1, inner=4.0)) is not None
    assert method.tell(total(7.0, 7.0, inner=4.1)) is None
    assert method.stopped is Stop.TOLERANCE
    assert method.round == 2
    np.testing.assert_array_equal(method.x, [1.1, 2.1])
    np.testing.assert_array_equal(method.means()["average"], [1.0, 2.0])


@pytest.mark.parametrize(
    ("after", "inner", "settled"),
    [((100.5, 0.0), 4.0, True), ((100.0, 0.0), 9.0, False), ((101.4, 0.0), 4.0, False), ((0.0, 100.0), 4.0, False)],
    ids=["none", "F alone", "H alone", "x alone"],
)
def test_large_change_of_any_of_the_three_continues(after: tuple[float, float], inner: float, settled: bool) -> None:  # noqa: FBT001
    """H = |x|^2 / 2 changes twice as much as x does along x, and not at all around it."""
    method = begin(rounds=9, tolerance=0.02, x=(100.0, 0.0))
    method.tell(total(*after, inner=4.0))
    assert (method.tell(total(*after, inner=inner)) is None) is settled


def test_restarted_round_keeps_all_but_the_rows() -> None:
    """The same x_k, h and gamma_k; lambda_k over the rows that are left."""
    method = begin()
    method.tell(total(0.5, 0.5))
    before = asked(method)
    method.restart(rows=5)
    after = asked(method)
    assert method.round == 2
    assert (after.x, after.h, after.gamma) == (before.x, before.h, before.gamma)
    assert after.weight == STEPS.lam(2) / 5


def test_restart_resets_the_means_and_compares_no_values_across_it() -> None:
    """F is another function from there on."""
    method = begin(rounds=9, tolerance=0.5)
    method.tell(total(1.1, 2.1, inner=4.0))
    method.restart(rows=5)
    assert method.tell(total(3.0, 3.0, inner=4.1)) is not None
    assert method.since == 2
    np.testing.assert_array_equal(method.means()["average"], [1.1, 2.1])
    np.testing.assert_array_equal(method.means()["weighted"], [1.1, 2.1])


def test_restart_after_the_last_round_keeps_the_means() -> None:
    """There is no round to start again; F at the answer is not compared."""
    method = begin(rounds=1, tolerance=0.5)
    method.tell(total(1.0, 2.0, inner=4.0))
    method.restart(rows=5)
    method.conclude(4.0)
    assert method.stopped is Stop.ROUNDS
    np.testing.assert_array_equal(method.means()["average"], [1.0, 2.0])


def test_state_after_the_last_round_has_stopped() -> None:
    """A run that is resumed there has only its solution left to send."""
    assert Fism(SquaredNorm(), STEPS, m=8, state=start(np.ones(2), 4), last_round=3).stopped is Stop.ROUNDS


def test_value_at_the_answer_settles_the_last_round() -> None:
    """F at the answer is the one thing that the last round's rule still needs."""
    method = begin(rounds=1, tolerance=0.5)
    method.tell(total(1.0, 2.0, inner=4.0))
    assert method.conclude(4.0) == 2.5
    assert method.stopped is Stop.TOLERANCE


@pytest.mark.parametrize("bad", [total(np.nan, 0.0), total(0.0, 0.0, inner=np.inf)], ids=["x", "F"])
def test_numbers_that_are_not_finite_end_the_run(bad: Total) -> None:
    """With the round's number."""
    with pytest.raises(NumericalError, match="round 1 overflowed"):
        begin().tell(bad)


def test_question_carries_nothing_else_of_the_outer_objective() -> None:
    """The fields that reach a client are these, and no more."""
    assert Pass.__slots__ == ("x", "h", "gamma", "weight", "evaluate", "summands")


def test_sums_are_all_that_a_method_sees() -> None:
    """No field of a total is per client."""
    assert Total.__slots__ == ("clients", "inner", "points", "subgradient", "held_out")


@pytest.mark.parametrize("rounds", [0, 1, 5])
def test_restored_state_continues_to_the_same_bits(rounds: int) -> None:
    """Saved after any round, as named numbers and vectors."""
    undisturbed, resumed = begin(rounds=9, tolerance=1e-9), begin(rounds=9, tolerance=1e-9)

    def tell(method: Fism) -> None:
        x = asked(method).x
        method.tell(total(*(0.7 * x + 0.1), inner=float(x.sum())))

    for _ in range(rounds):
        tell(resumed)
    state = resumed.state()
    copied = replace(state, vectors={name: vector.copy() for name, vector in state.vectors.items()})
    resumed = Fism(SquaredNorm(), STEPS, m=8, state=copied, last_round=9, stop=RelativeChange(1e-9))
    while undisturbed.ask() is not None:
        tell(undisturbed)
    while resumed.ask() is not None:
        tell(resumed)
    assert resumed.x.tobytes() == undisturbed.x.tobytes()
    for name, mean in undisturbed.means().items():
        assert mean.tobytes() == resumed.means()[name].tobytes()
    assert (resumed.progress.last, resumed.stopped) == (undisturbed.progress.last, undisturbed.stopped)


class Halving(StepRule):
    """Halves gamma whenever F went up: a rule with a state of its own."""

    def __init__(self) -> None:
        """Begin with 1."""
        self.gamma, self.least = 1.0, np.inf
        self.seen = 0

    def next(self, state: RunState) -> tuple[float, float]:
        """Return the current steps."""
        if state.last is not None and state.last.round > self.seen:
            self.seen = state.last.round
            self.gamma *= 0.5 if state.last.inner > self.least else 1.0
            self.least = min(self.least, state.last.inner)
        return self.gamma, 0.0

    def save(self) -> dict[str, float]:
        """Return what it remembers."""
        return {"gamma": self.gamma, "least": self.least, "seen": self.seen}

    def restore(self, numbers: dict[str, float]) -> None:
        """Take it back."""
        if numbers:
            self.gamma, self.least, self.seen = numbers["gamma"], numbers["least"], int(numbers["seen"])


class Twice(StopRule):
    """Stops when F has not changed twice in a row."""

    def __init__(self) -> None:
        """Begin with none."""
        self.count = 0

    def met(self, record: Record, inner: float, outer: float) -> bool:  # noqa: ARG002
        """Count."""
        self.count = self.count + 1 if record.inner == inner else 0
        return self.count == 2

    def save(self) -> dict[str, float]:
        """Return the count."""
        return {"count": self.count}

    def restore(self, numbers: dict[str, float]) -> None:
        """Take it back."""
        self.count = int(numbers.get("count", 0))


def test_rules_keep_their_state_across_a_resume() -> None:
    """It is saved with the method's, under their own names."""

    def run(*, interrupted_after: int | None) -> tuple[list[float], Stop | None]:
        method = Fism(SquaredNorm(), Halving(), m=1, state=start(np.ones(1)), last_round=20, stop=Twice())
        gammas, values = [], iter([3.0, 2.0, 5.0, 4.0, 1.0, 1.0, 1.0, 9.0])
        while (question := method.ask()) is not None:
            gammas.append(question.gamma)
            method.tell(Total(1, next(values), np.ones(1)))
            if len(gammas) == interrupted_after:
                method = Fism(SquaredNorm(), Halving(), m=1, state=method.state(), last_round=20, stop=Twice())
        return gammas, method.stopped

    undisturbed = run(interrupted_after=None)
    assert undisturbed == ([1.0, 1.0, 1.0, 0.5, 0.25, 0.25, 0.25], Stop.TOLERANCE)
    for k in range(1, 7):
        assert run(interrupted_after=k) == undisturbed
