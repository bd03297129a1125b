"""Participation: who is asked a question, and when its round is complete."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence
    from collections.abc import Set as AbstractSet

T = TypeVar("T")


class Participation(Protocol):
    """Decides who takes part in a question."""

    def choose(self, members: Sequence[T]) -> list[T]:
        """Return who is asked, of all members in federation order."""

    def is_complete(self, waiting: AbstractSet[T]) -> bool:
        """Whether the question is answered, although these members were asked and have not answered yet."""


class AllClients:
    """Every client answers every question."""

    def choose(self, members: Sequence[T]) -> list[T]:
        """Return all members."""
        return list(members)

    def is_complete(self, waiting: AbstractSet[T]) -> bool:
        """Whether nobody is missing."""
        return not waiting
