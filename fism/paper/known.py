"""Problems with many minimisers of F, where a closed form gives the one that H prefers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fism.problem import Problem
from fism_client.data.shard import Shard
from fism_common.problem.sets import Box
from fism_server.algorithm.step_rules import PowerSteps
from fism_server.problem.outer import SquaredDistance, SquaredNorm

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fism_common.vectors import Vector


@dataclass(frozen=True, eq=False)
class Known:
    """A problem with many minimisers of F, and the one that H prefers, known in closed form."""

    name: str
    problem: Problem
    shards: list[Shard]
    solution: Vector
    steps: PowerSteps
    start: Vector

    @property
    def m(self) -> int:
        """How many rows all clients have."""
        return sum(shard.count for shard in self.shards)


def dealt(rows: Vector, labels: Vector, sizes: Sequence[int]) -> list[Shard]:
    """Return the rows split among clients, in order."""
    ends = np.cumsum(sizes)[:-1]
    return [Shard.of(*pair) for pair in zip(np.split(rows, ends), np.split(labels, ends), strict=True)]


def absolute_deviations() -> Known:
    """Consistent least absolute deviations: H selects the x with A x = b that is nearest to an anchor."""
    rng = np.random.default_rng(1)
    n, sizes, bound = 12, (1, 2, 4), 10.0
    A = rng.normal(size=(sum(sizes), n))
    b = A @ rng.uniform(-1, 1, n)
    anchor = rng.uniform(-1, 1, n)
    problem = Problem("absolute", Box(-bound, bound), SquaredDistance(anchor))
    solution = anchor + np.linalg.pinv(A) @ (b - A @ anchor)
    steps = PowerSteps(gamma=1.0, a=0.6, lam=1.0, b=0.2)
    return Known("absolute deviations", problem, dealt(A, b, sizes), solution, steps, rng.uniform(-bound, bound, n))


def two_balls() -> Known:
    """Two disjoint balls: F is least on the segment between them; H selects its point nearest to an anchor."""
    centers, radii = np.array([[-2.0, 0.0, 0.0], [2.0, 1.0, 0.0]]), np.array([0.5, 1.0])
    along = (centers[1] - centers[0]) / np.linalg.norm(centers[1] - centers[0])
    ends = [centers[0] + radii[0] * along, centers[1] - radii[1] * along]
    anchor, start = np.array([0.3, 2.0, 1.0]), np.random.default_rng(2).uniform(-5.0, 5.0, 3)
    share = float(np.clip((anchor - ends[0]) @ along, 0.0, np.linalg.norm(ends[1] - ends[0])))
    problem = Problem("ball-distance", Box(-5.0, 5.0), SquaredDistance(anchor))
    steps = PowerSteps(gamma=1.0, a=0.55, lam=1.0, b=0.4)
    return Known("two balls", problem, dealt(centers, radii, (1, 1)), ends[0] + share * along, steps, start)


def least_squares() -> Known:
    """Rank-deficient least squares: H selects the minimiser of least norm."""
    rng = np.random.default_rng(3)
    n, sizes, bound = 8, (3, 5, 12), 10.0
    A = rng.normal(size=(sum(sizes), 3)) @ rng.normal(size=(3, n)) / 3
    b = A @ rng.normal(size=n) + 0.3 * rng.normal(size=sum(sizes))
    problem = Problem("squared", Box(-bound, bound), SquaredNorm())
    steps = PowerSteps(gamma=0.3, a=0.55, lam=5.0, b=0.4)
    solution = np.linalg.pinv(A) @ b
    return Known("least squares", problem, dealt(A, b, sizes), solution, steps, rng.uniform(-bound, bound, n))
