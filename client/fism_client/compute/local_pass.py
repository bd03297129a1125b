"""One shard's computations: passes, values and subgradients. Chooses the kernels. Importing this imports numba."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from fism_client import kernels
from fism_client.compute import kernel_cache
from fism_client.data.shard import SparseRows
from fism_common.errors import NumericalError, ProblemError
from fism_common.exchange import Pass, PassAnswer
from fism_common.problem.custom import CustomLoss
from fism_common.sums.grid import grid_of

if TYPE_CHECKING:
    from fism_client.data.shard import Shard
    from fism_common.problem.losses import Loss, Scalar
    from fism_common.problem.sets import ConstraintSet
    from fism_common.sums.grid import Words
    from fism_common.vectors import Vector


class LocalPass:
    """A shard, a loss and a set. Holds no algorithm state: equal questions get bit-identical answers."""

    def __init__(self, shard: Shard, loss: Loss, constraint: ConstraintSet, where: str = "the shard") -> None:
        """Check that the labels fit the loss, choose the kernel, and compile or load it."""
        loss.check_labels(shard.labels, where)
        constraint.check(shard.columns)
        self.shard = shard
        self._constraint, self._slack, self._where = constraint, constraint.slack(shard.columns), where
        self.formula = _formula(loss)
        self.region = kernels.region_of(constraint, shard.columns)
        # The distance to a ball changes every column, and only the box and the ball have a closed form for the drift.
        lazy = {"box": kernels.lazy_box_pass, "ball": kernels.lazy_ball_pass}
        self._sparse_pass = lazy.get(constraint.kind, kernels.scattered_pass) if loss.linear else kernels.scattered_pass
        with kernel_cache.first_call():
            x = np.zeros(shard.columns)
            self.advance(x, Pass(x, x, 0.0, 0.0), end=0)

    def answer(self, question: Pass) -> PassAnswer:
        """Run the pass; return the point where it ended, and F_i where it started."""
        x, inner = self.run(question)
        return PassAnswer(self.on_grid(x, question.summands), (inner,))

    def run(self, question: Pass) -> tuple[Vector, float]:
        """Run the pass; return the point where it ended, not rounded to a grid, and F_i where it started."""
        x = question.x.copy()
        return x, self.advance(x, question)

    def on_grid(self, x: Vector, summands: int) -> Words:
        """Return a point of X on the grid for sums of so many points; raise NumericalError if it is not in X."""
        if not self._constraint.contains(x, self._slack):
            raise NumericalError(
                f"{self._where}: a pass overflowed and ended outside X: scale the columns, lower gamma, or if the loss "
                "is custom, check that its slope is finite"
            )
        return grid_of(self._constraint, x.size, summands).words(x)

    def advance(self, x: Vector, question: Pass, begin: int = 0, end: int | None = None) -> float:
        """Run the pass over the rows ``begin`` to ``end``, updating ``x``, any point in X, in place.

        Returns the sum of the losses of these rows at ``question.x``.
        """
        shard, rows = self.shard, self.shard.rows
        end = shard.count if end is None else end
        drift = (question.gamma * question.weight) * question.h
        rest = (shard.scale, shard.labels[begin:end], self.formula, self.region, question.x, drift, question.gamma, x)
        if isinstance(rows, SparseRows):
            return self._sparse_pass(rows.part(begin, end), *rest)
        return kernels.dense_pass(rows[begin:end], *rest)

    def warm_points(self) -> None:
        """Compile or load what ``value`` and ``probe`` need."""
        with kernel_cache.first_call():
            x = np.zeros(self.shard.columns)
            self.value(x, end=0)
            self.probe(x, x.copy(), end=0)

    def value(self, x: Vector, end: int | None = None) -> float:
        """Return F_i at ``x``, over the rows up to ``end``."""
        return _value(self.shard, self.formula, x, end)

    def probe(self, x: Vector, g: Vector, end: int | None = None) -> float:
        """Add one exact subgradient of F_i at ``x`` to ``g``; return F_i there. Uses the rows up to ``end``."""
        shard, rows = self.shard, self.shard.rows
        rest = (shard.scale, shard.labels[:end], self.formula, x, g)
        return kernels.sparse_probe(rows, *rest) if isinstance(rows, SparseRows) else kernels.dense_probe(rows, *rest)


def total_loss(shard: Shard, loss: Loss, x: Vector) -> float:
    """Return the sum of the losses of a shard's rows at ``x``."""
    formula = _formula(loss)
    with kernel_cache.first_call():
        _value(shard, formula, x, 0)
    return _value(shard, formula, x, None)


def _value(shard: Shard, formula: kernels.Formula, x: Vector, end: int | None) -> float:
    rows, rest = shard.rows, (shard.scale, shard.labels[:end], formula, x)
    return kernels.sparse_value(rows, *rest) if isinstance(rows, SparseRows) else kernels.dense_value(rows, *rest)


def _formula(loss: Loss) -> kernels.Formula:
    if not isinstance(loss, CustomLoss):
        return kernels.formula_of(loss)
    return kernels.formula_of(loss, _compile(loss, "value", loss.value), _compile(loss, "slope", loss.slope))


@lru_cache(maxsize=64)
def _compile(loss: CustomLoss, part: str, function: Scalar) -> Scalar:
    from numba import cfunc, njit

    try:
        # With numpy's error model 1 / 0 is infinity; an exception could not leave the pass.
        compiled = njit(error_model="numpy")(getattr(function, "py_func", function))

        def call(z: float, b: float) -> float:
            return float(compiled(z, b))

        return cfunc("float64(float64, float64)")(call)
    except Exception as cause:  # numba raises exceptions of any type
        raise ProblemError(
            f"the {part} of loss {loss.kind!r} does not compile; it must be a function of two floats (z, b) that "
            f"returns a float, in the subset of Python that numba supports: {cause}"
        ) from cause
