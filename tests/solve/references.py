"""Problems whose bilevel solution is known, each by a way of its own that shares nothing with the solver."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog, minimize

import fism

from ..literal import Shards, Vector


@dataclass(frozen=True)
class Reference:
    """A problem, its shards, the solution, and steps that get near it in a few thousand rounds."""

    problem: fism.Problem
    shards: Shards
    solution: Vector
    steps: fism.PowerSteps
    start: Vector


def split(rows: Vector, labels: Vector, sizes: tuple[int, ...]) -> Shards:
    """Return the rows dealt to clients in order."""
    ends = np.cumsum(sizes)[:-1]
    return list(zip(np.split(rows, ends), np.split(labels, ends), strict=True))


def multiplier(A: Vector, b: Vector, a: Vector, bound: float) -> Vector:
    """Return y with A clip(a + A'y) = b: the dual of projecting ``a`` on {Ax = b} within a box, by Newton."""
    y = np.zeros(b.size)
    for _ in range(200):
        free = a + A.T @ y
        residual = A @ np.clip(free, -bound, bound) - b
        if np.linalg.norm(residual) < 1e-13:
            return y
        active = A * (np.abs(free) < bound)
        y -= 0.5 * np.linalg.lstsq(active @ A.T, residual, rcond=None)[0]
    raise AssertionError("Newton did not converge")


def absolute_deviations(bound: float = 0.9) -> Reference:
    """Problem 1: consistent least absolute deviations, the solution nearest to an anchor, some bounds active."""
    rng = np.random.default_rng(1)
    n, sizes = 8, (1, 2, 3)
    A = rng.normal(size=(sum(sizes), n))
    b = A @ rng.uniform(-0.6, 0.6, n)
    anchor = rng.normal(size=n)
    solution = np.clip(anchor + A.T @ multiplier(A, b, anchor, bound), -bound, bound)
    assert (np.abs(solution) == bound).any()
    problem = fism.Problem("absolute", fism.Box(-bound, bound), fism.SquaredDistance(anchor))
    steps = fism.PowerSteps(gamma=1.0, a=0.6, lam=1.0, b=0.2)
    return Reference(problem, split(A, b, sizes), solution, steps, rng.uniform(-bound, bound, n))


def common_balls() -> Reference:
    """Problem 2: balls with a common interior point; the projection of the anchor on their intersection."""
    rng = np.random.default_rng(2)
    n, sizes = 4, (1, 2, 4)
    centers = rng.normal(size=(sum(sizes), n))
    radii = np.linalg.norm(centers - 0.1, axis=1) + rng.uniform(0.2, 0.5, sum(sizes))
    anchor = 3 * rng.normal(size=n)
    guess = minimize(  # type: ignore[call-overload]
        lambda x: np.sum((x - anchor) ** 2) / 2,
        np.full(n, 0.1),
        method="SLSQP",
        constraints={"type": "ineq", "fun": lambda x: radii**2 - np.sum((x - centers) ** 2, axis=1)},
        options={"ftol": 1e-14, "maxiter": 1000},
    ).x
    solution = polish(guess, anchor, centers, radii)
    problem = fism.Problem("ball-distance", fism.Ball(6.0), fism.SquaredDistance(anchor))
    steps = fism.PowerSteps(gamma=1.0, a=0.7, lam=0.5, b=0.2)
    return Reference(problem, split(centers, radii, sizes), solution, steps, rng.normal(size=n))


def polish(x: Vector, anchor: Vector, centers: Vector, radii: Vector) -> Vector:
    """Return the exact projection near ``x``: Newton on the active balls' conditions."""
    active = np.abs(np.linalg.norm(x - centers, axis=1) - radii) < 1e-6
    C, r = centers[active], radii[active]
    mu = np.linalg.lstsq((x - C).T, anchor - x, rcond=None)[0]
    for _ in range(20):
        top = x - anchor + (x - C).T @ mu
        low = (np.sum((x - C) ** 2, axis=1) - r**2) / 2
        jacobian = np.block([[(1 + mu.sum()) * np.eye(x.size), (x - C).T], [x - C, np.zeros((r.size, r.size))]])
        change = np.linalg.solve(jacobian, np.concatenate([top, low]))
        x, mu = x - change[: x.size], mu - change[x.size :]
    assert (mu >= 0).all()
    assert (np.linalg.norm(x - centers, axis=1) <= radii + 1e-12).all()
    return x


def disjoint_balls() -> Reference:
    """Problem 3: two disjoint balls; every point of the gap between them is as good, F* > 0."""
    rng = np.random.default_rng(3)
    c, d = np.array([-2.0, 0.0, 1.0]), np.array([2.0, 1.0, -1.0])
    radii = np.array([1.0, 0.5])
    toward = (d - c) / np.linalg.norm(d - c)
    near, far = c + radii[0] * toward, d - radii[1] * toward
    anchor = rng.normal(size=3)
    share = np.clip((anchor - near) @ (far - near) / np.sum((far - near) ** 2), 0, 1)
    problem = fism.Problem("ball-distance", fism.Box(-4, 4), fism.SquaredDistance(anchor))
    steps = fism.PowerSteps(gamma=2.0, a=0.55, lam=0.5, b=0.4)
    return Reference(
        problem, split(np.array([c, d]), radii, (1, 1)), near + share * (far - near), steps, rng.uniform(-4, 4, 3)
    )


def inconsistent_deviations() -> Reference:
    """Problem 4: least absolute deviations of low rank that no x fits, on shards of very unequal sizes."""
    rng = np.random.default_rng(6)
    n, rank, sizes = 6, 3, (2, 6, 16, 36)
    m = sum(sizes)
    B, C = rng.normal(size=(m, rank)), rng.normal(size=(rank, n))
    b = np.sum(B, axis=1) * np.repeat([1.5, 1.5, 1.5, -1.5], sizes) + 2 * rng.normal(size=m)  # the sites disagree
    # Minimise sum(t) with -t <= B u - b <= t: the solution fits as many rows exactly as u has entries.
    eye = np.eye(m)
    program = linprog(
        np.concatenate([np.zeros(rank), np.ones(m)]),
        A_ub=np.block([[B, -eye], [-B, -eye]]),
        b_ub=np.concatenate([b, -b]),
        bounds=[(None, None)] * rank + [(0, None)] * m,
    )
    fitted = np.argsort(np.abs(B @ np.asarray(program.x)[:rank] - b))[:rank]
    u = np.linalg.solve(B[fitted], b[fitted])
    anchor = rng.normal(size=n)
    solution = anchor + np.linalg.pinv(C) @ (u - C @ anchor)
    problem = fism.Problem("absolute", fism.Box(-4, 4), fism.SquaredDistance(anchor))
    steps = fism.PowerSteps(gamma=0.2, a=0.6, lam=4.0, b=0.2)
    return Reference(problem, split(B @ C, b, sizes), solution, steps, rng.uniform(-4, 4, n))


def logistic_twins(bound: float = 2.0) -> Reference:
    """Problem 5: logistic loss on a small box; the last column is dead, the one before a twin of the first."""
    rng = np.random.default_rng(5)
    sizes = (5, 10, 25)
    A = rng.normal(size=(sum(sizes), 4))
    b = np.where(A @ np.array([1.5, -1.0, 0.5, 4.0]) + rng.normal(size=sum(sizes)) > 0, 1.0, -1.0)
    # Twins together may go twice as far as one.
    limits = bound * np.array([2.0, 1.0, 1.0, 1.0])
    single = minimize(  # type: ignore[call-overload]
        lambda x: float(np.sum(np.logaddexp(0, -b * (A @ x)))),
        np.zeros(4),
        jac=lambda x: A.T @ (-b / (1 + np.exp(b * (A @ x)))),
        bounds=list(zip(-limits, limits, strict=True)),
        method="L-BFGS-B",
        options={"ftol": 1e-16, "gtol": 1e-10},
    ).x
    solution = np.array([single[0] / 2, *single[1:], single[0] / 2, 0.0])
    rows = np.column_stack([A, A[:, 0], np.zeros(sum(sizes))])
    problem = fism.Problem("logistic", fism.Box(-bound, bound), fism.ElasticNet(1.0, 1.0))
    steps = fism.PowerSteps(gamma=1.0, a=0.6, lam=2.0, b=0.35)
    return Reference(problem, split(rows, b, sizes), solution, steps, rng.uniform(-bound, bound, 6))


def least_squares() -> Reference:
    """Problem 6: rank-deficient least squares; the solution of minimum norm."""
    rng = np.random.default_rng(6)
    sizes = (3, 7, 20)
    A = rng.normal(size=(sum(sizes), 3)) @ rng.normal(size=(3, 6)) / 2
    b = rng.normal(size=sum(sizes))
    problem = fism.Problem("squared", fism.Ball(20.0), fism.SquaredNorm())
    steps = fism.PowerSteps(gamma=0.1, a=0.55, lam=10.0, b=0.4)
    return Reference(problem, split(A, b, sizes), np.linalg.pinv(A) @ b, steps, 2 * rng.normal(size=6))


REFERENCES = {
    "absolute deviations": absolute_deviations,
    "common balls": common_balls,
    "disjoint balls": disjoint_balls,
    "inconsistent deviations": inconsistent_deviations,
    "logistic twins": logistic_twins,
    "least squares": least_squares,
}
