"""At a kink the subgradient is fixed: all numbers here are exact in binary, so that ties are ties."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

import fism
from fism_common.problem.losses import Loss

STEPS = fism.PowerSteps(gamma=0.25, a=0.75, lam=1.0, b=0.125)
# (loss, row, label, x): x is at the kink, and H's anchor is x too, so that nothing but the loss could move it.
TIES: dict[str, tuple[Loss, list[float], float, list[float]]] = {
    "hinge at margin 1": (fism.Hinge(), [2.0, 0.5], 1.0, [0.25, 1.0]),
    "hinge at margin 1, label -1": (fism.Hinge(), [2.0, 0.5], -1.0, [-0.25, -1.0]),
    "squared hinge at margin 1": (fism.SquaredHinge(), [2.0, 0.5], 1.0, [0.25, 1.0]),
    "absolute at the label": (fism.Absolute(), [1.5, -0.5], 0.5, [0.5, 0.5]),
    "quantile at the label": (fism.Quantile(0.25), [1.5, -0.5], 0.5, [0.5, 0.5]),
    "huber at the label": (fism.Huber(0.5), [1.5, -0.5], 0.5, [0.5, 0.5]),
    "on the ball's boundary": (fism.BallDistance(), [1.0, 2.0], 5.0, [4.0, 6.0]),
    "in the ball's centre": (fism.BallDistance(), [1.0, 2.0], 0.0, [1.0, 2.0]),
}


@pytest.mark.parametrize("rows", [np.array, csr_array], ids=["dense", "CSR"])
@pytest.mark.parametrize("constraint", [fism.Box(-8, 8), fism.Ball(16.0)], ids=["box", "ball"])
@pytest.mark.parametrize("tie", TIES)
def test_zero_is_taken_at_the_kink(tie: str, constraint: Any, rows: Any) -> None:  # noqa: ANN401
    """A client at a kink does not move."""
    loss, row, label, x = TIES[tie]
    problem = fism.Problem(loss, constraint, fism.SquaredDistance(x))
    result = fism.solve(problem, [(rows([row]), [label])], steps=STEPS, rounds=3, start=x)
    assert result.x.tolist() == x


@pytest.mark.parametrize(
    ("loss", "label", "moves"),
    [
        (fism.Hinge(), 1.0, -1.0),
        (fism.Absolute(), 0.0, 1.0),
        (fism.Quantile(0.25), 0.0, 0.75),
        (fism.Huber(0.5), 0.0, 0.5),
        (fism.BallDistance(), 0.5, 1.0),
    ],
    ids=lambda value: value.kind if isinstance(value, Loss) else "",
)
def test_just_off_the_kink_the_slope_is_that_of_its_side(loss: Loss, label: float, moves: float) -> None:
    """One step beside the kink has the length gamma times the slope there."""
    x = 0.75
    problem = fism.Problem(loss, fism.Box(-8, 8), fism.SquaredDistance([x]))
    row = 0.0 if isinstance(loss, fism.BallDistance) else 1.0
    result = fism.solve(problem, [([[row]], [label])], steps=STEPS, rounds=1, start=[x])
    assert result.x[0] == x - 0.25 * moves


def test_sign_of_zero_is_zero_in_the_one_norm() -> None:
    """An entry that is exactly 0 is not pulled by l1."""
    problem = fism.Problem("absolute", fism.Box(-8, 8), fism.ElasticNet(l1=8.0, l2=1.0))
    result = fism.solve(problem, [([[0.0, 1.0]], [0.0])], steps=STEPS, rounds=3)
    assert result.x.tolist() == [0.0, 0.0]
