"""The roster: who is in a run, in which order, with which columns. No I/O; the time is an argument."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fism_common.data.columns import Column, Recipe


@dataclass(slots=True, eq=False)
class Member:
    """A client that was admitted."""

    name: str
    rows: int
    columns: int
    """The columns of its data."""
    virtual_clients: int
    width: int = 0
    """The columns of the model."""
    token: bytes = field(default_factory=lambda: secrets.token_bytes(16))
    joined: float = 0.0
    """When it joined, by the monotonic clock."""
    digest: bytes = b""
    """The digest of its shard; empty until it opens a stream."""
    connected: bool = False
    """Whether it has an open stream."""
    absent_since: float | None = None
    """When it lost its stream, by the monotonic clock; None while it has one, and before it had one."""
    violations: int = 0
    excluded: str = ""
    """Why it is excluded; cleared when the client is restarted."""


class Roster:
    """The clients of one run."""

    def __init__(self, expected: int | Sequence[str], recipe: Recipe) -> None:
        """Expect so many clients, or these names, which is then the federation order.

        ``recipe`` says how rows are made of columns; the first client adds its columns to it.
        """
        self._names = None if isinstance(expected, int) else list(expected)
        self._recipe = recipe
        self.recipe = recipe
        """How rows are made: with the columns of the first client, once there is one."""
        self.expected = expected if isinstance(expected, int) else len(expected)
        """How many clients a round waits for."""
        self._by_name: dict[str, Member] = {}
        self._order: list[Member] | None = None
        self._dropped: dict[str, int] = {}
        self.begun = False
        """Whether the rounds have begun: from then on the same clients with the same data take part."""

    def restore(
        self, members: Sequence[Member], dropped: dict[str, int], features: tuple[Column, ...], now: float
    ) -> None:
        """Expect the clients of a resumed run, in federation order; all of them are absent from now on."""
        self.recipe = replace(self._recipe, features=features)
        for member in members:
            member.absent_since, member.width = now, self.recipe.width(member.columns)
        self._by_name = {member.name: member for member in members}
        self._order, self._dropped, self.expected, self.begun = list(members), dropped, len(members), True

    def add(self, member: Member, recipe: Recipe) -> None:
        """Add a member, whose columns the recipe has."""
        self._by_name[member.name] = member
        self._order, self.recipe = None, recipe

    def forget(self, member: Member) -> None:
        """Free a member's place. The agreed columns stay; once nobody is left, the next client decides."""
        del self._by_name[member.name]
        self._order = None
        if not self._by_name:
            self.recipe = self._recipe

    def drop(self, members: Sequence[Member], round_: int) -> None:
        """Continue without these members from round ``round_`` on."""
        for member in members:
            del self._by_name[member.name]
            self._dropped[member.name] = round_
        self.expected, self._order = self.expected - len(members), None

    def dropped_in(self, name: str) -> int | None:
        """Return the round in which a client was dropped; None if it was not."""
        return self._dropped.get(name)

    def get(self, name: str) -> Member | None:
        """Return the member of this name, if there is one."""
        return self._by_name.get(name)

    def by_token(self, token: bytes) -> Member | None:
        """Return the member that has this token, if there is one."""
        return next((one for one in self._by_name.values() if secrets.compare_digest(one.token, token)), None)

    def in_order(self) -> list[Member]:
        """Return the members in federation order: as listed, else by the bytes of their names."""
        if self._order is None:
            if self._names is None:
                self._order = sorted(self._by_name.values(), key=lambda member: member.name.encode())
            else:
                self._order = [self._by_name[name] for name in self._names if name in self._by_name]
        return self._order

    def present(self) -> list[Member]:
        """Return the members with an open stream, in federation order."""
        return [member for member in self.in_order() if member.connected]

    def missing(self) -> list[str]:
        """Return the names that are not connected; for clients that never joined and have no name, how many."""
        absent = [member.name for member in self.in_order() if not member.connected]
        if self.begun:
            return absent
        if self._names is not None:
            return [*absent, *(name for name in self._names if name not in self._by_name)]
        unknown = self.expected - len(self._by_name)
        return [*absent, *([f"{unknown} more"] if unknown else [])]
