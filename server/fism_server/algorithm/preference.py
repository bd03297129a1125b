"""H as the methods call it: every value and subgradient is checked, as H may be custom code."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fism_common.errors import NumericalError, ProblemError
from fism_common.vectors import real_numbers

if TYPE_CHECKING:
    from fism_common.vectors import Vector
    from fism_server.problem.outer import OuterObjective


class Preference:
    """A private objective H."""

    def __init__(self, outer: OuterObjective) -> None:
        """Take H."""
        self._outer, self._name = outer, type(outer).__name__

    def value(self, x: Vector) -> float:
        """Return H(x)."""
        value = real_numbers(self._outer.value(x), f"the value of {self._name}", ProblemError)
        if value.ndim != 0:
            raise ProblemError(f"the value of {self._name} must be a number, not of shape {value.shape}")
        return float(value)

    def subgradient(self, x: Vector, round_: int) -> Vector:
        """Return H's subgradient at ``x``, contiguous and of doubles, as kernels and the wire need it."""
        h = np.ascontiguousarray(
            real_numbers(self._outer.subgradient(x), f"a subgradient of {self._name}", ProblemError), float
        )
        if h.shape != x.shape:
            raise ProblemError(f"a subgradient of {self._name} must be of shape {x.shape}, not {h.shape}")
        if not np.isfinite(h).all():
            raise NumericalError(f"a subgradient of {self._name} is not finite in round {round_}")
        return h
