"""Steps that no theorem covers warn by name, and still run."""

from __future__ import annotations

import pytest

import fism
from fism_server.algorithm.step_rules import RunState

PROBLEM = fism.Problem("absolute", fism.Box(-1, 1), fism.SquaredNorm())
CLIENTS = [([[1.0], [0.5]], [0.25, 0.5])]


class Own(fism.StepRule):
    """A custom rule."""

    def next(self, state: RunState) -> tuple[float, float]:
        """Return the steps."""
        return 0.5 / state.round, 1.0 if state.round < 3 else -1.0


def test_covered_steps_do_not_warn() -> None:
    """Warnings are errors here, so that a warning would fail this."""
    fism.solve(PROBLEM, CLIENTS, steps=fism.PowerSteps(0.5, 0.7, 1.0, 0.2), rounds=2, strict=True)


def test_uncovered_steps_warn_by_the_condition_that_fails_and_run() -> None:
    """The warning says which condition, with its numbers."""
    with pytest.warns(fism.StepWarning, match=r"PowerSteps is not covered.*a = 0.4 must be above 1/2"):
        result = fism.solve(PROBLEM, CLIENTS, steps=fism.PowerSteps(0.5, 0.4, 1.0, 0.2), rounds=2)
    assert result.rounds == 2


def test_uncovered_steps_are_refused_if_strict() -> None:
    """The same words, as an error."""
    with pytest.raises(fism.StepError, match=r"a = 0\.4 must be above 1/2"):
        fism.solve(PROBLEM, CLIENTS, steps=fism.PowerSteps(0.5, 0.4, 1.0, 0.2), rounds=2, strict=True)


def test_own_schedule_runs_and_warns_by_its_name() -> None:
    """Nothing is known of it."""
    with pytest.warns(fism.StepWarning, match=r"Own has no check\(m, mu\)"):
        result = fism.solve(PROBLEM, CLIENTS, steps=Own(), rounds=2)
    assert result.history["gamma"].tolist() == [0.5, 0.25]


@pytest.mark.filterwarnings("ignore::fism.StepWarning")
def test_own_schedule_is_held_to_its_signs_in_every_round() -> None:
    """A negative weight is refused in the round that it comes up."""
    with pytest.raises(fism.StepError, match=r"lambda_3 must not be negative, but is -1"):
        fism.solve(PROBLEM, CLIENTS, steps=Own(), rounds=5)


@pytest.mark.parametrize("method", ["tikhonov", "incremental"])
def test_methods_with_a_fixed_weight_have_no_schedule_to_cover(method: str) -> None:
    """They are asked for by name, as they are."""
    fism.solve(PROBLEM, CLIENTS, steps=fism.PowerSteps(0.5, 0.4, 1.0, 0.2), rounds=2, method=method, strict=True)
