"""Passes in plain NumPy, row by row, straight from the paper, to compare the kernels with. They do not compute F."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from fism_common.vectors import Vector


def logistic(rows: Vector, labels: Vector, x: Vector, h: Vector, gamma: float, weight: float, bound: float) -> Vector:
    """Return x after one client's pass over a box, for the logistic loss."""
    for a, b in zip(rows, labels, strict=True):
        g = -b / (1 + np.exp(b * (a @ x))) * a
        x = np.clip(x - gamma * g - gamma * weight * h, -bound, bound)
    return x


def ball_distance(
    rows: Vector, radii: Vector, x: Vector, h: Vector, gamma: float, weight: float, bound: float
) -> Vector:
    """Return x after one client's pass over a box, for the distance to balls."""
    for c, r in zip(rows, radii, strict=True):
        x = np.clip(x - gamma * _away(x, c, r) - gamma * weight * h, -bound, bound)
    return x


def irig_ball_distance(
    rows: Vector, radii: Vector, x: Vector, anchor: Vector, gamma: float, weight: float, bound: float
) -> Vector:
    """Return x after IR-IG's pass, with a new subgradient of H = |x - anchor|^2 / 2 at every row."""
    for c, r in zip(rows, radii, strict=True):
        x = np.clip(x - gamma * _away(x, c, r) - gamma * weight * (x - anchor), -bound, bound)
    return x


def _away(x: Vector, center: Vector, radius: float) -> Vector:
    distance = np.linalg.norm(x - center)
    return (x - center) / distance if distance > radius else np.zeros_like(x)
