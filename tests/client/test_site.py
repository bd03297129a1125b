"""A client's work on its shard."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

import fism
from fism_client.compute.site import Site
from fism_common.exchange import Order

from ..literal import Vector

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(11, 4)) * (RNG.random((11, 4)) < 0.6)
LABELS = np.where(RNG.random(11) < 0.5, -1.0, 1.0)
X = RNG.normal(size=4)
ORDER = Order(1, X, X, 0.3, 0.1)


@pytest.fixture(params=[np.array, csr_array], ids=["dense", "CSR"])
def shard(request: pytest.FixtureRequest) -> fism.Shard:
    """Return the same rows, dense or sparse."""
    return fism.Shard.of(request.param(ROWS), LABELS)


def table(shard: fism.Shard) -> Vector:
    """Return the rows of a shard, by their products with the unit vectors."""
    return np.stack([shard.scores(unit) for unit in np.eye(shard.columns)], axis=1)


def test_virtual_clients_are_separate_clients(shard: fism.Shard) -> None:
    """Their replies are added in order, and so are their F_i."""
    together = Site(shard, None, fism.Logistic(), fism.Box(-3, 3), shards=3).answer(ORDER)
    apart = [Site(part, None, fism.Logistic(), fism.Box(-3, 3), shards=1).answer(ORDER) for part in shard.split(3)]
    assert together.shards == 3
    assert together.x.tobytes() == ((apart[0].x + apart[1].x) + apart[2].x).tobytes()
    assert together.inner == (apart[0].inner + apart[1].inner) + apart[2].inner


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


def test_evaluation_counts_what_is_right(shard: fism.Shard) -> None:
    """Where label and score have the same sign; a score of 0 is on no side."""
    held = Site(shard, shard, fism.Logistic(), fism.Box(-3, 3), shards=1).evaluate(X)
    assert held is not None
    assert held.rows == 11
    assert held.right == int(np.sum(LABELS * (ROWS @ X) > 0))
    assert held.loss == pytest.approx(float(np.sum(np.logaddexp(0, -LABELS * (ROWS @ X)))))


def test_loss_without_classes_has_no_right_side(shard: fism.Shard) -> None:
    """It tells the sum of its losses only."""
    held = Site(shard, shard, fism.Absolute(), fism.Box(-3, 3), shards=1).evaluate(X)
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
