"""How rows are stored changes the speed, not the result."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_array, csc_matrix, csr_array, csr_matrix

import fism
from fism_client.compute.local_pass import LocalPass
from fism_common.exchange import Pass
from fism_common.problem.sets import ConstraintSet

from .. import literal
from .cases import LOSSES, data

STEPS = fism.PowerSteps(gamma=0.5, a=0.7, lam=2.0, b=0.2)


def solve(rows: Any, labels: Any, constraint: ConstraintSet, **options: Any) -> fism.Result:  # noqa: ANN401
    """Return the result of a few rounds on one client."""
    problem = fism.Problem("logistic", constraint, fism.ElasticNet(0.1, 1.0))
    return fism.solve(problem, [fism.Shard.of(rows, labels, **options)], steps=STEPS, rounds=5)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int64", "float16", "float32"])
def test_type_of_the_rows_does_not_change_the_result(dtype: str) -> None:
    """The same numbers in another type give the same answer."""
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 2, (30, 7)).astype(dtype)
    labels = np.where(rng.random(30) < 0.5, -1, 1)
    expected = solve(rows.astype(np.float64) + 0.0, labels, fism.Box(-3, 3))
    np.testing.assert_allclose(solve(rows, labels, fism.Box(-3, 3)).x, expected.x, rtol=1e-13)


@pytest.mark.parametrize("constraint", [fism.Box(-3, 3), fism.Ball(1.0), fism.L1Ball(1.0)], ids=["box", "ball", "l1"])
@pytest.mark.parametrize("make", [np.array, csr_array], ids=["dense", "CSR"])
def test_scale_multiplies_every_entry(make: Any, constraint: ConstraintSet) -> None:  # noqa: ANN401
    """Bytes with a scale are the floats that they stand for."""
    rng = np.random.default_rng(1)
    pixels = rng.integers(0, 256, (30, 7)).astype(np.uint8) * (rng.random((30, 7)) < 0.4)
    labels = np.where(rng.random(30) < 0.5, -1, 1)
    narrow = solve(make(pixels), labels, constraint, scale=1 / 255)
    wide = solve(make(pixels / 255), labels, constraint)
    np.testing.assert_allclose(narrow.x, wide.x, rtol=1e-12, atol=1e-14)
    assert narrow.inner == pytest.approx(wide.inner, rel=1e-13)


@pytest.mark.parametrize("make", [csr_matrix, csc_matrix, coo_array], ids=lambda make: make.__name__)
def test_any_sparse_format_is_taken(make: Any) -> None:  # noqa: ANN401
    """Matrices and arrays, by rows, by columns and by coordinates are the same rows."""
    given_data = data(3, "logistic", 1, largest=20)
    rows, labels = given_data.shards[0]
    expected = solve(csr_array(rows), labels, fism.Box(-3, 3))
    assert solve(make(rows), labels, fism.Box(-3, 3)).x.tobytes() == expected.x.tobytes()


def test_entries_given_twice_are_added() -> None:
    """A sparse matrix with duplicates means their sum, and is left as it was."""
    twice = csr_array((np.array([1.0, 2.0, 4.0]), np.array([1, 1, 0]), np.array([0, 2, 3])), shape=(2, 2))
    result = solve(twice, [1, -1], fism.Box(-3, 3))
    assert result.x.tobytes() == solve(csr_array([[0.0, 3.0], [4.0, 0.0]]), [1, -1], fism.Box(-3, 3)).x.tobytes()
    assert twice.nnz == 3


WIDE = 300


@pytest.mark.parametrize("gamma", [0.01, 1.0, 300.0])
@pytest.mark.parametrize(
    "constraint",
    [
        fism.Box(-0.5, 0.4),
        fism.Box(np.linspace(-1, 0, WIDE), np.linspace(0, 1, WIDE)),
        fism.Ball(0.7),
        fism.Ball(2.0, np.linspace(-1, 1, WIDE)),
    ],
    ids=["box", "box of vectors", "ball", "ball with center"],
)
@pytest.mark.parametrize("loss", ["logistic", "hinge", "squared", "absolute", "quantile", "huber"])
def test_lazy_pass_is_the_dense_pass(loss: str, constraint: ConstraintSet, gamma: float) -> None:
    """On wide sparse rows, with steps from tiny to absurd, both end at the same point."""
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(200, WIDE)) * (rng.random((200, WIDE)) < 0.03)
    labels = np.where(rng.random(200) < 0.5, -1.0, 1.0)
    x, h = rng.normal(size=(2, WIDE))
    order = Pass(constraint.project(x), h, gamma, 0.01)
    (lazy, lazy_inner), (dense, dense_inner) = (
        LocalPass(fism.Shard.of(table, labels), LOSSES[loss], constraint).run(order)
        for table in (csr_array(rows), rows)
    )
    np.testing.assert_allclose(lazy, dense, rtol=1e-9, atol=1e-11 * (1 + np.max(np.abs(dense))))
    assert lazy_inner == pytest.approx(dense_inner, rel=1e-12)


def test_ball_pass_folds_before_it_loses_digits() -> None:
    """A pull of the rows against an equal drift cancels to nothing, however long it goes on."""
    n, m, gamma = 40, 500, 100.0
    rows, h = np.zeros((m, n)), np.zeros(n)
    rows[:, 0], h[0] = 1.0, -1.0
    # Each row pushes entry 0 down by gamma (absolute loss, z above the label), and the drift brings it back.
    order = Pass(np.full(n, n**-0.5), h, gamma, 1.0)
    dense, lazy = (
        LocalPass(fism.Shard.of(table, np.full(m, -1e9)), fism.Absolute(), fism.Ball(1.0)).run(order)[0]
        for table in (rows, csr_array(rows))
    )
    np.testing.assert_allclose(lazy, dense, atol=1e-12)


@given(st.integers(0, 2**32 - 1), st.sampled_from([20, 400, 900]), st.sampled_from(["float64", "float32", "uint8"]))
def test_long_rows_give_what_short_ones_do(seed: int, n: int, dtype: str) -> None:
    """Losses are taken with the steps on short rows and ahead of them on long ones: F and x are the literal ones."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, 200, (70, n)).astype(dtype)
    if dtype != "uint8":
        rows /= 256
    labels = np.where(rng.random(70) < 0.5, -1.0, 1.0)
    x = 0.01 * rng.normal(size=n)
    shard = fism.Shard.of(rows, labels, scale=0.05)
    found, inner = LocalPass(shard, fism.Logistic(), fism.Box(-0.05, 0.05)).run(Pass(x, x, 0.3, 0.1))
    table = [(0.05 * rows.astype(np.float64), labels)]
    expected = literal.fism(
        table,
        literal.SUBGRADIENTS["logistic"],
        lambda v: np.clip(v, -0.05, 0.05),
        lambda v: v,
        x,
        lambda _: 0.3,
        lambda _: 7.0,
        1,
    )
    np.testing.assert_allclose(found, expected[-1], rtol=1e-10, atol=1e-13)
    assert inner == pytest.approx(literal.inner(table, literal.VALUES["logistic"], x), rel=1e-12)


@pytest.mark.parametrize("seed", range(40))
def test_ball_pass_keeps_its_digits_where_rows_and_drift_cancel(seed: int) -> None:
    """Rows that pull against the drift, with steps of the size of the ball."""
    rng = np.random.default_rng(seed)
    n, m = 12, 60
    u = rng.normal(size=n)
    rows = np.outer(np.ones(m), u) * (rng.random((m, n)) < 0.8)
    h = -u * rng.uniform(0.5, 1.5)
    order = Pass(fism.Ball(1.0).project(rng.normal(size=n)), h, rng.uniform(0.05, 0.5), 1.0)
    dense, lazy = (
        LocalPass(fism.Shard.of(table, np.full(m, -1e9)), fism.Absolute(), fism.Ball(1.0)).run(order)[0]
        for table in (rows, csr_array(rows))
    )
    np.testing.assert_allclose(lazy, dense, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("make", [np.array, csr_array], ids=["dense", "CSR"])
@pytest.mark.parametrize("constraint", [fism.Box(-9.0, 9.0), fism.Ball(9.0)], ids=["box", "ball"])
@pytest.mark.parametrize("distance", [1e-3, 1e-9, 1e-12])
def test_step_beside_a_centre_keeps_its_direction(distance: float, constraint: ConstraintSet, make: Any) -> None:  # noqa: ANN401
    """The step x - gamma (x - c) / |x - c| is as exact as x - c is, however near the centre."""
    center = np.array([0.7, -1.3, 0.4])
    x = center + distance * np.array([0.6, 0.0, 0.8])
    shard = fism.Shard.of(make([center]), [0.0])
    found, _ = LocalPass(shard, fism.BallDistance(), constraint).run(Pass(x, np.zeros(3), 0.1, 0.0))
    expected = x - 0.1 * (x - center) / np.linalg.norm(x - center)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-15)


@pytest.mark.parametrize("make", [np.array, csr_array], ids=["dense", "CSR"])
@pytest.mark.parametrize("method", ["ir-ig", "explicit-descent", "r-fedavg"])
def test_scale_counts_in_every_method(method: str, make: Any) -> None:  # noqa: ANN401
    """Rows times a scale are the same rows for the methods that FISM is compared with."""
    rng = np.random.default_rng(2)
    rows, labels = rng.normal(size=(20, 4)), rng.normal(size=20)
    problem = fism.Problem("squared", fism.Box(-0.2, 0.3), fism.SquaredNorm())
    scaled, plain = (
        fism.solve(problem, [shard], steps=STEPS, rounds=4, method=method)
        for shard in (fism.Shard.of(make(rows), labels, scale=0.25), fism.Shard.of(make(0.25 * rows), labels))
    )
    np.testing.assert_allclose(scaled.x, plain.x, rtol=1e-12)
    np.testing.assert_allclose(scaled.history["inner"], plain.history["inner"], rtol=1e-12)


def test_irig_over_many_sparse_rows_is_irig_over_dense_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sparse rows are taken a block at a time; here there are several blocks."""
    monkeypatch.setattr("fism.methods._BLOCK_ENTRIES", 30)
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(25, 6)) * (rng.random((25, 6)) < 0.4)
    labels = rng.normal(size=25)
    problem = fism.Problem("absolute", fism.Box(-2, 2), fism.ElasticNet(0.1, 1.0))
    sparse, dense = (
        fism.solve(problem, [(table, labels)], steps=STEPS, rounds=3, method="ir-ig")
        for table in (csr_array(rows), rows)
    )
    assert sparse.x.tobytes() == dense.x.tobytes()


def test_nan_is_not_lost_on_its_way_through_a_pass() -> None:
    """An infinity times 0 in the update is a NaN where the pass ends, on every set; it is an error, not an answer."""
    for constraint in (fism.Box(-1, 1), fism.Box([-1, -1], [1, 1]), fism.Ball(1.0), fism.Simplex(), fism.L1Ball(1.0)):
        shard = fism.Shard.of([[1e200, 0.0]], [1e300])
        site, question = LocalPass(shard, fism.Squared(), constraint), Pass(np.full(2, 0.5), np.zeros(2), 1e300, 0.0)
        assert np.isnan(site.run(question)[0]).any(), constraint
        with pytest.raises(fism.NumericalError, match="ended outside X"):
            site.answer(question)
