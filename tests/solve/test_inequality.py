"""The sharp one-step inequality of FISM, which wrong weights, a wrong m and a missing H break.

For all y in X:
|x_{k+1} - y|^2 <= (1 - gamma lam mu / S) |x_k - y|^2 - (2 gamma / S) [(F + lam H)(x_k) - (F + lam H)(y)]
                   + gamma^2 (1/S) sum I_i^2 (C_f + lam C_H / m)^2
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import cvxpy as cp
import numpy as np
import pytest

import fism
from fism_client.compute.local_pass import LocalPass
from fism_common.exchange import Pass

from ..literal import Vector

SIZES = np.array([2, 6, 16, 36])
S, M = SIZES.size, int(SIZES.sum())
N, BOUND, GAMMA, LAM = 5, 3.0, 1e-7, 4.0
_RNG = np.random.default_rng(7)
ROWS = _RNG.normal(size=(M, N))
LABELS = ROWS @ np.ones(N) * np.repeat([1.5, 1.5, 1.5, -1.5], SIZES) + _RNG.normal(size=M)
ANCHOR = np.array([2.5, -2.0, 1.0, -1.5, 2.0])
OUTER = fism.SquaredDistance(ANCHOR)
BOX = fism.Box(-BOUND, BOUND)
SITES = [
    LocalPass(fism.Shard.of(rows, labels), fism.Absolute(), BOX)
    for rows, labels in zip(np.split(ROWS, np.cumsum(SIZES)[:-1]), np.split(LABELS, np.cumsum(SIZES)[:-1]), strict=True)
]


@dataclass(frozen=True)
class Rule:
    """One way to take a round, right or wrong."""

    weights: Vector
    m: float = M
    lam: float = LAM

    def step(self, x: Vector) -> Vector:
        """Return x_{k+1}."""
        order = Pass(x, OUTER.subgradient(x), GAMMA, self.lam / self.m)
        return sum((w * site.run(order)[0] for w, site in zip(self.weights, SITES, strict=True)), np.zeros(N))

    def rest(self) -> Vector:
        """Return the point where this rule would stand still: the minimiser of what it really minimises."""
        x = cp.Variable(N)
        row_weights = np.repeat(S * self.weights, SIZES)
        pull = self.lam * (S * self.weights) @ SIZES / self.m
        merit = row_weights @ cp.abs(ROWS @ x - LABELS) + pull / 2 * cp.sum_squares(x - ANCHOR)
        cp.Problem(cp.Minimize(merit), [cp.abs(x) <= BOUND]).solve(solver=cp.CLARABEL)
        return np.asarray(x.value)


RIGHT = Rule(np.full(S, 1 / S))
WRONG = {
    "weights by shard size": replace(RIGHT, weights=SIZES / M),
    "m / S in the place of m": replace(RIGHT, m=M / S),
    "no H": replace(RIGHT, lam=0.0),
}


def excess(rule: Rule, x: Vector, y: Vector) -> float:
    """Return by how much the rule's step from x breaks the inequality for y, in units of gamma."""

    def merit(at: Vector) -> float:
        return sum(site.value(at) for site in SITES) + LAM * OUTER.value(at)

    mu, C_f = OUTER.modulus, np.max(np.linalg.norm(ROWS, axis=1))
    C_H = np.linalg.norm(np.abs(ANCHOR) + BOUND)
    noise = GAMMA * np.mean(SIZES**2) * (C_f + LAM * C_H / M) ** 2
    # |x' - y|^2 - |x - y|^2 as a product: the difference of the two would lose the digits that matter.
    moved = rule.step(x) - x
    change = float(moved @ (moved + 2 * (x - y))) / GAMMA
    return float(change + LAM * mu / S * float(np.sum((x - y) ** 2)) + 2 / S * (merit(x) - merit(y)) - noise)


def points(center: Vector) -> list[Vector]:
    """Return points of X near ``center``."""
    return [BOX.project(center + step) for step in 1e-3 * np.random.default_rng(8).normal(size=(20, N))]


def test_step_keeps_the_inequality() -> None:
    """From anywhere, and for every y."""
    rng = np.random.default_rng(9)
    starts = [*rng.uniform(-BOUND, BOUND, (20, N))] + [x for rule in WRONG.values() for x in points(rule.rest())]
    targets = [RIGHT.rest(), *rng.uniform(-BOUND, BOUND, (5, N))]
    assert max(excess(RIGHT, x, y) for x in starts for y in targets) <= 1e-6  # rounding of F, relative to gamma


@pytest.mark.parametrize("mistake", WRONG)
def test_mistake_breaks_the_inequality(mistake: str) -> None:
    """Near the point where a wrong rule rests, the inequality asks for progress that it does not make."""
    wrong = WRONG[mistake]
    assert min(excess(wrong, x, RIGHT.rest()) for x in points(wrong.rest())) > 1e-2
