"""How answers become sums, and who takes part."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import fism
from fism_common.data.moments import ColumnMoments, merge
from fism_common.exchange import Answer, Evaluation, MomentsAnswer, PassAnswer, ProbeAnswer, SolutionAnswer
from fism_common.sums.grid import grid_of
from fism_server.federation.aggregation import OpenAggregation
from fism_server.federation.participation import AllClients


@dataclass(frozen=True, eq=False)
class Client:
    """Somebody who answers."""

    rows: int = 3
    virtual_clients: int = 1


A, B, C = Client(), Client(virtual_clients=2), Client()
OPEN = OpenAggregation(fism.Box(-1, 1), 2, np.array([True, False]))


GRID = grid_of(OPEN.constraint, 2, 4)


def test_order_of_arrival_does_not_change_a_bit() -> None:
    """In doubles, (1 + 2^-53) + 2^-53 is 1, while 1 + (2^-53 + 2^-53) is not."""
    tiny = 2.0**-53
    answers: dict[Client, Answer] = {
        A: PassAnswer(GRID.words(np.array([1.0, 0.0])), (1.0,)),
        B: PassAnswer(GRID.words(np.array([tiny, 0.0])), (tiny,)),
        C: PassAnswer(GRID.words(np.array([tiny, 0.0])), (tiny,)),
    }
    for order in ([A, B, C], [C, B, A], [B, C, A]):
        sums = OPEN.begin([A, B, C])
        for client in order:
            sums.add(answers[client], client)
        total = sums.total()
        assert total.points is not None
        assert (total.points[0], total.inner, total.clients) == (1.0 + 2 * tiny, 1.0 + 2 * tiny, 4)


def test_answers_stay_unchanged() -> None:
    """The sum does not overwrite the first answer."""
    first = PassAnswer(np.ones(2, np.int64), (1.0,))
    sums = OPEN.begin([A, B])
    sums.add(first, A)
    sums.add(PassAnswer(np.ones(2, np.int64), (1.0,)), B)
    sums.total()
    np.testing.assert_array_equal(first.points, [1, 1])


def test_probes_sum_values_and_subgradients() -> None:
    """And nothing else is in the total."""
    sums = OPEN.begin([A, C])
    sums.add(ProbeAnswer((2.0,), np.array([1.0, 2.0]), Evaluation(3, 2, 0.5)), A)
    sums.add(ProbeAnswer((3.0,), np.array([3.0, 4.0])), C)
    total = sums.total()
    assert total.subgradient is not None
    np.testing.assert_array_equal(total.subgradient, [4.0, 6.0])
    assert (total.inner, total.points, total.held_out) == (5.0, None, Evaluation(3, 2, 0.5))


def test_values_at_the_solution_are_summed() -> None:
    """With the evaluations of those who hold out rows."""
    sums = OPEN.begin([A, C])
    sums.add(SolutionAnswer((2.0,), Evaluation(3, 2, 0.5)), A)
    sums.add(SolutionAnswer((3.0,), Evaluation(1, 1, 0.5)), C)
    assert (sums.total().inner, sums.total().held_out) == (5.0, Evaluation(4, 3, 1.0))


def test_moments_are_merged() -> None:
    """Of all clients' rows."""
    parts = [ColumnMoments(*np.full((4, 2), value)) for value in (1.0, 2.0)]
    sums = OPEN.begin([A, C])
    for part, client in zip(parts, (A, C), strict=True):
        sums.add(MomentsAnswer(part), client)
    np.testing.assert_array_equal(sums.moments().mean, merge(parts).mean)


@pytest.mark.parametrize(
    ("answer", "client", "reason"),
    [
        (PassAnswer(GRID.words(np.array([1.5, 0.0])), (1.0,)), A, "outside X"),
        (PassAnswer(GRID.words(np.array([1.5, 0.0])), (1.0,)), B, None),
        (MomentsAnswer(ColumnMoments(*np.ones((4, 2)))), A, "not standardised"),
        (SolutionAnswer((np.nan,)), A, "F_i is nan"),
    ],
)
def test_each_answer_is_checked_by_its_own_rule(answer: Answer, client: Client, reason: str | None) -> None:
    """A sum over two virtual clients may be as large as two points."""
    fault = OPEN.begin([A, B, C]).fault(answer, client)
    assert fault is None if reason is None else reason in str(fault)


def test_all_clients_take_part_and_nobody_may_be_missing() -> None:
    """The only participation so far."""
    everybody = AllClients()
    assert everybody.choose([A, B, C]) == [A, B, C]
    assert not everybody.is_complete({A})
    assert everybody.is_complete(set())
