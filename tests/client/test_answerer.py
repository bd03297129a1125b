"""A client's answers from its shard."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

import fism
from fism_client.compute.answerer import Compute, Unscaled
from fism_client.data.preparation import Rows
from fism_common.data.columns import Recipe
from fism_common.errors import ContractError
from fism_common.exchange import (
    Answer,
    Evaluation,
    Moments,
    MomentsAnswer,
    Pass,
    PassAnswer,
    Probe,
    ProbeAnswer,
    Question,
    Solution,
    SolutionAnswer,
)
from fism_common.problem.losses import LOSSES, Loss
from fism_common.sums.doubles import rounded

from ..literal import SUBGRADIENTS, VALUES, Vector

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(11, 4)) * (RNG.random((11, 4)) < 0.6)
LABELS = np.where(RNG.random(11) < 0.5, -1.0, 1.0)
X = RNG.normal(size=4)
PASS = Pass(X, X, 0.3, 0.1)
BOX = fism.Box(-3, 3)


@pytest.fixture(params=[np.array, csr_array], ids=["dense", "CSR"])
def shard(request: pytest.FixtureRequest) -> fism.Shard:
    """Return the same rows, dense or sparse."""
    return fism.Shard.of(request.param(ROWS), LABELS)


def table(shard: fism.Shard) -> Vector:
    """Return the rows of a shard, by their products with the unit vectors."""
    return np.stack([shard.scores(unit) for unit in np.eye(shard.columns)], axis=1)


def compute(
    shard: fism.Shard, loss: Loss | None = None, held_out: fism.Shard | None = None, virtual_clients: int = 1
) -> Compute:
    """Return what answers from a shard."""
    return Compute(Rows(Recipe(), shard, held_out), loss or fism.Logistic(), BOX, virtual_clients)


def passed(answer: Answer) -> PassAnswer:
    """Return an answer to a pass."""
    assert isinstance(answer, PassAnswer)
    return answer


def test_virtual_clients_are_separate_clients(shard: fism.Shard) -> None:
    """To the bit, because the sums of their points and of their F_i are exact."""
    asked = replace(PASS, summands=3)
    together = passed(compute(shard, virtual_clients=3).answer(asked))
    apart = [passed(compute(part).answer(asked)) for part in shard.split(3)]
    np.testing.assert_array_equal(together.points, sum(one.points for one in apart))
    assert rounded(together.inner) == rounded(value for one in apart for value in one.inner)


def test_pass_that_overflows_is_an_error_and_no_answer(shard: fism.Shard) -> None:
    """A custom slope that is not a number has no place on the grid."""
    loss = fism.CustomLoss("broken", lambda z, b: z - b, lambda z, b: (z - b) * np.nan, smooth=True)
    with pytest.raises(fism.NumericalError, match="a pass overflowed and ended outside X"):
        compute(shard, loss).answer(PASS)


def labels_for(loss: Loss) -> Vector:
    """Return labels that fit the loss."""
    return np.abs(X[0] + LABELS) if not loss.linear else LABELS


@pytest.mark.parametrize("virtual_clients", [1, 3])
@pytest.mark.parametrize("form", [np.array, csr_array], ids=["dense", "CSR"])
@pytest.mark.parametrize("kind", list(LOSSES))
def test_probe_returns_the_value_and_a_subgradient(kind: str, form: Any, virtual_clients: int) -> None:  # noqa: ANN401
    """For every loss and storage, as the literal transcription has them, summed over the rows."""
    loss = LOSSES.make(kind, {"huber": {"delta": 0.7}, "quantile": {"tau": 0.3}}.get(kind, {}))
    labels = labels_for(loss)
    shard = fism.Shard.of(form(ROWS), labels)
    found = compute(shard, loss, virtual_clients=virtual_clients).answer(Probe(X))
    assert isinstance(found, ProbeAnswer)
    expected = sum((SUBGRADIENTS[kind](a, b, X) for a, b in zip(ROWS, labels, strict=True)), np.zeros(4))
    np.testing.assert_allclose(found.subgradient, expected, rtol=1e-12, atol=1e-12)
    value = sum(VALUES[kind](a, b, X) for a, b in zip(ROWS, labels, strict=True))
    assert rounded(found.inner) == pytest.approx(value, rel=1e-12)
    solved = compute(shard, loss, virtual_clients=virtual_clients).answer(Solution(X))
    assert isinstance(solved, SolutionAnswer)
    assert rounded(solved.inner) == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("scale", [1.0, 0.25])
def test_probe_of_scaled_bytes_is_that_of_the_numbers(scale: float) -> None:
    """Rows may be kept as bytes and a scale."""
    rows = np.arange(12).reshape(3, 4)
    for loss in (fism.Absolute(), fism.BallDistance()):
        kept = compute(fism.Shard.of(rows.astype(np.uint8), np.ones(3), scale=scale), loss).answer(Probe(X))
        wide = compute(fism.Shard.of(rows * scale, np.ones(3)), loss).answer(Probe(X))
        assert isinstance(kept, ProbeAnswer)
        assert isinstance(wide, ProbeAnswer)
        np.testing.assert_allclose(kept.subgradient, wide.subgradient, rtol=1e-12)


def test_subgradient_is_zero_at_kinks() -> None:
    """The documented choice: on the kink of a row, that row has no slope."""
    shard = fism.Shard.of(np.eye(4), X)
    found = compute(shard, fism.Absolute()).answer(Probe(X))
    assert isinstance(found, ProbeAnswer)
    np.testing.assert_array_equal(found.subgradient, np.zeros(4))
    assert found.inner == (0.0,)


@pytest.mark.parametrize("question", [PASS, Probe(X)])
def test_same_question_gets_the_same_bits(question: Question, shard: fism.Shard) -> None:
    """A client holds no state of the algorithm."""
    answerer = compute(shard, virtual_clients=3)
    first, second = answerer.answer(question), answerer.answer(question)
    assert isinstance(first, (PassAnswer, ProbeAnswer))
    assert first.inner == getattr(second, "inner", None)


def test_only_moments_are_known_before_the_scaling(shard: fism.Shard) -> None:
    """And they are not asked for after it."""
    early = Unscaled(Rows(Recipe(), shard))
    assert isinstance(early.answer(Moments()), MomentsAnswer)
    with pytest.raises(ContractError, match="asked for a Pass before it sent the whole problem"):
        early.answer(PASS)
    with pytest.raises(ContractError, match="moments after it sent the scaling"):
        compute(shard).answer(Moments())


def test_split_keeps_rows_in_order_and_sizes_even(shard: fism.Shard) -> None:
    """As numpy.array_split does."""
    parts = shard.split(4)
    assert [part.count for part in parts] == [3, 3, 3, 2]
    np.testing.assert_array_equal(np.concatenate([table(part) for part in parts]), ROWS)
    np.testing.assert_array_equal(np.concatenate([part.labels for part in parts]), LABELS)


@pytest.mark.parametrize("parts", [0, 12])
def test_split_needs_a_row_per_part(parts: int, shard: fism.Shard) -> None:
    """Else a virtual client would be empty."""
    with pytest.raises(fism.DataError, match=f"11 rows cannot be split into {parts} shards"):
        shard.split(parts)


def test_rows_held_out_are_a_part_of_all_and_the_same_for_the_same_seed(shard: fism.Shard) -> None:
    """Both parts keep their order; together they are all rows."""
    train, held = shard.hold_out(0.3, seed=4)
    again, _ = shard.hold_out(0.3, seed=4)
    other, _ = shard.hold_out(0.3, seed=5)
    assert held is not None
    assert (train.count, held.count) == (8, 3)
    np.testing.assert_array_equal(table(train), table(again))
    assert not np.array_equal(table(train), table(other))
    both = np.concatenate([table(train), table(held)])
    assert sorted(map(tuple, both)) == sorted(map(tuple, ROWS))


def test_holding_out_nothing_or_everything(shard: fism.Shard) -> None:
    """The first is nothing held out, the second is refused."""
    assert shard.hold_out(0.0, seed=0)[1] is None
    with pytest.raises(fism.DataError, match="leaves none to train on"):
        shard.hold_out(0.99, seed=0)


def evaluation(answerer: Compute) -> Evaluation | None:
    """Return the evaluation that comes with the solution."""
    found = answerer.answer(Solution(X))
    assert isinstance(found, SolutionAnswer)
    return found.held_out


@pytest.mark.parametrize("virtual_clients", [1, 2])
def test_held_out_rows_are_evaluated_when_asked_for(virtual_clients: int, shard: fism.Shard) -> None:
    """With a pass, a probe, and always with the solution."""
    answerer = compute(shard, held_out=shard, virtual_clients=virtual_clients)
    expected = evaluation(answerer)
    assert expected is not None
    for asked, plain in ((Pass(X, X, 0.3, 0.1, evaluate=True), PASS), (Probe(X, evaluate=True), Probe(X))):
        assert getattr(answerer.answer(asked), "held_out", None) == expected
        assert getattr(answerer.answer(plain), "held_out", None) is None


def test_evaluation_counts_what_is_right(shard: fism.Shard) -> None:
    """Where label and score have the same sign; a score of 0 is on no side."""
    held = evaluation(compute(shard, fism.Logistic(), shard))
    assert held is not None
    assert held.rows == 11
    assert held.right == int(np.sum(LABELS * (ROWS @ X) > 0))
    assert held.loss == pytest.approx(float(np.sum(np.logaddexp(0, -LABELS * (ROWS @ X)))))


def test_loss_without_classes_has_no_right_side(shard: fism.Shard) -> None:
    """It tells the sum of its losses only."""
    held = evaluation(compute(shard, fism.Absolute(), shard))
    assert held is not None
    assert held.right is None
    assert held.loss == pytest.approx(float(np.sum(np.abs(ROWS @ X - LABELS))))


def test_digest_tells_shards_apart_and_runs_too() -> None:
    """Equal shards have equal digests in one run, and others in another."""
    digests: dict[str, Any] = {
        "same": fism.Shard.of(ROWS, LABELS).digest("run"),
        "again": fism.Shard.of(ROWS.copy(), LABELS.copy()).digest("run"),
        "other run": fism.Shard.of(ROWS, LABELS).digest("run 2"),
        "other labels": fism.Shard.of(ROWS, -LABELS).digest("run"),
        "other rows": fism.Shard.of(ROWS + 1e-9, LABELS).digest("run"),
    }
    assert digests["same"] == digests["again"]
    assert len(set(digests.values())) == 4
