"""F_i, and one subgradient of it, at one point. No step is taken, so the order of rows does not matter."""

import numpy as np
from numba import njit

from fism_client.data.shard import Entries, SparseRows
from fism_client.kernels.dense import measure, step
from fism_client.kernels.losses import BALL_DISTANCE, Formula, slope, value
from fism_client.kernels.options import COMPILED, INLINED
from fism_common.vectors import Vector


@njit(**COMPILED)
def dense_value(rows: Entries, scale: float, labels: Vector, loss: Formula, x: Vector) -> float:
    """Return F_i at ``x``."""
    total = 0.0
    for j in range(labels.size):
        total += value(loss, measure(rows[j], scale, loss, x), labels[j])
    return total


@njit(**COMPILED)
def sparse_value(rows: SparseRows, scale: float, labels: Vector, loss: Formula, x: Vector) -> float:
    """Do what ``dense_value`` does, on compressed sparse rows."""
    total = 0.0
    if loss.code == BALL_DISTANCE:
        row = np.zeros(x.size, rows.data.dtype)
        for j in range(labels.size):
            _scatter(rows, j, row)
            total += value(loss, measure(row, scale, loss, x), labels[j])
            _clear(rows, j, row)
        return total
    for j in range(labels.size):
        total += value(loss, scale * _dot(rows, j, x), labels[j])
    return total


@njit(**COMPILED)
def dense_probe(rows: Entries, scale: float, labels: Vector, loss: Formula, x: Vector, g: Vector) -> float:
    """Add a subgradient of F_i at ``x`` to ``g``; return F_i there."""
    total = 0.0
    for j in range(labels.size):
        row = rows[j]
        z = measure(row, scale, loss, x)
        total += value(loss, z, labels[j])
        _add(row, scale, z, labels[j], loss, x, g)
    return total


@njit(**COMPILED)
def sparse_probe(rows: SparseRows, scale: float, labels: Vector, loss: Formula, x: Vector, g: Vector) -> float:
    """Do what ``dense_probe`` does, on compressed sparse rows."""
    total = 0.0
    if loss.code == BALL_DISTANCE:
        row = np.zeros(x.size, rows.data.dtype)
        for j in range(labels.size):
            _scatter(rows, j, row)
            z = measure(row, scale, loss, x)
            total += value(loss, z, labels[j])
            _add(row, scale, z, labels[j], loss, x, g)
            _clear(rows, j, row)
        return total
    for j in range(labels.size):
        z = scale * _dot(rows, j, x)
        total += value(loss, z, labels[j])
        push = scale * slope(loss, z, labels[j])
        for p in range(rows.indptr[j], rows.indptr[j + 1]):
            g[rows.indices[p]] += push * rows.data[p]
    return total


@njit(**INLINED)
def _add(row: Entries, scale: float, z: float, b: float, loss: Formula, x: Vector, g: Vector) -> None:
    """Add the subgradient of one row's loss."""
    shrink, push = step(scale, z, b, loss, 1.0)
    if shrink == 0.0:
        for t in range(x.size):
            g[t] += push * row[t]
    else:
        for t in range(x.size):
            g[t] += shrink * (x[t] - scale * row[t])


@njit(**INLINED)
def _dot(rows: SparseRows, j: int, x: Vector) -> float:
    z = 0.0
    for p in range(rows.indptr[j], rows.indptr[j + 1]):
        z += rows.data[p] * x[rows.indices[p]]
    return z


@njit(**INLINED)
def _scatter(rows: SparseRows, j: int, row: Entries) -> None:
    for p in range(rows.indptr[j], rows.indptr[j + 1]):
        row[rows.indices[p]] = rows.data[p]


@njit(**INLINED)
def _clear(rows: SparseRows, j: int, row: Entries) -> None:
    for p in range(rows.indptr[j], rows.indptr[j + 1]):
        row[rows.indices[p]] = 0
