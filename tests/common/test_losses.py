"""The losses, compiled against plain formulas."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fism
from fism_client.kernels import Formula, formula_of, value
from fism_client.kernels.losses import slope
from fism_common.errors import ProblemError
from fism_common.problem.losses import LOSSES, Loss

ALL = {loss.kind: loss for loss in (*(make() for make in LOSSES.values()), fism.Huber(0.7), fism.Quantile(0.3))}
PLAIN: dict[str, Callable[[float, float], float]] = {
    "logistic": lambda z, b: float(np.logaddexp(0, -b * z)),
    "hinge": lambda z, b: max(0.0, 1 - b * z),
    "squared-hinge": lambda z, b: max(0.0, 1 - b * z) ** 2,
    "squared": lambda z, b: (z - b) ** 2 / 2,
    "absolute": lambda z, b: abs(z - b),
    "huber": lambda z, b: (z - b) ** 2 / 2 if abs(z - b) <= 0.7 else 0.7 * abs(z - b) - 0.245,
    "quantile": lambda z, b: 0.3 * max(0.0, b - z) + 0.7 * max(0.0, z - b),
    "ball-distance": lambda z, b: max(0.0, z - b),
}
reals = st.floats(-50, 50)


def formula(loss: Loss) -> Formula:
    """Return a built-in loss as kernels take it."""
    return formula_of(loss)


def labels(name: str, b: float) -> float:
    """Return a label that fits the loss."""
    return math.copysign(1.0, b) if name in {"logistic", "hinge", "squared-hinge"} else b


@given(st.sampled_from(sorted(ALL)), reals, reals)
def test_compiled_value_is_the_formula(name: str, z: float, b: float) -> None:
    """Each loss."""
    b = labels(name, b)
    assert value(formula(ALL[name]), z, b) == pytest.approx(PLAIN[name](z, b), rel=1e-12, abs=1e-12)


@given(st.sampled_from(sorted(ALL)), reals, reals, reals)
def test_slope_is_a_subgradient(name: str, z: float, w: float, b: float) -> None:
    """The tangent at z lies below f everywhere."""
    b = labels(name, b)
    loss = formula(ALL[name])
    tangent = value(loss, z, b) + slope(loss, z, b) * (w - z)
    assert value(loss, w, b) >= tangent - 1e-9 * (1 + abs(tangent))


@given(st.sampled_from(sorted(name for name, loss in ALL.items() if loss.smooth)), reals, reals)
def test_slope_of_a_smooth_loss_is_its_derivative(name: str, z: float, b: float) -> None:
    """By central differences."""
    b = labels(name, b)
    loss = formula(ALL[name])
    difference = (value(loss, z + 1e-5, b) - value(loss, z - 1e-5, b)) / 2e-5
    assert slope(loss, z, b) == pytest.approx(difference, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("z", [-1e4, 1e4])
def test_logistic_does_not_overflow(z: float) -> None:
    """Margins far beyond the range of exp."""
    loss = formula(fism.Logistic())
    assert value(loss, z, 1.0) == max(-z, 0.0)
    assert slope(loss, z, 1.0) == (-1.0 if z < 0 else 0.0)


def test_losses_are_found_by_name_with_their_parameters() -> None:
    """Names as in a configuration."""
    assert LOSSES.make("huber", {"delta": 2.0}) == fism.Huber(2.0)
    assert LOSSES.make("quantile", {"tau": 0.9}) == fism.Quantile(0.9)
    with pytest.raises(ProblemError, match="'huber' has no parameter 'tau'"):
        LOSSES.make("huber", {"tau": 0.5})


@pytest.mark.parametrize("kind", list(LOSSES))
def test_every_loss_is_declared_completely(kind: str) -> None:
    """A class has all that configuration, kernels, reports and models need."""
    loss = LOSSES.make(kind, {})
    assert (loss.kind, loss.linear) == (kind, kind != "ball-distance")
    assert loss.description.endswith(("1", "2", "ones", "differently", "|", ")"))
    assert (loss.sklearn is None) == (not loss.linear)
    assert value(formula(loss), 0.5, 1.0) == pytest.approx(loss.phi(0.5, 1.0, loss.parameter))
    assert slope(formula(loss), 0.5, 1.0) == pytest.approx(loss.dphi(0.5, 1.0, loss.parameter))
