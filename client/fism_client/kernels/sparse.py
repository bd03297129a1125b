"""Passes that only visit a row's nonzeros: the drift is constant in a round, so an untouched column only drifts."""

import math

import numpy as np
from numba import njit

from fism_client.data.shard import SparseRows
from fism_client.kernels.losses import Formula, slope, value
from fism_client.kernels.options import COMPILED, INLINED
from fism_client.kernels.sets import Region, clip
from fism_common.vectors import Vector

# v may grow as 1 / alpha before it is folded: its square must stay finite.
_SMALLEST_ALPHA = 1e-100
# How far |alpha v|^2 + |beta d|^2 may exceed radius^2 before cancellation between the two costs digits.
_LARGEST_PARTS = 1e2


@njit(**COMPILED)
def lazy_box_pass(
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
    """Do what ``dense_pass`` does on a box, for a linear loss and an ``x`` in the box.

    From inside the box, s steps of an untouched column are exactly clip(x - s drift): they are applied when a row
    touches it.
    """
    # One cache line per column instead of six.
    columns = np.empty((x.size, 6))
    last = region.lo.size - 1
    for t in range(x.size):
        lo, hi = region.lo[min(t, last)], region.hi[min(t, last)]
        columns[t] = (x[t], drift[t], x_k[t], lo, hi, 0.0)  # the last counts the steps taken so far
    data, indices, indptr, total = rows.data, rows.indices, rows.indptr, 0.0
    for j in range(labels.size):
        z, z_k = 0.0, 0.0
        for p in range(indptr[j], indptr[j + 1]):
            c = columns[indices[p]]
            c[0] = clip(c[0] - (j - c[5]) * c[1], c[3], c[4])
            z += data[p] * c[0]
            z_k += data[p] * c[2]
        total += value(loss, scale * z_k, labels[j])
        push = gamma * scale * slope(loss, scale * z, labels[j])
        for p in range(indptr[j], indptr[j + 1]):
            c = columns[indices[p]]
            c[0] = clip(c[0] - push * data[p] - c[1], c[3], c[4])
            c[5] = j + 1
    for t in range(x.size):
        c = columns[t]
        x[t] = clip(c[0] - (labels.size - c[5]) * c[1], c[3], c[4])
    return total


@njit(**COMPILED)
def lazy_ball_pass(
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
    """Do what ``dense_pass`` does on a ball, for a linear loss.

    Stores x - center as alpha v + beta d, where d is the drift, with |v|^2, <v, d> and |d|^2: a drift step changes
    beta, a projection scales alpha and beta, and a row changes v only at its nonzeros.
    """
    columns = np.empty((x.size, 4))  # v, d, x_k, center: one cache line per column
    for t in range(x.size):
        columns[t] = (x[t] - region.lo[t], drift[t], x_k[t], region.lo[t])
    data, indices, indptr, total = rows.data, rows.indices, rows.indptr, 0.0
    alpha, beta, limit = 1.0, 0.0, region.radius**2
    vv, vd, dd = _products(columns)
    for j in range(labels.size):
        va, da, ca, aa, z_k = 0.0, 0.0, 0.0, 0.0, 0.0  # a is the row
        for p in range(indptr[j], indptr[j + 1]):
            c, a = columns[indices[p]], data[p] * scale
            va += a * c[0]
            da += a * c[1]
            ca += a * c[3]
            aa += a * a
            z_k += a * c[2]
        total += value(loss, z_k, labels[j])
        push = gamma * slope(loss, alpha * va + beta * da + ca, labels[j]) / alpha
        for p in range(indptr[j], indptr[j + 1]):
            columns[indices[p], 0] -= push * scale * data[p]
        vv += push * (push * aa - 2.0 * va)
        vd -= push * da
        beta -= 1.0
        square = alpha * alpha * vv + 2.0 * alpha * beta * vd + beta * beta * dd
        if square > limit:
            factor = region.radius / math.sqrt(square)
            alpha, beta = alpha * factor, beta * factor
        if alpha < _SMALLEST_ALPHA or alpha * alpha * vv + beta * beta * dd > _LARGEST_PARTS * limit:
            _fold(columns, alpha, beta)
            alpha, beta = 1.0, 0.0
            vv, vd, dd = _products(columns)
    _fold(columns, alpha, beta)
    for t in range(x.size):
        x[t] = columns[t, 0] + columns[t, 3]
    return total


@njit(**INLINED)
def _products(columns: Vector) -> tuple[float, float, float]:
    """Return |v|^2, <v, d> and |d|^2."""
    vv, vd, dd = 0.0, 0.0, 0.0
    for t in range(columns.shape[0]):
        v, d = columns[t, 0], columns[t, 1]
        vv += v * v
        vd += v * d
        dd += d * d
    return vv, vd, dd


@njit(**INLINED)
def _fold(columns: Vector, alpha: float, beta: float) -> None:
    """Replace v by alpha v + beta d."""
    for t in range(columns.shape[0]):
        columns[t, 0] = alpha * columns[t, 0] + beta * columns[t, 1]
