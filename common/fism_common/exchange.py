"""What one round asks of a client, and what the client answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fism_common.vectors import Vector


@dataclass(frozen=True, slots=True)
class Order:
    """Round k, from the server to every client: the point, one subgradient of H there, and two scalars."""

    round: int
    x: Vector
    h: Vector
    gamma: float
    weight: float
    """lambda_k / m."""


@dataclass(frozen=True, slots=True)
class Reply:
    """One client's answer to an order."""

    x: Vector
    """Where the client's pass over its rows ended."""
    inner: float
    """F_i at the order's x, before the pass."""
