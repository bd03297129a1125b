"""The record of a round, and why a run ended."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Stop(StrEnum):
    """Why a run ended."""

    ROUNDS = "rounds"
    TOLERANCE = "tolerance"


@dataclass(frozen=True, slots=True)
class Record:
    """The numbers of round k: F and H at x_k, before the round, and how much the round changed x_k.

    The columns of the archive's table of rounds, of exports and of ``Result.history`` derive from these fields.
    """

    round: int
    gamma: float
    lam: float
    inner: float
    outer: float
    change: float
    """|x_{k+1} - x_k| / (|x_k| + 1)."""
