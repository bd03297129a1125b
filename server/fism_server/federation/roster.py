"""Who is in a run: names, tokens, shapes. No gRPC here."""

from __future__ import annotations

import logging
import secrets
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from fism_common.data.columns import Column, Recipe, agree, read_columns
from fism_common.errors import (
    ContractError,
    InputError,
    MismatchError,
    NameTakenError,
    NotAllowedError,
    NotJoinedError,
)
from fism_common.wire.codec import PROTOCOL
from fism_server.federation.acceptance import MOST_ROWS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fism_common.wire.pb import federation_pb2 as pb
    from fism_server.net.link import Link

_log = logging.getLogger(__name__)
_LONGEST_NAME = 64
_MOST_COLUMNS = 2**32
_SECONDS_TO_OPEN = 120.0


@dataclass(slots=True, eq=False)
class Member:
    """A client that was let in."""

    name: str
    rows: int
    columns: int
    """Of its data."""
    shards: int
    width: int = 0
    """The columns of the model."""
    token: bytes = field(default_factory=lambda: secrets.token_bytes(16))
    joined: float = field(default_factory=time.monotonic)
    digest: bytes = b""
    """Of its shard, once a stream was opened."""
    link: Link | None = None
    """Its open stream; None while it has none."""
    away_since: float | None = None
    """When it was lost, by the monotonic clock; None while it has a stream, and before it had one."""
    offences: int = 0
    put_out: str = ""
    """Why it was put out, until it is started anew."""


class Members:
    """The clients of one run."""

    def __init__(  # noqa: PLR0913
        self,
        expected: int | Sequence[str],
        columns: int | None,
        check_columns: Callable[[int], None] = lambda _: None,
        *,
        allowed: Sequence[str] | None = None,
        recipe: Recipe = Recipe(),  # noqa: B008  # it cannot be changed
        features: Sequence[str] = (),
        in_order: bool = False,
    ) -> None:
        """Expect so many clients, or these names; ``columns`` of the model None lets the first client decide.

        ``recipe`` is how rows are made of their columns, whose names are ``features``, or those of the first client;
        ``in_order`` if vectors of the problem count on the order that these have.

        ``check_columns`` raises InputError for a number of columns that the problem cannot have; ``allowed`` are the
        names that are let in, None for all.
        """
        self._allowed = None if allowed is None else frozenset(allowed)
        self._columns, self._check_columns = columns, check_columns
        self._recipe, self._features, self._in_order = recipe, tuple(features), in_order
        self._agreed: Recipe | None = None
        self._names = None if isinstance(expected, int) else list(expected)
        self.expected = expected if isinstance(expected, int) else len(expected)
        self._by_name: dict[str, Member] = {}
        self._order: list[Member] | None = None
        self._left_out: dict[str, int] = {}
        self.begun = False
        """Whether the rounds have begun: from then on the same clients with the same data take part."""

    def restore(self, members: Sequence[Member], left_out: dict[str, int], features: tuple[Column, ...]) -> None:
        """Expect the clients of a run that had begun, in federation order, all of them away from now on."""
        now = time.monotonic()
        self._agreed = replace(self._recipe, features=features)
        for member in members:
            member.away_since, member.width = now, self._agreed.width(member.columns)
        self._by_name = {member.name: member for member in members}
        self._order, self._left_out, self.expected, self.begun = list(members), left_out, len(members), True

    def leave_out(self, members: Sequence[Member], round_: int) -> None:
        """Go on without these from round ``round_`` on."""
        for member in members:
            del self._by_name[member.name]
            self._left_out[member.name] = round_
        self.expected, self._order = self.expected - len(members), None

    def join(self, request: pb.JoinRequest, proven: str | None = None) -> Member:
        """Let a client in, or back in; raise a RefusedError that says why not.

        ``proven`` is the name in its certificate, if it has one.
        """
        self._check_name(request.name, proven)
        only = self._by_name.get(request.name) if len(self._by_name) == 1 and not self.begun else None
        if only is not None and only.link is None and not only.put_out:
            self._forget(only)  # a first try, with whatever columns, does not bind
        recipe = self.probe(request, proven)
        known = self._by_name.get(request.name)
        if known is not None and self._is_bound(known):
            return self._join_again(known, request)
        width = recipe.width(request.columns)
        member = Member(request.name, request.rows, request.columns, request.shards, width)
        self._by_name[member.name] = member
        self._order, self._agreed = None, recipe
        return member

    def probe(self, request: pb.JoinRequest, proven: str | None = None) -> Recipe:
        """Return the recipe that a client would get; raise a RefusedError that says why it cannot join as it is."""
        self._forget_vanished()
        self._check_name(request.name, proven)
        recipe = self._check(request)
        known = self._by_name.get(request.name)
        if known is None and request.name in self._left_out:
            since = self._left_out[request.name]
            raise NotAllowedError(f"{request.name!r} was away too long: the run went on without it in round {since}")
        if known is None and len(self._by_name) == self.expected:
            raise NotAllowedError(f"the run has its {self.expected} clients, and {request.name!r} is not one of them")
        if known is not None and self._is_bound(known):
            self._check_again(known, request, proven=proven is not None)
        return recipe

    def _is_bound(self, member: Member) -> bool:
        """Whether a member that joins again must be as it was."""
        return self.begun or member.link is not None or bool(member.put_out)

    @property
    def columns(self) -> int | None:
        """The columns of the model; None until the configuration or the first client has decided."""
        return self._columns or next((member.width for member in self._by_name.values()), None)

    @property
    def recipe(self) -> Recipe:
        """How rows are made: with the columns of the first client, once there is one."""
        return self._agreed or self._recipe

    def revoke(self) -> list[str]:
        """Put out the clients of a resumed run whose names are no longer allowed; return these."""
        allowed = self._allowed
        revoked = [one for one in self.in_order() if allowed is not None and one.name not in allowed]
        for member in revoked:
            member.put_out = "no longer allowed"
        return [member.name for member in revoked]

    def check_member(self, token: bytes, proven: str | None) -> None:
        """Refuse a caller that is not one of the clients: by its certificate, else by the token that it was given."""
        member = self._by_token(token) if proven is None else self._by_name.get(proven)
        if member is None:
            raise NotAllowedError("only clients of the run are told of it")
        self._check_name(member.name, proven)

    def open(self, token: bytes, digest: bytes, proven: str | None = None) -> Member:
        """Return the member that the token was given to, if it has the rows that it began with."""
        member = self._by_token(token)
        if member is None:
            raise NotJoinedError("this token is not, or no longer, of this run; join first")
        self._check_name(member.name, proven)
        if member.put_out:
            raise NotAllowedError(f"{member.name!r} is put out: {member.put_out}")
        if self.begun and member.digest not in {b"", digest}:
            raise MismatchError(f"{member.name!r} began the run with other rows; come back with the same data")
        member.digest = digest
        return member

    def in_order(self) -> list[Member]:
        """Return the members in federation order: as listed, else by the bytes of their names."""
        if self._order is None and self._names is not None:
            self._order = [self._by_name[name] for name in self._names if name in self._by_name]
        elif self._order is None:
            self._order = sorted(self._by_name.values(), key=lambda member: member.name.encode())
        return self._order

    def present(self) -> list[Member]:
        """Return those with an open stream, in federation order."""
        return [member for member in self.in_order() if member.link is not None]

    def missing(self) -> list[str]:
        """Return the names that are not here; for clients that never joined and have no name, how many."""
        away = [member.name for member in self.in_order() if member.link is None]
        if self.begun:
            return away
        if self._names is not None:
            return [*away, *(name for name in self._names if name not in self._by_name)]
        unknown = self.expected - len(self._by_name)
        return [*away, *([f"{unknown} more"] if unknown else [])]

    def _forget_vanished(self) -> None:
        """Before the rounds begin, free the places of those that joined long ago and never opened a stream."""
        if self.begun:
            return
        now = time.monotonic()
        for member in list(self._by_name.values()):
            if member.link is None and now - member.joined > _SECONDS_TO_OPEN:
                self._forget(member)

    def _forget(self, member: Member) -> None:
        """Free a member's place. Columns stay as others were told of them; after the last, the next decides."""
        del self._by_name[member.name]
        self._order = None
        if not self._by_name:
            self._agreed = None

    def _by_token(self, token: bytes) -> Member | None:
        return next((one for one in self._by_name.values() if secrets.compare_digest(one.token, token)), None)

    def _check_name(self, name: str, proven: str | None) -> None:
        """Refuse a name that is another's, or not on the list, before anything else of a caller is looked at."""
        if not name or len(name) > _LONGEST_NAME or not name.isprintable():
            raise ContractError(f"a client's name has 1 to {_LONGEST_NAME} printable characters")
        if proven is not None and name != proven:
            raise NotAllowedError(f"your certificate is of {proven!r}: you cannot take part as {name!r}")
        if self._allowed is not None and name not in self._allowed:
            raise NotAllowedError(f"{name!r} is not allowed in this run; ask its coordinator to list the name")
        if self._names is not None and name not in self._names:
            raise NotAllowedError(f"{name!r} is not a client of this run; ask its coordinator to list the name")

    def _check(self, request: pb.JoinRequest) -> Recipe:
        name = request.name
        if request.protocol != PROTOCOL:
            raise MismatchError(
                f"you speak version {request.protocol} of the protocol and this server version {PROTOCOL}; "
                "install the same version of fism at both ends"
            )
        if request.rows == 0 or request.shards == 0 or request.shards > request.rows:
            raise MismatchError(f"{name!r} has {request.rows} rows in {request.shards} shards; each shard needs a row")
        if request.rows > MOST_ROWS or request.columns > _MOST_COLUMNS:
            raise MismatchError(f"{name!r} has {request.rows} rows and {request.columns} columns, more than can be")
        schema, known = read_columns(request.schema), self.recipe
        if schema and len(schema) != request.columns:
            raise ContractError(f"{request.columns} columns with {len(schema)} names")
        if schema and self._by_name and not known.features:
            raise MismatchError(f"{name!r} has columns with names, and others have joined whose columns have none")
        if schema and self._in_order and not self._features:
            raise MismatchError(
                "vectors of this run's problem count on an order of columns, and yours have names: its coordinator "
                "must list them (data.features)"
            )
        recipe = agree(known, schema, name, self._features)
        width, columns = recipe.width(request.columns), self.columns
        if request.columns == 0 or columns not in {None, width}:
            raise MismatchError(
                f"{name!r} has {width} columns, but this run has {columns or 'at least one'}"
                + (" (both with the intercept)" if recipe.intercept else "")
            )
        try:
            self._check_columns(width)
        except InputError as error:  # it tells of H, which is not for clients
            _log.warning("%s client=%s", error, name)
            raise MismatchError(f"{width} columns do not fit this run; its coordinator knows why") from None
        return recipe

    @staticmethod
    def _check_again(known: Member, request: pb.JoinRequest, *, proven: bool) -> None:
        """Refuse one who comes back, but is another, or has other data."""
        same = secrets.compare_digest(known.token, request.token)
        if known.link is not None and not same and not proven:
            raise NameTakenError(f"a client called {known.name!r} is connected already; choose another name")
        if (known.rows, known.columns, known.shards) != (request.rows, request.columns, request.shards):
            raise MismatchError(
                f"{known.name!r} joined with {known.rows} rows in {known.shards} shards, and comes back with "
                f"{request.rows} in {request.shards}; come back with the same data"
            )
        if same and known.put_out:
            raise NotAllowedError(f"{known.name!r} is put out: {known.put_out}")

    @staticmethod
    def _join_again(known: Member, request: pb.JoinRequest) -> Member:
        if not secrets.compare_digest(
            known.token, request.token
        ):  # a new process: the old one's token is void, and its offences are
            known.token, known.put_out, known.offences = secrets.token_bytes(16), "", 0
        return known
