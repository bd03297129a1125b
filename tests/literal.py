"""The paper's Algorithm 1 and IR-IG, line by line, in plain NumPy: slow, and written from the paper alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Vector: TypeAlias = NDArray[np.float64]
Map: TypeAlias = Callable[[Vector], Vector]
Row: TypeAlias = Callable[[Vector, float, Vector], Vector]
"""(row, label, x) -> one subgradient of f at x."""
RowValue: TypeAlias = Callable[[Vector, float, Vector], float]
Steps: TypeAlias = Callable[[int], float]
Shards: TypeAlias = Sequence[tuple[Vector, Vector]]


def fism(
    shards: Shards, df: Row, P: Map, dH: Map, x_1: Vector, gamma: Steps, lam: Steps, rounds: int, first_round: int = 1
) -> list[Vector]:
    """Return x_1, ..., x_{K+1} of Algorithm 1."""
    S = len(shards)
    m = sum(len(labels) for _, labels in shards)
    iterates = [x_1]
    for k in range(first_round, first_round + rounds):
        x_k = iterates[-1]
        H_k = dH(x_k)
        replies = []
        for rows, labels in shards:
            x = x_k
            for a, b in zip(rows, labels, strict=True):
                g = df(a, b, x)
                x = P(x - gamma(k) * g - gamma(k) * lam(k) / m * H_k)
            replies.append(x)
        iterates.append(sum(replies, np.zeros_like(x_k)) / S)
    return iterates


def irig(shards: Shards, df: Row, P: Map, dH: Map, x_1: Vector, gamma: Steps, lam: Steps, rounds: int) -> list[Vector]:
    """Return x_1, ..., x_{K+1} of IR-IG, all rows in client order."""
    m = sum(len(labels) for _, labels in shards)
    iterates = [x_1]
    for k in range(1, rounds + 1):
        x = iterates[-1]
        for rows, labels in shards:
            for a, b in zip(rows, labels, strict=True):
                x = P(x - gamma(k) * df(a, b, x) - gamma(k) * lam(k) / m * dH(x))
        iterates.append(x)
    return iterates


def inner(shards: Shards, f: RowValue, x: Vector) -> float:
    """Return F(x)."""
    return sum(f(a, b, x) for rows, labels in shards for a, b in zip(rows, labels, strict=True))


def dot(a: Vector, x: Vector) -> float:
    """Return <a, x>."""
    return float(a @ x)


def huber(r: float, delta: float) -> float:
    """Return Huber's function of a residual."""
    return r * r / 2 if abs(r) <= delta else delta * (abs(r) - delta / 2)


def away_from_ball(a: Vector, b: float, x: Vector) -> Vector:
    """Return the gradient of the distance to the ball around a of radius b; 0 in it and on its boundary."""
    distance = np.linalg.norm(x - a)
    return (x - a) / distance if distance > b else np.zeros_like(x)


def quantile_slope(r: float, tau: float) -> float:
    """Return the chosen slope of the quantile loss of r = z - b."""
    return 0.0 if r == 0 else (1 - tau if r > 0 else -tau)


VALUES: dict[str, RowValue] = {
    "logistic": lambda a, b, x: float(np.logaddexp(0, -b * dot(a, x))),
    "hinge": lambda a, b, x: max(0.0, 1 - b * dot(a, x)),
    "squared-hinge": lambda a, b, x: max(0.0, 1 - b * dot(a, x)) ** 2,
    "squared": lambda a, b, x: (dot(a, x) - b) ** 2 / 2,
    "absolute": lambda a, b, x: abs(dot(a, x) - b),
    "huber": lambda a, b, x: huber(dot(a, x) - b, 0.7),
    "quantile": lambda a, b, x: max(0.3 * (b - dot(a, x)), 0.7 * (dot(a, x) - b)),
    "ball-distance": lambda a, b, x: max(0.0, float(np.linalg.norm(x - a)) - b),
}
SUBGRADIENTS: dict[str, Row] = {
    "logistic": lambda a, b, x: -b / (1 + np.exp(b * dot(a, x))) * a,
    "hinge": lambda a, b, x: -b * a if b * dot(a, x) < 1 else np.zeros_like(a),
    "squared-hinge": lambda a, b, x: -2 * b * max(0.0, 1 - b * dot(a, x)) * a,
    "squared": lambda a, b, x: (dot(a, x) - b) * a,
    "absolute": lambda a, b, x: np.sign(dot(a, x) - b) * a,
    "huber": lambda a, b, x: np.clip(dot(a, x) - b, -0.7, 0.7) * a,
    "quantile": lambda a, b, x: quantile_slope(dot(a, x) - b, 0.3) * a,
    "ball-distance": away_from_ball,
}


def project_ball(x: Vector, radius: float, center: Vector | float = 0.0) -> Vector:
    """Return the point of the ball nearest to x."""
    distance = np.linalg.norm(x - center)
    return x if distance <= radius else center + (x - center) * radius / distance


def project_simplex(x: Vector, total: float) -> Vector:
    """Return the point of the simplex nearest to x, by sorting."""
    u = -np.sort(-x)
    tau = max((np.sum(u[: r + 1]) - total) / (r + 1) for r in range(x.size))
    return np.maximum(x - tau, 0)


def project_l1_ball(x: Vector, radius: float) -> Vector:
    """Return the point of the 1-norm ball nearest to x."""
    return x if np.sum(np.abs(x)) <= radius else np.sign(x) * project_simplex(np.abs(x), radius)
