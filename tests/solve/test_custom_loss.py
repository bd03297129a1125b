"""A loss of one's own."""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
import pytest
from scipy.sparse import csr_array

import fism
from fism_client.compute.local_pass import LocalPass

from .cases import data

STEPS = fism.PowerSteps(gamma=0.4, a=0.7, lam=0.8, b=0.2)


def half_square(z: float, b: float) -> float:
    """Return the squared loss."""
    return 0.5 * (z - b) ** 2


def residual(z: float, b: float) -> float:
    """Return its slope."""
    return z - b


def solve(loss: Any, make: Any = np.array, method: str = "fism") -> fism.Result:  # noqa: ANN401
    """Return the result of a few rounds."""
    shards = [(make(rows), labels) for rows, labels in data(4, "squared", clients=3).shards]
    return fism.solve(
        fism.Problem(loss, fism.Box(-1, 1), fism.SquaredNorm()), shards, steps=STEPS, rounds=4, method=method
    )


@pytest.mark.parametrize("make", [np.array, csr_array], ids=["dense", "CSR"])
@pytest.mark.parametrize("method", ["fism", "ir-ig", "r-fedavg"])
@pytest.mark.parametrize("wrap", [lambda f: f, numba.njit], ids=["plain", "njit"])
def test_own_loss_is_the_built_in_one_with_the_same_formula(make: Any, method: str, wrap: Any) -> None:  # noqa: ANN401
    """Plain or compiled functions, in every method and storage."""
    own = fism.CustomLoss("my-squares", wrap(half_square), wrap(residual), smooth=True)
    ours, theirs = solve("squared", make, method), solve(own, make, method)
    np.testing.assert_allclose(theirs.x, ours.x, rtol=1e-12)
    np.testing.assert_allclose(theirs.history["inner"], ours.history["inner"], rtol=1e-12)


def test_own_loss_that_does_not_compile_is_refused() -> None:
    """With numba's reason, and what is expected."""
    bad = fism.CustomLoss("bad", lambda z, b: float(str(z)) + b, residual)
    with pytest.raises(fism.ProblemError, match=r"value of loss 'bad' does not compile.*two floats"):
        solve(bad)


def test_docstring_example_runs() -> None:
    """The example in the documentation of CustomLoss."""
    pseudo_huber = fism.CustomLoss(
        "pseudo-huber",
        value=lambda z, b: math.sqrt(1 + (z - b) ** 2) - 1,
        slope=lambda z, b: (z - b) / math.sqrt(1 + (z - b) ** 2),
        smooth=True,
    )
    assert solve(pseudo_huber).inner > 0


def test_division_by_zero_in_an_own_loss_ends_the_run() -> None:
    """It gives an infinity, which is not finite: no result is made of it."""
    loss = fism.CustomLoss("inverse", lambda z, b: 1 / z + b, residual)
    with pytest.raises(fism.NumericalError, match="is custom, check that it is finite"):
        solve(loss)


def test_own_loss_is_compiled_once_for_all_clients() -> None:
    """And not once for each."""
    loss = fism.CustomLoss("counted", half_square, residual)
    box, shard = fism.Box(-1, 1), fism.Shard.of([[1.0]], [1.0])
    first, second = (LocalPass(shard, loss, box).formula for _ in range(2))
    assert first.value is second.value
    assert first.slope is second.slope
