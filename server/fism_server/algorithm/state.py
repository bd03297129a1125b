"""A method's state between two rounds: named numbers and vectors, which an archive can save and restore."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fism_common.vectors import Vector

Number: TypeAlias = float | int | str | None


@dataclass(frozen=True, slots=True)
class State:
    """Everything that a method needs to continue with round ``round``."""

    round: int
    numbers: Mapping[str, Number]
    vectors: Mapping[str, Vector]
    """Among them ``x``, the current point."""

    @property
    def x(self) -> Vector:
        """The current point."""
        return self.vectors["x"]
