"""The pass that updates every column at every row: for dense rows, and for sparse ones if the problem needs it."""

import math

import numpy as np
from numba import njit

from fism_client.data.shard import Entries, SparseRows
from fism_client.kernels.losses import BALL_DISTANCE, Formula, slope, value
from fism_client.kernels.options import COMPILED, INLINED
from fism_client.kernels.sets import BOX, Region, clip, project
from fism_common.vectors import Vector

# From about this many bytes, a row, x, x_k and the drift no longer fit together in the L1 cache: the losses at x_k are
# then computed for a block of rows before its steps (a third less time on 784 columns of float64).
_LONG_ROW = 2500
_BLOCK = 64


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
    if rows.itemsize == 1 or rows.itemsize * x.size < _LONG_ROW:  # widening bytes twice costs more than it saves
        for j in range(labels.size):
            z, z_k = measure_two(rows[j], scale, loss, x, x_k)
            total += value(loss, z_k, labels[j])
            move(rows[j], scale, z, labels[j], loss, region, drift, gamma, x)
        return total
    for begin in range(0, labels.size, _BLOCK):
        end = min(begin + _BLOCK, labels.size)
        for j in range(begin, end):
            total += value(loss, measure(rows[j], scale, loss, x_k), labels[j])
        for j in range(begin, end):
            z = measure(rows[j], scale, loss, x)
            move(rows[j], scale, z, labels[j], loss, region, drift, gamma, x)
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
        z, z_k = measure_two(row, scale, loss, x, x_k)
        total += value(loss, z_k, labels[j])
        move(row, scale, z, labels[j], loss, region, drift, gamma, x)
        for p in range(rows.indptr[j], rows.indptr[j + 1]):
            row[rows.indices[p]] = 0
    return total


@njit(**INLINED)
def measure(row: Entries, scale: float, loss: Formula, x: Vector) -> float:
    """Return the argument of the loss: <row, x>, or for ball-distance |x - row|."""
    z = 0.0
    if loss.code == BALL_DISTANCE:
        for t in range(x.size):
            z += (x[t] - scale * row[t]) ** 2
        return math.sqrt(z)
    for t in range(x.size):
        z += row[t] * x[t]
    return scale * z


@njit(**INLINED)
def measure_two(row: Entries, scale: float, loss: Formula, x: Vector, y: Vector) -> tuple[float, float]:
    """Return ``measure`` for ``x`` and for ``y``, in one sweep over the row."""
    z, w = 0.0, 0.0
    if loss.code == BALL_DISTANCE:
        for t in range(x.size):
            z += (x[t] - scale * row[t]) ** 2
            w += (y[t] - scale * row[t]) ** 2
        return math.sqrt(z), math.sqrt(w)
    for t in range(x.size):
        z += row[t] * x[t]
        w += row[t] * y[t]
    return scale * z, scale * w


@njit(**INLINED)
def step(scale: float, z: float, b: float, loss: Formula, gamma: float) -> tuple[float, float]:
    """Return gamma g(x) as (shrink, push): it is shrink * (x - scale * row) + push * row."""
    length = gamma * slope(loss, z, b)
    if loss.code == BALL_DISTANCE:
        return length / z if length > 0.0 else 0.0, 0.0
    return 0.0, length * scale


@njit(**INLINED)
def move(
    row: Entries,
    scale: float,
    z: float,
    b: float,
    loss: Formula,
    region: Region,
    drift: Vector,
    gamma: float,
    x: Vector,
) -> None:
    """Replace ``x`` by P_X[x - gamma g(x) - drift]."""
    shrink, push = step(scale, z, b, loss, gamma)
    if region.code == BOX and region.lo.size == 1 and shrink == 0.0:
        lo, hi = region.lo[0], region.hi[0]
        for t in range(x.size):
            x[t] = clip(x[t] - push * row[t] - drift[t], lo, hi)
    elif region.code == BOX and region.lo.size == 1:
        lo, hi = region.lo[0], region.hi[0]
        for t in range(x.size):
            x[t] = clip(x[t] - shrink * (x[t] - scale * row[t]) - drift[t], lo, hi)
    else:
        for t in range(x.size):
            x[t] = x[t] - shrink * (x[t] - scale * row[t]) - push * row[t] - drift[t]
        project(region, x)
