"""The bilevel problem: minimise H over the minimisers of F on X."""

from __future__ import annotations

from dataclasses import dataclass

from fism_common.errors import ProblemError
from fism_common.problem.losses import LOSSES, Loss
from fism_common.problem.sets import ConstraintSet
from fism_server.problem.outer import OuterObjective

__all__ = ["Problem"]


@dataclass(frozen=True, init=False)
class Problem:
    """A loss f per row, a constraint set X, and the outer objective H that chooses among the minimisers of F."""

    loss: Loss
    constraint: ConstraintSet
    outer: OuterObjective

    def __init__(self, loss: Loss | str, constraint: ConstraintSet, outer: OuterObjective) -> None:
        """Take the loss by name or as an object, a set, and an outer objective; raise ProblemError for other types."""
        for what, value, kind in (("constraint", constraint, ConstraintSet), ("outer", outer, OuterObjective)):
            if not isinstance(value, kind):
                raise ProblemError(f"{what} must be a {kind.__name__}, such as {_EXAMPLES[what]}, not {value!r}")
        if not isinstance(loss, (str, Loss)):
            raise ProblemError(f"loss must be a name or a Loss, such as 'logistic' or fism.Huber(1.0), not {loss!r}")
        object.__setattr__(self, "loss", LOSSES.make(loss, {}) if isinstance(loss, str) else loss)
        object.__setattr__(self, "constraint", constraint)
        object.__setattr__(self, "outer", outer)

    def check(self, n: int) -> None:
        """Raise ProblemError if the set or the outer objective does not fit rows of ``n`` columns."""
        self.constraint.check(n)
        self.outer.check(n)


_EXAMPLES = {"constraint": "fism.Box(-1, 1)", "outer": "fism.ElasticNet(l1=1.0, l2=1.0)"}
