"""One client's pass written with NumPy, row by row, as one would from the paper; it evaluates no F."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]


def logistic(rows: Vector, labels: Vector, x: Vector, h: Vector, gamma: float, weight: float, bound: float) -> Vector:
    """Return where the pass over a box ends, for the logistic loss."""
    for a, b in zip(rows, labels, strict=True):
        g = -b / (1 + np.exp(b * (a @ x))) * a
        x = np.clip(x - gamma * g - gamma * weight * h, -bound, bound)
    return x


def ball_distance(
    rows: Vector, labels: Vector, x: Vector, h: Vector, gamma: float, weight: float, bound: float
) -> Vector:
    """Return where the pass over a box ends, for the distance to balls."""
    for c, r in zip(rows, labels, strict=True):
        distance = np.linalg.norm(x - c)
        g = (x - c) / distance if distance > r else np.zeros_like(x)
        x = np.clip(x - gamma * g - gamma * weight * h, -bound, bound)
    return x
