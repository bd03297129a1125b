"""Constraint sets: projections are the nearest points."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import fism
from fism_client.compute.local_pass import LocalPass
from fism_client.kernels import Region, project
from fism_common.problem.sets import ConstraintSet

N = 5
SETS: dict[str, ConstraintSet] = {
    "box": fism.Box(-1.5, 2.0),
    "box of vectors": fism.Box(np.linspace(-3, 0, N), np.linspace(0, 3, N)),
    "one point": fism.Box(0.25, 0.25),
    "ball": fism.Ball(1.5),
    "ball with center": fism.Ball(0.5, np.linspace(-1, 1, N)),
    "simplex": fism.Simplex(1.0),
    "large simplex": fism.Simplex(7.5),
    "1-norm ball": fism.L1Ball(2.0),
}
numbers = st.floats(-1e6, 1e6, allow_subnormal=False)
vectors = arrays(np.float64, N, elements=numbers)
names = st.sampled_from(sorted(SETS))


def slack(constraint: ConstraintSet, *points: np.ndarray) -> float:
    """Return what rounding allows, relative to the sizes at hand."""
    return 1e-12 * (1 + constraint.diameter(N) + max(float(np.max(np.abs(point))) for point in points))


@given(names, vectors, vectors)
def test_projection_is_the_nearest_point(name: str, x: np.ndarray, y: np.ndarray) -> None:
    """P(x) is in X, and the angle at it between x and any other point of X is not acute."""
    constraint = SETS[name]
    nearest, other = constraint.project(x), constraint.project(y)
    assert constraint.contains(nearest, slack(constraint, x))
    assert (x - nearest) @ (other - nearest) <= slack(constraint, x) * (1 + np.linalg.norm(x - nearest)) * 10


@given(names, vectors)
def test_compiled_projection_is_the_same(name: str, x: np.ndarray) -> None:
    """The kernels' projection, by another algorithm, gives the same point."""
    constraint = SETS[name]
    compiled = x.copy()
    project(regions(name), compiled)
    np.testing.assert_allclose(compiled, constraint.project(x), rtol=1e-12, atol=slack(constraint, x))


def regions(name: str) -> Region:
    """Return a set as kernels take it."""
    return LocalPass(fism.Shard.of([[1.0] * N], [0.0]), fism.Squared(), SETS[name]).region


@given(names, vectors)
def test_points_of_the_set_stay(name: str, x: np.ndarray) -> None:
    """Projecting twice is projecting once."""
    constraint = SETS[name]
    once = constraint.project(x)
    np.testing.assert_allclose(constraint.project(once), once, rtol=1e-12, atol=1e-12)


@given(names, vectors, vectors)
def test_diameter_is_the_largest_distance(name: str, x: np.ndarray, y: np.ndarray) -> None:
    """No two points of X are further apart."""
    constraint = SETS[name]
    distance = np.linalg.norm(constraint.project(x) - constraint.project(y))
    assert distance <= constraint.diameter(N) + slack(constraint, x, y)


@pytest.mark.parametrize(
    ("constraint", "expected"),
    [(fism.Box(-1, 1), 4.0), (fism.Ball(3.0), 6.0), (fism.L1Ball(3.0), 6.0), (fism.Simplex(2.0), 2 * np.sqrt(2))],
    ids=["box", "ball", "1-norm ball", "simplex"],
)
def test_diameter_is_attained(constraint: ConstraintSet, expected: float) -> None:
    """In four dimensions."""
    assert constraint.diameter(4) == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize("name", SETS)
def test_membership_knows_in_from_out(name: str) -> None:
    """A point just outside is out, within the slack it is in, and NaN is nowhere."""
    constraint = SETS[name]
    edge = constraint.project(np.full(N, 1e3))
    outside = edge.copy()
    outside[-1] += 1e-6
    assert constraint.contains(edge, 1e-13)
    assert not constraint.contains(outside)
    assert constraint.contains(outside, 1e-5)
    assert not constraint.contains(np.full(N, np.nan), 1e9)


def compiled_projection(constraint: ConstraintSet, x: list[float]) -> np.ndarray:
    """Return the projection by the kernels."""
    point = np.array(x)
    project(LocalPass(fism.Shard.of([[1.0] * len(x)], [0.0]), fism.Squared(), constraint).region, point)
    return point


FAR: dict[str, tuple[ConstraintSet, list[float], list[float]]] = {
    "simplex": (fism.Simplex(1.0), [1e20, 0.0, -5.0], [1.0, 0.0, 0.0]),
    "simplex, both large": (fism.Simplex(1.0), [1e16, 1e16, 0.0], [0.5, 0.5, 0.0]),
    "1-norm ball": (fism.L1Ball(1.0), [-1e20, 0.0, 5.0], [-1.0, 0.0, 0.0]),
    "ball": (fism.Ball(1.0), [1e200, 0.0], [1.0, 0.0]),
    "huge ball": (fism.Ball(1e200), [1e201, 0.0], [1e200, 0.0]),
    "huge ball, from inside": (fism.Ball(1e200), [6e199, 6e199], [6e199, 6e199]),
    "tiny ball": (fism.Ball(1e-170), [3e-170, 4e-170], [6e-171, 8e-171]),
}


@pytest.mark.parametrize("case", FAR)
def test_sizes_that_overflow_or_swallow_others_are_projected_too(case: str) -> None:
    """By NumPy and by the kernels, though large entries swallow small totals, and squares overflow."""
    constraint, x, expected = FAR[case]
    np.testing.assert_allclose(constraint.project(np.array(x)), expected, rtol=1e-15, atol=0)
    np.testing.assert_allclose(compiled_projection(constraint, x), expected, rtol=1e-15, atol=0)


@pytest.mark.parametrize(
    ("constraint", "x"),
    [
        (fism.Box(0.0, 9.0), [-0.1, 1.0]),
        (fism.Box([0.0, 0.5], [9.0, 9.0]), [1.0, 0.4]),
        (fism.Simplex(1.0), [1.5, -0.5]),
        (fism.Simplex(1.0), [0.5, 0.4]),
    ],
    ids=["below a box", "below a box of vectors", "negative on a simplex", "short of a simplex"],
)
def test_points_outside_by_any_inequality_are_out(constraint: ConstraintSet, x: list[float]) -> None:
    """Each side of a set counts."""
    assert not constraint.contains(np.array(x))
