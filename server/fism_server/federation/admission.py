"""Admission: who may join a run, with which name and columns. No I/O; the time is an argument."""

from __future__ import annotations

import logging
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fism_common.data.columns import agree
from fism_common.errors import (
    ContractError,
    InputError,
    MismatchError,
    NameTakenError,
    NotAllowedError,
    NotJoinedError,
)
from fism_common.joining import PROTOCOL
from fism_server.federation.acceptance import MOST_ROWS
from fism_server.federation.roster import Member

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fism_common.data.columns import Recipe
    from fism_common.joining import JoinRequest
    from fism_server.federation.roster import Roster

_log = logging.getLogger(__name__)
_LONGEST_NAME = 64
_MOST_COLUMNS = 2**32
_SECONDS_TO_OPEN = 120.0


@dataclass(frozen=True, kw_only=True)
class AdmissionRules:
    """Who may join, and with which columns."""

    names: Sequence[str] | None = None
    """The names of the clients, if they are listed."""
    columns: int | None = None
    """The columns of the model; None lets the first client decide."""
    check_columns: Callable[[int], None] = lambda _: None
    """Raises InputError for a number of columns that the problem cannot have."""
    allowed: Sequence[str] | None = None
    """The names that are admitted; None for all."""
    features: Sequence[str] = ()
    """The names of the columns; if empty, those of the first client."""
    in_order: bool = False
    """Whether vectors of the problem rely on the order of the columns."""

    def check_name(self, name: str, proven: str | None) -> None:
        """Refuse a name that is not the caller's ``proven`` one, or not listed."""
        if not name or len(name) > _LONGEST_NAME or not name.isprintable():
            raise ContractError(f"a client's name has 1 to {_LONGEST_NAME} printable characters")
        if proven is not None and name != proven:
            raise NotAllowedError(f"your certificate is for {proven!r}: you cannot join as {name!r}")
        if self.allowed is not None and name not in self.allowed:
            raise NotAllowedError(f"{name!r} is not allowed in this run; ask its coordinator to list the name")
        if self.names is not None and name not in self.names:
            raise NotAllowedError(f"{name!r} is not a client of this run; ask its coordinator to list the name")


class Admission:
    """Admits clients to a roster."""

    def __init__(self, rules: AdmissionRules, roster: Roster) -> None:
        """Take the rules, and the roster to fill."""
        self._rules, self._roster = rules, roster

    def join(self, request: JoinRequest, now: float, proven: str | None = None) -> Member:
        """Admit a client, or admit it again; raise a RefusedError that says why not.

        ``proven`` is the name in its certificate, if it has one.
        """
        self._rules.check_name(request.name, proven)
        known = self._roster.get(request.name)
        if known is not None and len(self._roster.in_order()) == 1 and not self._is_bound(known):
            self._roster.forget(known)  # a first attempt does not decide the columns
        recipe = self.check(request, now, proven)
        known = self._roster.get(request.name)
        if known is not None and self._is_bound(known):
            return _admit_again(known, request)
        width = recipe.width(request.columns)
        member = Member(request.name, request.rows, request.columns, request.virtual_clients, width, joined=now)
        self._roster.add(member, recipe)
        return member

    def check(self, request: JoinRequest, now: float, proven: str | None = None) -> Recipe:
        """Return the recipe that a client would get; raise a RefusedError that says why it cannot join."""
        self._forget_vanished(now)
        self._rules.check_name(request.name, proven)
        recipe, roster = self._check(request), self._roster
        known, dropped = roster.get(request.name), roster.dropped_in(request.name)
        if known is None and dropped is not None:
            raise NotAllowedError(f"{request.name!r} was absent for too long: it was dropped in round {dropped}")
        if known is None and len(roster.in_order()) == roster.expected:
            raise NotAllowedError(f"the run has its {roster.expected} clients, and {request.name!r} is not one of them")
        if known is not None and self._is_bound(known):
            _check_again(known, request, proven=proven is not None)
        return recipe

    def open(self, token: bytes, digest: bytes, proven: str | None = None) -> Member:
        """Return the member that has this token, if its rows have not changed."""
        member = self._roster.by_token(token)
        if member is None:
            raise NotJoinedError("this token does not belong to this run, or is no longer valid; join first")
        self._rules.check_name(member.name, proven)
        if member.excluded:
            raise NotAllowedError(f"{member.name!r} is excluded: {member.excluded}")
        if self._roster.begun and member.digest not in {b"", digest}:
            raise MismatchError(f"{member.name!r} began the run with other rows; come back with the same data")
        member.digest = digest
        return member

    def check_member(self, token: bytes, proven: str | None) -> None:
        """Refuse a caller that is not one of the clients: by its certificate, else by its token."""
        member = self._roster.by_token(token) if proven is None else self._roster.get(proven)
        if member is None:
            raise NotAllowedError("only clients of the run may ask for its status")
        self._rules.check_name(member.name, proven)

    def revoke(self) -> list[str]:
        """Exclude the clients of a resumed run whose names are no longer allowed; return the names."""
        allowed = self._rules.allowed
        revoked = [one for one in self._roster.in_order() if allowed is not None and one.name not in allowed]
        for member in revoked:
            member.excluded = "no longer allowed"
        return [member.name for member in revoked]

    def _is_bound(self, member: Member) -> bool:
        """Whether a member that joins again must have the same data as before."""
        return self._roster.begun or member.connected or bool(member.excluded)

    def _forget_vanished(self, now: float) -> None:
        """Before the rounds begin, free the places of clients that joined long ago and never opened a stream."""
        if self._roster.begun:
            return
        for member in list(self._roster.in_order()):
            if not member.connected and now - member.joined > _SECONDS_TO_OPEN:
                self._roster.forget(member)

    def _check(self, request: JoinRequest) -> Recipe:
        """Refuse counts and columns that do not fit the run; return the recipe with these columns."""
        rules, name, schema = self._rules, request.name, request.schema
        _check_counts(request)
        if schema and self._roster.in_order() and not self._roster.recipe.features:
            raise MismatchError(f"{name!r} has named columns, but clients with unnamed columns have joined")
        if schema and rules.in_order and not rules.features:
            raise MismatchError(
                "vectors of this run's problem rely on the order of the columns, and yours have names: the coordinator "
                "must list them (data.features)"
            )
        recipe = agree(self._roster.recipe, schema, name, rules.features)
        width = recipe.width(request.columns)
        columns = rules.columns or next((member.width for member in self._roster.in_order()), None)
        if request.columns == 0 or columns not in {None, width}:
            raise MismatchError(
                f"{name!r} has {width} columns, but this run has {columns or 'at least one'}"
                + (" (both with the intercept)" if recipe.intercept else "")
            )
        try:
            rules.check_columns(width)
        except InputError as error:  # it is about H, which clients must not learn
            _log.warning("%s client=%s", error, name)
            raise MismatchError(f"{width} columns do not fit this run; its coordinator's log says why") from None
        return recipe


def _check_counts(request: JoinRequest) -> None:
    name = request.name
    if request.protocol != PROTOCOL:
        raise MismatchError(
            f"your client speaks protocol version {request.protocol} and this server version {PROTOCOL}; "
            "install the same version of fism on both sides"
        )
    if request.rows == 0 or request.virtual_clients == 0 or request.virtual_clients > request.rows:
        raise MismatchError(
            f"{name!r} has {request.rows} rows for {request.virtual_clients} virtual clients; each needs a row"
        )
    if request.rows > MOST_ROWS or request.columns > _MOST_COLUMNS:
        raise MismatchError(
            f"{name!r} claims {request.rows} rows and {request.columns} columns, which exceeds the limits of "
            f"{MOST_ROWS} and {_MOST_COLUMNS}"
        )
    if request.schema and len(request.schema) != request.columns:
        raise ContractError(f"{request.columns} columns with {len(request.schema)} names")


def _check_again(known: Member, request: JoinRequest, *, proven: bool) -> None:
    """Refuse a client that comes back but is another one, or has other data."""
    same = secrets.compare_digest(known.token, request.token)
    if known.connected and not same and not proven:
        raise NameTakenError(f"a client called {known.name!r} is already connected; choose another name")
    if (known.rows, known.columns, known.virtual_clients) != (request.rows, request.columns, request.virtual_clients):
        raise MismatchError(
            f"{known.name!r} joined with {known.rows} rows in {known.virtual_clients} virtual clients, and comes back "
            f"with {request.rows} in {request.virtual_clients}; come back with the same data"
        )
    if same and known.excluded:
        raise NotAllowedError(f"{known.name!r} is excluded: {known.excluded}")


def _admit_again(known: Member, request: JoinRequest) -> Member:
    if not secrets.compare_digest(known.token, request.token):  # a new process: the old token is void
        known.token, known.excluded, known.violations = secrets.token_bytes(16), "", 0
    return known
