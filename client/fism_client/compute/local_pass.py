"""One client's work: the pass of a round over its shard, by the kernel that fits. Importing this imports numba."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from fism_client import kernels
from fism_client.compute import kernel_cache
from fism_client.data.shard import SparseRows
from fism_common.errors import ProblemError
from fism_common.exchange import Order, Reply
from fism_common.problem.losses import CustomLoss, LossKind
from fism_common.problem.sets import Ball, Box, L1Ball, SetKind, Simplex

if TYPE_CHECKING:
    from fism_client.data.shard import Shard
    from fism_common.problem.losses import Loss, Scalar
    from fism_common.problem.sets import ConstraintSet
    from fism_common.vectors import Vector


class LocalPass:
    """A shard, a loss and a set, ready to answer orders. Holds no state of the algorithm: equal orders, equal bits."""

    def __init__(self, shard: Shard, loss: Loss, constraint: ConstraintSet, where: str = "the shard") -> None:
        """Check that the labels fit the loss, choose the kernel, and compile or load it."""
        loss.check_labels(shard.labels, where)
        constraint.check(shard.columns)
        self.shard = shard
        self.formula = _formula(loss)
        self.region = _region(constraint, shard.columns)
        # A distance to a ball moves every column, and only the box and the ball have a closed form for drifting.
        lazy = {SetKind.BOX: kernels.lazy_box_pass, SetKind.BALL: kernels.lazy_ball_pass}
        linear = loss.kind != LossKind.BALL_DISTANCE
        self._sparse_pass = lazy.get(constraint.kind, kernels.scattered_pass) if linear else kernels.scattered_pass
        with kernel_cache.first_call():
            x = np.zeros(shard.columns)
            self.advance(x, Order(0, x, x, 0.0, 0.0), end=0)

    def answer(self, order: Order) -> Reply:
        """Run the order's pass; return where it ended, and F_i where it began."""
        x = order.x.copy()
        inner = self.advance(x, order)
        return Reply(x, inner)

    def inner(self, x: Vector) -> float:
        """Return F_i at ``x``, a point of X: what a pass with steps of length 0 gives."""
        return self.answer(Order(0, x, np.zeros_like(x), 0.0, 0.0)).inner

    def advance(self, x: Vector, order: Order, begin: int = 0, end: int | None = None) -> float:
        """Take the order's steps over the rows ``begin`` to ``end``, moving ``x`` itself from wherever in X it is.

        Returns the sum of the losses of these rows at the order's own point.
        """
        shard, rows = self.shard, self.shard.rows
        end = shard.count if end is None else end
        drift = (order.gamma * order.weight) * order.h
        rest = (shard.scale, shard.labels[begin:end], self.formula, self.region, order.x, drift, order.gamma, x)
        if isinstance(rows, SparseRows):
            return self._sparse_pass(rows.part(begin, end), *rest)
        return kernels.dense_pass(rows[begin:end], *rest)

    def warm_gradient(self) -> None:
        """Compile or load what ``gradient`` needs."""
        with kernel_cache.first_call():
            x = np.zeros(self.shard.columns)
            self.gradient(x, x.copy(), end=0)

    def gradient(self, x: Vector, gradient: Vector, end: int | None = None) -> float:
        """Add the gradient of F_i at ``x`` to ``gradient``, for a smooth loss; return F_i there. Rows up to ``end``."""
        shard, rows = self.shard, self.shard.rows
        rest = (shard.scale, shard.labels[:end], self.formula, x, gradient)
        if isinstance(rows, SparseRows):
            return kernels.sparse_gradient(rows, *rest)
        return kernels.dense_gradient(rows, *rest)


def _formula(loss: Loss) -> kernels.Formula:
    if not isinstance(loss, CustomLoss):
        return kernels.Formula(int(loss.kind), loss.parameter, None, None)
    return kernels.Formula(
        int(loss.kind), loss.parameter, _compile(loss, "value", loss.value), _compile(loss, "slope", loss.slope)
    )


@lru_cache(maxsize=64)
def _compile(loss: CustomLoss, part: str, function: Scalar) -> Scalar:
    from numba import cfunc, njit

    try:
        # By numpy's rules 1 / 0 is an infinity; an error could not leave the pass.
        compiled = njit(error_model="numpy")(getattr(function, "py_func", function))

        def call(z: float, b: float) -> float:
            return float(compiled(z, b))

        return cfunc("float64(float64, float64)")(call)
    except Exception as cause:  # numba lets through whatever its own code trips over
        raise ProblemError(
            f"the {part} of loss {loss.name!r} does not compile; it must be a function of two floats (z, b) that "
            f"returns a float, in the part of Python that numba knows: {cause}"
        ) from cause


def _region(constraint: ConstraintSet, n: int) -> kernels.Region:
    nothing = np.zeros(0)
    if type(constraint) not in {Box, Ball, Simplex, L1Ball}:  # a subclass may project otherwise
        raise ProblemError(
            f"{type(constraint).__name__} is not one of the sets that a pass can project on: Box, Ball, Simplex, L1Ball"
        )
    match constraint:
        case Box():
            lo, hi = np.broadcast_arrays(*np.atleast_1d(constraint.lo, constraint.hi))
            return kernels.Region(int(constraint.kind), lo.copy(), hi.copy(), 0.0)
        case Ball():
            center = np.zeros(n) if constraint.center is None else constraint.center.copy()
            return kernels.Region(int(constraint.kind), center, nothing, constraint.radius)
        case Simplex():
            return kernels.Region(int(constraint.kind), nothing, nothing, constraint.total)
        case L1Ball():
            return kernels.Region(int(constraint.kind), nothing, nothing, constraint.radius)
    raise TypeError(f"no region for {constraint!r}")
