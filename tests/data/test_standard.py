"""Standardising together is standardising what would have been pooled."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from fism_client.data.shard import Shard
from fism_client.data.standardise import check_form, moments_of, standardised
from fism_common.data.columns import Missing, Recipe, Standardise
from fism_common.data.moments import ColumnMoments, Scaling, merge, scaling
from fism_common.errors import DataError

from .files import dense

FULL = Recipe(standardise=Standardise.FULL)


def shards(rows: np.ndarray, sizes: list[int]) -> list[Shard]:
    """Deal out rows."""
    parts = np.split(rows, np.cumsum(sizes)[:-1])
    return [Shard.of(part, np.zeros(len(part)), missing=True) for part in parts]


def together(parts: list[Shard]) -> ColumnMoments:
    """Return the moments of all."""
    return merge([moments_of(part, np.ones(part.columns, bool)) for part in parts])


def exactly(column: np.ndarray) -> tuple[float, float]:
    """Return mean and spread in arithmetic that is precise enough."""
    wide = column[~np.isnan(column)].astype(np.longdouble)
    mean = wide.sum() / wide.size
    return float(mean), float(np.sqrt(((wide - mean) ** 2).sum() / wide.size))


@given(
    st.lists(st.integers(1, 30), min_size=1, max_size=6),
    st.sampled_from([0.0, 1.0, 1e9, -1e12]),
    st.sampled_from([1e-3, 1.0, 1e6]),
    st.integers(0, 2**32 - 1),
)
def test_merged_moments_are_those_of_the_pooled_rows(sizes: list[int], far: float, spread: float, seed: int) -> None:
    """Also far from 0 in terms of the spread, where sums of squares would cancel."""
    rng = np.random.default_rng(seed)
    rows = far + spread * rng.normal(size=(sum(sizes), 3))
    rows[:, 2] = np.where(rng.random(len(rows)) < 0.3, np.nan, rows[:, 2])
    found = scaling(together(shards(rows, sizes)))
    for j in range(3):
        column = rows[:, j]
        if np.isnan(column).all():
            continue
        mean, deviation = exactly(column)
        assert found.mean[j] == pytest.approx(mean, rel=1e-15, abs=1e-15 * spread)
        if deviation > 1e-9 * abs(far):
            assert found.spread[j] == pytest.approx(deviation, rel=1e-9)


@pytest.mark.parametrize("sizes", [[1000], [1, 999], [10, 300, 690], [125] * 8])
def test_times_are_standardised_as_if_pooled(sizes: list[int]) -> None:
    """Seconds since 1970 with a spread of one: entries equal those of the pooled rows to 1e-9."""
    rng = np.random.default_rng(3)
    rows = np.column_stack([1.7e9 + rng.normal(size=1000), rng.normal(size=1000), 1e9 + rng.integers(0, 2, 1000)])
    parts = shards(rows, sizes)
    found = scaling(together(parts))
    made = np.vstack([dense(standardised(part, FULL, found)) for part in parts])
    near = (rows - rows[0]).astype(np.longdouble)  # these differences are exact
    center = near - near.mean(axis=0)
    expected = (center / np.sqrt((center**2).mean(axis=0))).astype(float)
    np.testing.assert_allclose(made, expected, rtol=1e-9, atol=1e-12)


def test_sparse_columns_are_scaled_and_their_zeros_count() -> None:
    """As dense ones are, without being filled."""
    rng = np.random.default_rng(0)
    rows = np.where(rng.random((60, 5)) < 0.3, rng.normal(2, 1, (60, 5)), 0.0)
    recipe = Recipe(standardise=Standardise.SCALE)
    parts = [Shard.of(csr_array(part), np.zeros(20), scale=0.5) for part in np.split(rows, 3)]
    found = scaling(together(parts))
    np.testing.assert_allclose(found.spread, (0.5 * rows).std(axis=0), rtol=1e-12)
    np.testing.assert_allclose(found.mean + found.rest, (0.5 * rows).mean(axis=0), rtol=1e-12)
    made = np.vstack([dense(standardised(part, recipe, found)) for part in parts])
    np.testing.assert_allclose(made, rows / rows.std(axis=0), rtol=1e-12)
    with pytest.raises(DataError, match=r'is sparse.*data\.standardise = "scale"'):
        check_form(parts[0], FULL, "rows.svm")


def test_narrow_entries_are_standardised_in_full_precision() -> None:
    """Rows that are kept as bytes and as float32, with a scale that neither holds."""
    for rows in (np.array([[1.0], [2.0], [7.0]]), np.array([[0.5], [2.25], [-7.0]])):
        shard = Shard.of(rows, np.zeros(3), scale=0.3)
        assert shard.rows.dtype.itemsize < 8  # type: ignore[union-attr]
        found = scaling(together([shard]))
        wide = 0.3 * rows
        np.testing.assert_allclose(
            dense(standardised(shard, FULL, found)), (wide - wide.mean()) / wide.std(), rtol=1e-14
        )
        sparse = Shard.of(csr_array(rows), np.zeros(3), scale=0.3)
        made = standardised(sparse, Recipe(standardise=Standardise.SCALE), scaling(together([sparse])))
        np.testing.assert_allclose(dense(made), wide / wide.std(), rtol=1e-14)


def test_constant_column_is_centred_and_not_divided() -> None:
    """Rounding in its mean is no spread."""
    rows = np.full((7, 2), 0.1)
    rows[:, 1] = 1e9 + 0.1
    found = scaling(together(shards(rows, [3, 4])))
    np.testing.assert_array_equal(found.spread, [1.0, 1.0])
    made = dense(standardised(shards(rows, [7])[0], FULL, found))
    np.testing.assert_allclose(made, 0.0, atol=1e-6)


@pytest.mark.parametrize("standardise", list(Standardise))
def test_missing_numbers_become_the_federation_s_mean(standardise: Standardise) -> None:
    """Of the values that are there, with and without standardising."""
    rows = np.array([[1.0, np.nan], [3.0, 10.0], [np.nan, 30.0], [8.0, 20.0]])
    recipe = Recipe(missing=Missing.MEAN, standardise=standardise)
    parts = shards(rows, [1, 3])
    made = np.vstack([dense(standardised(part, recipe, scaling(together(parts)))) for part in parts])
    filled = np.where(np.isnan(rows), [4.0, 20.0], rows)
    spread = np.nanstd(rows, axis=0) if standardise else np.ones(2)
    center = np.array([4.0, 20.0]) if standardise is Standardise.FULL else np.zeros(2)
    np.testing.assert_allclose(made, (filled - center) / spread, rtol=1e-12, atol=1e-12)


def test_nothing_is_told_of_levels_and_of_the_intercept() -> None:
    """Their moments are 0, and they stay as they are."""
    rows = np.array([[5.0, 1, 0, 1], [7.0, 0, 1, 1]])
    moments = moments_of(Shard.of(rows, [0, 0]), np.array([True, False, False, False]))
    for part in (moments.count, moments.mean, moments.rest, moments.squares):
        assert not part[1:].any()
    found = scaling(merge([moments]))
    assert isinstance(found, Scaling)
    made = dense(standardised(Shard.of(rows, [0, 0]), FULL, found))
    np.testing.assert_allclose(made, [[-1, 1, 0, 1], [1, 0, 1, 1]])
