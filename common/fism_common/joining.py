"""Joining: what a client sends about itself, and the problem that it receives."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fism_common.data.columns import Recipe

if TYPE_CHECKING:
    from fism_common.data.columns import Column
    from fism_common.problem.registry import Variant

PROTOCOL = 4
"""The version of the protocol; it changes with every message that changes its meaning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinRequest:
    """A request to join: counts, and the names and kinds of the client's columns."""

    name: str
    rows: int = 0
    """Rows that it trains on."""
    columns: int = 0
    virtual_clients: int = 1
    token: bytes = b""
    """The token of an earlier join, if the client reconnects."""
    schema: tuple[Column, ...] = ()
    """Empty if columns have no names."""
    version: str = ""
    protocol: int = PROTOCOL
    dry_run: bool = False
    """Only check whether the client could join."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The public problem, as sent to a client that joined."""

    run_id: str
    loss: Variant
    constraint: Variant
    recipe: Recipe = field(default_factory=Recipe)
    round: int = 0
    """The current round; 0 before the first."""
    version: str = ""
    token: bytes = b""
    """Binds the client's stream to its join."""


@dataclass(frozen=True, slots=True)
class Status:
    """The progress of a run."""

    run_id: str
    round: int
    present: int
    expected: int
