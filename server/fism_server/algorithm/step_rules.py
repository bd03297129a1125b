"""Step rules: gamma_k and lambda_k of every round, and which of them the theory covers."""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol

from fism_common.errors import StepError, StepWarning
from fism_common.problem.registry import Family
from fism_common.vectors import number, positive

if TYPE_CHECKING:
    from fism_server.algorithm.record import Record

__all__ = ["PowerSteps", "StepReport", "StepRule"]


class RunState(Protocol):
    """What a step rule sees of a run."""

    @property
    def round(self) -> int:
        """The round k that is about to begin."""

    @property
    def last(self) -> Record | None:
        """The record of round k - 1; None in the first round, and after the federation has changed."""


@dataclass(frozen=True)
class StepReport:
    """What the theory says about a step rule."""

    failed: tuple[str, ...]
    """The conditions of convergence that do not hold, in words; empty if x_k converges to the solution."""
    rate: float | None
    """The proven r in F(ergodic mean) - F* = O(K^-r); None if no rate is proven."""

    @property
    def converges(self) -> bool:
        """Whether every condition of convergence holds."""
        return not self.failed


class StepRule(ABC):
    """Chooses gamma_k > 0 and lambda_k >= 0. A rule that keeps numbers between rounds saves and restores them."""

    @abstractmethod
    def next(self, state: RunState) -> tuple[float, float]:
        """Return (gamma_k, lambda_k) for round k = ``state.round``; the same values when asked again."""

    def check(self, m: int, mu: float) -> StepReport | None:  # noqa: ARG002  # for rules that know
        """Return what the theory says, for ``m`` rows in all and an H of modulus ``mu``; None if it says nothing."""
        return None

    def save(self) -> dict[str, float]:
        """Return the numbers to keep."""
        return {}

    def restore(self, numbers: dict[str, float]) -> None:  # noqa: B027  # for rules that keep something
        """Take back what ``save`` returned."""


@dataclass(frozen=True, init=False)
class PowerSteps(StepRule):
    """gamma_k = gamma / k^a and lambda_k = lam / k^b."""

    kind: ClassVar[str] = "power"
    gamma_1: float
    a: float
    lam_1: float
    b: float

    def __init__(self, gamma: float, a: float, lam: float, b: float) -> None:
        """Refuse steps that are not above 0; ``check`` reports whether a theorem covers the exponents."""
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
        """Return code that makes the same steps."""
        return f"PowerSteps(gamma={self.gamma_1}, a={self.a}, lam={self.lam_1}, b={self.b})"

    def next(self, state: RunState) -> tuple[float, float]:
        return self.gamma(state.round), self.lam(state.round)

    def gamma(self, k: int) -> float:
        """Return gamma_k."""
        return self.gamma_1 / math.pow(k, self.a)

    def lam(self, k: int) -> float:
        """Return lambda_k."""
        return self.lam_1 / math.pow(k, self.b)

    def check(self, m: int, mu: float) -> StepReport:
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


STEP_RULES = Family("step rule", (PowerSteps,), {"lambda": "lam"})
"""The built-in step rules, by kind."""


@dataclass(frozen=True)
class ConstantWeight(StepRule):
    """The steps of another rule, with lambda_k the same in every round."""

    steps: StepRule
    weight: float

    def next(self, state: RunState) -> tuple[float, float]:
        return self.steps.next(state)[0], self.weight


def warn_if_not_covered(steps: StepRule, m: int, mu: float, *, strict: bool) -> None:
    """Warn which conditions of the theorem fail; with ``strict``, raise StepError instead."""
    name, report = type(steps).__name__, steps.check(m, mu)
    if report is None:
        text = f"{name} has no check(m, mu), so nothing is known about its convergence"
    elif report.failed:
        text = f"{name} is not covered by the convergence theorem: {'; '.join(report.failed)}"
    else:
        return
    if strict:
        raise StepError(text)
    warnings.warn(text, StepWarning, stacklevel=3)


def checked_step(steps: StepRule, state: RunState) -> tuple[float, float]:
    """Return (gamma_k, lambda_k); raise StepError if a rule returns unusable values."""
    k = state.round
    try:
        gamma, lam = steps.next(state)
        gamma, lam = positive(gamma, f"gamma_{k}", StepError), number(lam, f"lambda_{k}", StepError)
    except ArithmeticError as cause:
        raise StepError(f"the steps of round {k} cannot be computed: {cause}") from cause
    except TypeError as cause:
        raise StepError(f"{type(steps).__name__}.next must return (gamma, lambda): {cause}") from cause
    if lam < 0:
        raise StepError(f"lambda_{k} must not be negative, but is {lam:g}")
    return gamma, lam
