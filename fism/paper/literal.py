"""Passes written with NumPy, row by row, as one would from the paper, to compare ours with. They evaluate no F."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from fism_common.vectors import Vector


def logistic(rows: Vector, labels: Vector, x: Vector, h: Vector, gamma: float, weight: float, bound: float) -> Vector:
    """Return where one client's pass over a box ends, for the logistic loss."""
    for a, b in zip(rows, labels, strict=True):
        g = -b / (1 + np.exp(b * (a @ x))) * a
        x = np.clip(x - gamma * g - gamma * weight * h, -bound, bound)
    return x


def ball_distance(
    rows: Vector, radii: Vector, x: Vector, h: Vector, gamma: float, weight: float, bound: float
) -> Vector:
    """Return where one client's pass over a box ends, for the distance to balls."""
    for c, r in zip(rows, radii, strict=True):
        x = np.clip(x - gamma * _away(x, c, r) - gamma * weight * h, -bound, bound)
    return x


def irig_ball_distance(
    rows: Vector, radii: Vector, x: Vector, anchor: Vector, gamma: float, weight: float, bound: float
) -> Vector:
    """Return where IR-IG's pass ends, with H = |x - anchor|^2 / 2 asked for its subgradient at every row."""
    for c, r in zip(rows, radii, strict=True):
        x = np.clip(x - gamma * _away(x, c, r) - gamma * weight * (x - anchor), -bound, bound)
    return x


def _away(x: Vector, center: Vector, radius: float) -> Vector:
    distance = np.linalg.norm(x - center)
    return (x - center) / distance if distance > radius else np.zeros_like(x)
