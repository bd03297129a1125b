"""F_i and its gradient at one point, for methods that take whole gradients of a smooth linear loss."""

from numba import njit

from fism_client.data.shard import Entries, SparseRows
from fism_client.kernels.losses import Formula, slope, value
from fism_client.kernels.options import COMPILED
from fism_common.vectors import Vector


@njit(**COMPILED)
def dense_gradient(rows: Entries, scale: float, labels: Vector, loss: Formula, x: Vector, gradient: Vector) -> float:
    """Add the gradient of F_i at ``x`` to ``gradient``; return F_i there."""
    total = 0.0
    for j in range(labels.size):
        row, z = rows[j], 0.0
        for t in range(x.size):
            z += row[t] * x[t]
        total += value(loss, scale * z, labels[j])
        pull = scale * slope(loss, scale * z, labels[j])
        for t in range(x.size):
            gradient[t] += pull * row[t]
    return total


@njit(**COMPILED)
def sparse_gradient(
    rows: SparseRows, scale: float, labels: Vector, loss: Formula, x: Vector, gradient: Vector
) -> float:
    """Do what ``dense_gradient`` does, on compressed sparse rows."""
    total = 0.0
    for j in range(labels.size):
        z = 0.0
        for p in range(rows.indptr[j], rows.indptr[j + 1]):
            z += rows.data[p] * x[rows.indices[p]]
        total += value(loss, scale * z, labels[j])
        pull = scale * slope(loss, scale * z, labels[j])
        for p in range(rows.indptr[j], rows.indptr[j + 1]):
            gradient[rows.indices[p]] += pull * rows.data[p]
    return total
