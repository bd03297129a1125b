"""Exact sums: points of X on a grid, and doubles of any size."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fism
from fism_common.problem.sets import ConstraintSet
from fism_common.sums.doubles import MOST_PARTS, parts_of, rounded
from fism_common.sums.grid import grid_of
from fism_common.vectors import Vector

N = 5
CENTER = np.array([1e-6, -300.0, 0.0, 7.0, 1e5])
SETS: dict[str, ConstraintSet] = {
    "box": fism.Box(-10, 10),
    "box of powers of two": fism.Box(-8, 8),
    "box of vectors": fism.Box(-np.array([1.0, 1e-5, 3e7, 0.0, 1e-300]), np.array([2.0, 1e-5, 1.0, 0.0, 1e-300])),
    "tiny box": fism.Box(-1e-310, 1e-310),
    "huge box": fism.Box(-1e300, 1e300),
    "ball": fism.Ball(3.0),
    "ball with a centre": fism.Ball(0.5, CENTER),
    "simplex": fism.Simplex(2.5),
    "1-norm ball": fism.L1Ball(1.2),
}


def corner(constraint: ConstraintSet) -> Vector:
    """Return the largest entries of X, exceeded by as much as is accepted."""
    lo, hi = constraint.bounds(N)
    return np.where(np.abs(lo) > np.abs(hi), lo, hi) * (1 + 1e-16) + constraint.slack(N)


@pytest.mark.parametrize("summands", [1, 2, 3, 8, 512, 1000])
@pytest.mark.parametrize("name", SETS)
def test_sum_of_the_largest_points_does_not_overflow(name: str, summands: int) -> None:
    """It stays below 2^62 units, so that one bit is to spare."""
    words = grid_of(SETS[name], N, summands).words(corner(SETS[name]))
    assert max(abs(int(word)) * summands for word in words) <= 2**62


@pytest.mark.parametrize("name", SETS)
def test_grid_is_finer_than_doubles_up_to_512_summands(name: str) -> None:
    """Rounding moves an entry by at most half the spacing of doubles of the largest entry's size."""
    lo, hi = SETS[name].bounds(N)
    grid, rng = grid_of(SETS[name], N, 512), np.random.default_rng(0)
    x = rng.uniform(lo, hi) if name != "huge box" else rng.uniform(-1, 1, N) * hi
    largest = np.maximum(np.abs(lo), np.abs(hi)) + SETS[name].slack(N)
    assert (np.abs(grid.values(grid.words(x)) - x) <= np.spacing(largest) / 2).all()


@pytest.mark.parametrize("name", ["box", "simplex", "1-norm ball"])
def test_zero_and_large_entries_are_on_the_grid(name: str) -> None:
    """For eight clients, every double from 1/64 of the range on; sparse models stay sparse."""
    grid = grid_of(SETS[name], N, 8)
    _, hi = SETS[name].bounds(N)
    x = hi * np.array([1.0, 1 / 64, 0.3, 0.0, 0.7])
    np.testing.assert_array_equal(grid.values(grid.words(x)), x)


@pytest.mark.parametrize("name", [name for name in SETS if name != "huge box"])
def test_mean_is_that_of_the_exact_sum(name: str) -> None:
    """Of the rounded points, by fractions; the sum is rounded once."""
    rng, grid = np.random.default_rng(1), grid_of(SETS[name], N, 7)
    lo, hi = SETS[name].bounds(N)
    points = [grid.words(rng.uniform(lo, hi)) for _ in range(7)]
    total = grid.values(np.sum(points, axis=0))
    for j in range(N):
        exact = sum(Fraction(float(grid.values(one)[j])) for one in points)
        assert total[j] == float(exact)


numbers = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e300, max_value=1e300)


@given(st.lists(st.lists(numbers, min_size=1, max_size=6), min_size=1, max_size=6))
def test_doubles_add_up_exactly_in_any_grouping(groups: list[list[float]]) -> None:
    """A tree of sums gives the bits of one sum, which is rounded once."""
    values = [value for group in groups for value in group]
    parts = [part for group in groups for part in parts_of(group)]
    exact = float(sum(map(Fraction, values)))
    assert rounded(values) == rounded(parts) == rounded(parts_of(parts)) == exact


def test_parts_are_few_whatever_the_exponents() -> None:
    """At most as many as the acceptance of an answer allows."""
    rng = np.random.default_rng(2)
    values = (rng.choice([-1, 1], 3000) * rng.uniform(1, 2, 3000) * 2.0 ** rng.integers(-1070, 990, 3000)).tolist()
    assert 20 < len(parts_of(values)) <= MOST_PARTS
    assert sum(map(Fraction, parts_of(values))) == sum(map(Fraction, values))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([math.inf, 1.0], math.inf),
        ([1.7e308, 1.7e308], math.inf),
        ([math.inf, -math.inf], math.nan),
        ([math.nan], math.nan),
    ],
)
def test_sum_that_is_not_finite_says_so(values: list[float], expected: float) -> None:
    """It is one part, and no error: the caller checks it."""
    np.testing.assert_equal(rounded(values), expected)
    np.testing.assert_equal(parts_of(values), (expected,))
