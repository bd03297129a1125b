"""Steps, and what the theory says of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fism


def test_steps_are_powers() -> None:
    """gamma_k = gamma / k^a, lambda_k = lam / k^b."""
    steps = fism.PowerSteps(gamma=10, a=0.8, lam=2, b=0.1)
    assert (steps.gamma(1), steps.lam(1)) == (10.0, 2.0)
    assert steps.gamma(32) == pytest.approx(10 / 32**0.8, rel=1e-15)
    assert steps.lam(32) == pytest.approx(2 / 32**0.1, rel=1e-15)


@pytest.mark.parametrize(
    ("a", "b", "failed"),
    [
        (0.8, 0.1, []),
        (0.5, 0.1, ["a = 0.5 must be above 1/2"]),
        (0.8, 0.0, ["b = 0 must be above 0"]),
        (0.8, 0.2, ["a + b = 1 must be below 1"]),
        (0.51, 0.52, ["b = 0.52 must be below a = 0.51", "a + b = 1.03 must be below 1"]),
    ],
)
def test_conditions_of_convergence_are_named(a: float, b: float, failed: list[str]) -> None:
    """Each that fails, with its numbers."""
    report = fism.PowerSteps(1.0, a, 1.0, b).check(m=10, mu=1.0)
    assert list(report.failed) == failed
    assert report.converges == (not failed)


def test_first_step_is_bounded_by_the_rows() -> None:
    """Gamma lam mu <= 2m, the bound itself allowed."""
    steps = fism.PowerSteps(10.0, 0.7, 2.0, 0.2)
    assert steps.check(m=10, mu=1.0).converges
    assert steps.check(m=9, mu=1.0).failed == ("gamma * lam * mu = 20 must not exceed 2m = 18",)


@given(st.floats(1e-6, 0.4999))
def test_steps_of_the_rate_theorem_have_its_rate(epsilon: float) -> None:
    """They converge, and F at the ergodic mean falls as K^-(1/2 - epsilon)."""
    report = fism.PowerSteps.for_rate(epsilon, gamma=1.0, lam=1.0).check(m=10, mu=1.0)
    assert report.converges
    assert report.rate == pytest.approx(0.5 - epsilon)


def test_no_rate_is_claimed_for_other_steps() -> None:
    """Nor where the first step is too long."""
    assert fism.PowerSteps(1.0, 0.8, 1.0, 0.1).check(m=10, mu=1.0).rate is None
    assert fism.PowerSteps.for_rate(0.1, gamma=50.0, lam=1.0).check(m=10, mu=1.0).rate is None
