"""The steps gamma_k and lambda_k, and which of them the theory covers."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from fism_common.errors import StepError, StepWarning
from fism_common.vectors import number, positive


@runtime_checkable
class Schedule(Protocol):
    """Anything with a step gamma_k > 0 and a weight lambda_k >= 0 for every round k = 1, 2, ..."""

    def gamma(self, k: int, /) -> float:
        """Return the step of round k."""

    def lam(self, k: int, /) -> float:
        """Return the weight of H in round k."""


@dataclass(frozen=True)
class StepReport:
    """What the theory says of a schedule."""

    failed: tuple[str, ...]
    """The conditions of convergence that do not hold, in words; empty if x_k converges to the solution."""
    rate: float | None
    """The proven r in F(ergodic mean) - F* = O(K^-r); None if no rate is proven."""

    @property
    def converges(self) -> bool:
        """Whether every condition of convergence holds."""
        return not self.failed


@runtime_checkable
class Checked(Protocol):
    """A schedule that can tell whether the theory covers it."""

    def check(self, m: int, mu: float) -> StepReport:
        """Return the report for ``m`` rows in all and an H of modulus ``mu``."""


@dataclass(frozen=True, init=False)
class PowerSteps:
    """gamma_k = gamma / k^a and lambda_k = lam / k^b."""

    gamma_1: float
    a: float
    lam_1: float
    b: float

    def __init__(self, gamma: float, a: float, lam: float, b: float) -> None:
        """Refuse steps that are not above 0; exponents that no theorem covers are the business of ``check``."""
        object.__setattr__(self, "gamma_1", positive(gamma, "the step gamma", StepError))
        object.__setattr__(self, "a", number(a, "the exponent a", StepError))
        object.__setattr__(self, "lam_1", positive(lam, "the weight lam", StepError))
        object.__setattr__(self, "b", number(b, "the exponent b", StepError))

    @classmethod
    def for_rate(cls, epsilon: float, gamma: float, lam: float) -> PowerSteps:
        """Return the steps of the rate theorem: F at the ergodic mean falls as K^-(1/2 - epsilon)."""
        epsilon = positive(epsilon, "epsilon", StepError)
        if epsilon >= 0.5:  # noqa: PLR2004  # the theorem's own bound
            raise StepError(f"epsilon must be below 1/2, not {epsilon:g}: the proven rate is K^-(1/2 - epsilon)")
        return cls(gamma, 0.5 + 0.5 * epsilon, lam, 0.5 - epsilon)

    def __repr__(self) -> str:
        """Return what makes the same steps."""
        return f"PowerSteps(gamma={self.gamma_1}, a={self.a}, lam={self.lam_1}, b={self.b})"

    def gamma(self, k: int) -> float:
        """Return gamma_k."""
        return self.gamma_1 / math.pow(k, self.a)

    def lam(self, k: int) -> float:
        """Return lambda_k."""
        return self.lam_1 / math.pow(k, self.b)

    def check(self, m: int, mu: float) -> StepReport:
        """Return which conditions of convergence fail, and which rate is proven.

        ``m`` is the number of rows of all clients together, ``mu`` the modulus of strong convexity of H.
        """
        a, b, product = self.a, self.b, self.gamma_1 * self.lam_1 * mu
        small = (product <= 2 * m, f"gamma * lam * mu = {product:g} must not exceed 2m = {2 * m}")
        conditions = (
            (a > 0.5, f"a = {a:g} must be above 1/2"),  # noqa: PLR2004
            (b > 0, f"b = {b:g} must be above 0"),
            (b < a, f"b = {b:g} must be below a = {a:g}"),
            (a + b < 1, f"a + b = {a + b:g} must be below 1"),
            small,
        )
        epsilon = 0.5 - b
        proven = small[0] and 0 < epsilon < 0.5 and abs(a - 0.5 - 0.5 * epsilon) < 1e-12  # noqa: PLR2004
        return StepReport(tuple(text for holds, text in conditions if not holds), b if proven else None)


@dataclass(frozen=True)
class ConstantWeight:
    """The steps of another schedule, with lambda_k the same in every round."""

    steps: Schedule
    weight: float

    def gamma(self, k: int) -> float:
        """Return the other schedule's gamma_k."""
        return self.steps.gamma(k)

    def lam(self, k: int) -> float:  # noqa: ARG002
        """Return the constant."""
        return self.weight


def warn_if_not_covered(steps: Schedule, m: int, mu: float, *, strict: bool) -> None:
    """Warn by name of what no theorem covers; with ``strict``, raise StepError instead."""
    name = type(steps).__name__
    if isinstance(steps, Checked):
        failed = steps.check(m, mu).failed
        if not failed:
            return
        text = f"{name} is not covered by the convergence theorem: {'; '.join(failed)}"
    else:
        text = f"{name} has no check(m, mu), so that nothing is known of its convergence"
    if strict:
        raise StepError(text)
    warnings.warn(text, StepWarning, stacklevel=3)


def step(steps: Schedule, k: int) -> tuple[float, float]:
    """Return (gamma_k, lambda_k), or raise StepError where a schedule gives what no round can use."""
    try:
        gamma = positive(steps.gamma(k), f"gamma({k})", StepError)
        lam = number(steps.lam(k), f"lam({k})", StepError)
    except ArithmeticError as cause:
        raise StepError(f"the steps of round {k} cannot be computed: {cause}") from cause
    if lam < 0:
        raise StepError(f"lam({k}) must not be negative, but is {lam:g}")
    return gamma, lam
