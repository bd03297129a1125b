"""The pass that touches every column at every row: dense rows, and sparse ones where the method needs it."""

import math

import numpy as np
from numba import njit

from fism_client.kernels.formulas import BALL_DISTANCE, Formula, loss_slope, loss_value
from fism_client.kernels.options import COMPILED
from fism_client.kernels.regions import BOX, Region, clip, project
from fism_client.shard import Entries, SparseRows
from fism_common.vectors import Vector


@njit(**COMPILED)
def dense_pass(
    rows: Entries,
    scale: float,
    labels: Vector,
    loss: Formula,
    region: Region,
    x_k: Vector,
    drift: Vector,
    gamma: float,
    x: Vector,
) -> float:
    """Run x <- P_X[x - gamma g_j(x) - drift] over all rows j, in place; return the sum of f_j at the fixed ``x_k``."""
    total = 0.0
    for j in range(labels.size):
        row = rows[j]
        value, shrink, push = look(row, scale, labels[j], loss, x_k, gamma, x)
        total += value
        move(row, shrink, push, drift, region, x)
    return total


@njit(**COMPILED)
def scattered_pass(
    rows: SparseRows,
    scale: float,
    labels: Vector,
    loss: Formula,
    region: Region,
    x_k: Vector,
    drift: Vector,
    gamma: float,
    x: Vector,
) -> float:
    """Do what ``dense_pass`` does, on compressed sparse rows."""
    total = 0.0
    row = np.zeros(x.size, rows.data.dtype)
    for j in range(labels.size):
        for p in range(rows.indptr[j], rows.indptr[j + 1]):
            row[rows.indices[p]] = rows.data[p]
        value, shrink, push = look(row, scale, labels[j], loss, x_k, gamma, x)
        total += value
        move(row, shrink, push, drift, region, x)
        for p in range(rows.indptr[j], rows.indptr[j + 1]):
            row[rows.indices[p]] = 0
    return total


@njit(**COMPILED)
def look(
    row: Entries, scale: float, b: float, loss: Formula, x_k: Vector, gamma: float, x: Vector
) -> tuple[float, float, float]:
    """Return f at ``x_k``, and the step gamma g(x) as (shrink, push): shrink * x + push * row."""
    if loss.kind == BALL_DISTANCE:
        square, square_k = 0.0, 0.0
        for t in range(x.size):
            center = scale * row[t]
            square += (x[t] - center) ** 2
            square_k += (x_k[t] - center) ** 2
        distance = math.sqrt(square)
        shrink = gamma / distance if distance > b else 0.0
        return max(math.sqrt(square_k) - b, 0.0), shrink, -shrink * scale
    z, z_k = 0.0, 0.0
    for t in range(x.size):
        z += row[t] * x[t]
        z_k += row[t] * x_k[t]
    value = loss_value(loss.kind, loss.parameter, loss.value, scale * z_k, b)
    return value, 0.0, gamma * scale * loss_slope(loss.kind, loss.parameter, loss.slope, scale * z, b)


@njit(**COMPILED)
def move(row: Entries, shrink: float, push: float, drift: Vector, region: Region, x: Vector) -> None:
    """Replace ``x`` by P_X[x - shrink * x - push * row - drift]."""
    if region.kind == BOX:
        for t in range(x.size):
            x[t] = clip(x[t] - shrink * x[t] - push * row[t] - drift[t], region.lo[t], region.hi[t])
    else:
        for t in range(x.size):
            x[t] = x[t] - shrink * x[t] - push * row[t] - drift[t]
        project(region, x)
