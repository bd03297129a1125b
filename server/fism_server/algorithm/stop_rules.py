"""Stop rules: when a run may end before its last round."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fism_server.algorithm.record import Record


class StopRule(ABC):
    """Decides whether a run may end. A rule that keeps numbers between rounds saves and restores them."""

    @abstractmethod
    def met(self, record: Record, inner: float, outer: float) -> bool:
        """Whether the run may end with x_{k+1}: ``record`` is round k's, ``inner`` and ``outer`` are F and H there."""

    def save(self) -> dict[str, float]:
        """Return the numbers to keep."""
        return {}

    def restore(self, numbers: dict[str, float]) -> None:  # noqa: B027  # for rules that keep something
        """Take back what ``save`` returned."""


@dataclass(frozen=True)
class RelativeChange(StopRule):
    """The paper's rule: x, H and F each changed by at most ``tolerance``, relative to 1 + their size."""

    tolerance: float

    def met(self, record: Record, inner: float, outer: float) -> bool:
        outer_change = abs(outer - record.outer) / (abs(record.outer) + 1)
        inner_change = abs(inner - record.inner) / (abs(record.inner) + 1)
        return max(record.change, outer_change, inner_change) <= self.tolerance
