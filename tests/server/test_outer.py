"""Outer objectives: values, subgradients, strong convexity."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import fism

Q = np.array([[3.0, 1.0, 0.0], [1.0, 2.0, 0.5], [0.0, 0.5, 4.0]])
OUTERS: dict[str, fism.OuterObjective] = {
    "squared norm": fism.SquaredNorm(),
    "squared distance": fism.SquaredDistance([1.0, -2.0, 0.5]),
    "elastic net": fism.ElasticNet(0.7, 1.3),
    "weighted elastic net": fism.ElasticNet([0.0, 1.0, 2.0], 0.5),
    "group lasso": fism.GroupLasso([[0, 2]], 2.0, 0.4),
    "quadratic": fism.Quadratic(Q, [1.0, 0.0, -1.0]),
}
VALUES = {
    "squared norm": lambda x: x @ x / 2,
    "squared distance": lambda x: (x - [1.0, -2.0, 0.5]) @ (x - [1.0, -2.0, 0.5]) / 2,
    "elastic net": lambda x: 0.7 * np.abs(x).sum() + 1.3 * x @ x / 2,
    "weighted elastic net": lambda x: abs(x[1]) + 2 * abs(x[2]) + 0.25 * x @ x,
    "group lasso": lambda x: 2 * np.hypot(x[0], x[2]) + 0.2 * x @ x,
    "quadratic": lambda x: x @ Q @ x / 2 + x[0] - x[2],
}
vectors = arrays(np.float64, 3, elements=st.floats(-10, 10, allow_subnormal=False))
names = st.sampled_from(sorted(OUTERS))


@given(names, vectors)
def test_value_is_the_formula(name: str, x: np.ndarray) -> None:
    """Each objective."""
    assert OUTERS[name].value(x) == pytest.approx(VALUES[name](x), rel=1e-12, abs=1e-12)


@given(names, vectors, vectors)
def test_subgradient_and_modulus_bound_the_objective_from_below(name: str, x: np.ndarray, y: np.ndarray) -> None:
    """H(y) >= H(x) + <h, y - x> + mu |y - x|^2 / 2, also at kinks."""
    outer = OUTERS[name]
    bound = outer.value(x) + outer.subgradient(x) @ (y - x) + outer.modulus / 2 * np.sum((y - x) ** 2)
    assert outer.value(y) >= bound - 1e-9 * (1 + abs(bound))


def test_modulus_of_a_quadratic_is_its_lowest_eigenvalue() -> None:
    """Not more, not less."""
    assert OUTERS["quadratic"].modulus == pytest.approx(np.linalg.eigvalsh(Q)[0], rel=1e-12)


@pytest.mark.parametrize("name", OUTERS)
def test_kinks_take_zero(name: str) -> None:
    """At 0 the norms contribute nothing."""
    at_zero = OUTERS[name].subgradient(np.zeros(3))
    smooth_part = {"squared distance": [-1.0, 2.0, -0.5], "quadratic": [1.0, 0.0, -1.0]}.get(name, [0.0, 0.0, 0.0])
    np.testing.assert_array_equal(at_zero, smooth_part)


def test_smoothness_is_told() -> None:
    """A norm without weight is smooth."""
    smooth = {name for name, outer in OUTERS.items() if outer.smooth}
    assert smooth == {"squared norm", "squared distance", "quadratic"}
    assert fism.ElasticNet(0.0, 1.0).smooth
    assert fism.GroupLasso([[0]], 0.0, 1.0).smooth
