"""The solver is Algorithm 1."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

import fism

from .. import literal
from .cases import LOSSES, OUTERS, SETS, data

STEPS = fism.PowerSteps(gamma=0.4, a=0.7, lam=0.8, b=0.2)
ROUNDS = 6
CASES = list(enumerate(product(LOSSES, SETS, OUTERS)))


def pairs(shards: literal.Shards, storage: str) -> list[Any]:
    """Return the shards dense or as CSR."""
    return [(csr_array(rows) if storage == "CSR" else rows, labels) for rows, labels in shards]


@pytest.mark.parametrize("storage", ["dense", "CSR"])
@pytest.mark.parametrize(
    ("case", "names"), CASES, ids=lambda value: "-".join(value) if isinstance(value, tuple) else ""
)
@pytest.mark.filterwarnings("ignore::fism.StepWarning")
def test_solve_is_algorithm_1(case: int, names: tuple[str, str, str], storage: str) -> None:
    """Every loss, set and outer objective; S from 1 to 9, unequal shards, starts in and out of X."""
    loss, region, preference = names
    constraint, project = SETS[region]
    outer, subgradient = OUTERS[preference]
    given = data(case, loss, clients=1 + case % 9, spread=0.1 if case // len(OUTERS) % 2 else 5.0)

    result = fism.solve(
        fism.Problem(LOSSES[loss], constraint, outer),
        pairs(given.shards, storage),
        steps=STEPS,
        rounds=ROUNDS,
        start=given.start,
    )

    expected = literal.fism(
        given.shards,
        literal.SUBGRADIENTS[loss],
        project,
        subgradient,
        project(given.start),
        STEPS.gamma,
        STEPS.lam,
        ROUNDS,
    )
    np.testing.assert_allclose(result.x, expected[-1], rtol=1e-10, atol=1e-12)
    inner = [literal.inner(given.shards, literal.VALUES[loss], x) for x in expected]
    np.testing.assert_allclose([*result.history["inner"], result.inner], inner, rtol=1e-10)
    outer_values = [outer.value(x) for x in expected]
    np.testing.assert_allclose([*result.history["outer"], result.outer], outer_values, rtol=1e-10, atol=1e-12)
