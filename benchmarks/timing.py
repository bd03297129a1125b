"""Timing by the best of several runs: on a busy machine, the best is the least disturbed by other processes."""

from __future__ import annotations

import math
import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class Ratio:
    """One measured claim: ``found`` must be at least (or with ``most``, at most) ``target``; None makes no claim."""

    what: str
    found: float
    target: float | None
    most: bool = False

    @property
    def holds(self) -> bool:
        """Whether the claim holds."""
        if self.target is None:
            return True
        return self.found <= self.target if self.most else self.found >= self.target

    def __str__(self) -> str:
        """Return one line of the report."""
        bound = "" if self.target is None else f"{'at most' if self.most else 'at least'} {self.target:g}"
        return f"{self.found:8.2f}  {bound:12} {'' if self.holds else 'MISSED':7} {self.what}"


def best_of(repeats: int, **works: Callable[[], object]) -> dict[str, float]:
    """Return the shortest time of each work in seconds; they alternate, so that a busy moment affects all of them."""
    shortest = dict.fromkeys(works, math.inf)
    for _ in range(repeats):
        for name, work in works.items():
            began = time.perf_counter()
            work()
            shortest[name] = min(shortest[name], time.perf_counter() - began)
    return shortest


def use_one_core() -> None:
    """Keep this process, and those it starts, on one core."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
