"""Who is let in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from fism_common.data.columns import Column, Kind, Recipe
from fism_common.errors import (
    ContractError,
    MismatchError,
    NameTakenError,
    NotAllowedError,
    NotJoinedError,
    ProblemError,
)
from fism_common.joining import PROTOCOL, JoinRequest
from fism_server.federation.admission import Admission, AdmissionRules
from fism_server.federation.roster import Member, Roster


def request(
    name: str = "a", rows: int = 3, columns: int = 2, virtual_clients: int = 1, token: bytes = b""
) -> JoinRequest:
    """Return a request to join."""
    return JoinRequest(name=name, rows=rows, columns=columns, virtual_clients=virtual_clients, token=token)


class Federation(Admission):
    """Admission to a roster that is empty at first."""

    def __init__(self, expected: int | Sequence[str], columns: int | None = None, **rules: Any) -> None:  # noqa: ANN401
        """Expect so many clients, or these names."""
        self.roster = Roster(expected, Recipe())
        names = None if isinstance(expected, int) else expected
        super().__init__(AdmissionRules(names=names, columns=columns, **rules), self.roster)


def connect(member: Member) -> Member:
    """Give a member a stream."""
    member.connected = True
    return member


def test_order_is_of_the_list_or_by_bytes() -> None:
    """Whoever came first."""
    listed, counted = Federation(["z", "a", "m"]), Federation(3)
    for members in (listed, counted):
        for name in ("m", "z", "a"):
            members.join(request(name), 0.0)
    assert [member.name for member in listed.roster.in_order()] == ["z", "a", "m"]
    assert [member.name for member in counted.roster.in_order()] == ["a", "m", "z"]


def test_tokens_are_different_and_lead_to_their_member() -> None:
    """And to nobody else."""
    members = Federation(2)
    a, b = members.join(request("a"), 0.0), members.join(request("b"), 0.0)
    assert a.token != b.token
    assert members.open(a.token, b"") is a
    with pytest.raises(NotJoinedError):
        members.open(b"", b"")


def test_client_that_comes_back_with_other_rows_is_refused() -> None:
    """Of the same number: their digest tells."""
    members = Federation(1)
    first = members.join(request("a"), 0.0)
    members.open(first.token, b"digest")
    members.roster.begun = True
    with pytest.raises(MismatchError, match="'a' began the run with other rows"):
        members.open(members.join(request("a"), 0.0).token, b"another")


def test_client_that_the_run_went_on_without_is_refused() -> None:
    """With the round; the others have their places."""
    members = Federation(2)
    a, b = members.join(request("a"), 0.0), members.join(request("b"), 0.0)
    members.roster.begun = True
    members.roster.drop([a], 7)
    assert (members.roster.in_order(), members.roster.expected) == ([b], 1)
    with pytest.raises(NotAllowedError, match="it was dropped in round 7"):
        members.join(request("a"), 0.0)
    with pytest.raises(NotAllowedError, match="has its 1 clients"):
        members.join(request("c"), 0.0)


def test_refused_client_takes_no_place_and_learns_nothing_of_the_outer_objective() -> None:
    """Columns that H cannot have: said to the coordinator alone."""

    def check(columns: int) -> None:
        if columns < 5:
            raise ProblemError("a group names column 4")

    members = Federation(1, check_columns=check)
    with pytest.raises(MismatchError, match="2 columns do not fit this run") as refused:
        members.join(request("a", columns=2), 0.0)
    assert "group" not in str(refused.value)
    assert members.join(request("b", columns=5), 0.0).columns == 5


def test_stream_of_a_client_that_is_excluded_is_refused() -> None:
    """With its old token, without a join."""
    members = Federation(1)
    first = members.join(request("a"), 0.0)
    first.excluded = "it lied"
    with pytest.raises(NotAllowedError, match="'a' is excluded: it lied"):
        members.open(first.token, b"")


def test_client_started_anew_has_a_clean_slate() -> None:
    """The process that was put out is told why; a new one has somebody who has seen to it."""
    members = Federation(1)
    first = members.join(request("a"), 0.0)
    members.roster.begun, first.violations, first.excluded = True, 3, "it lied"
    with pytest.raises(NotAllowedError, match="'a' is excluded: it lied"):
        members.join(request("a", token=first.token), 0.0)
    assert not members.join(request("a"), 0.0).excluded
    assert first.violations == 0


def test_taken_name_is_refused_while_its_client_is_connected() -> None:
    """Unless the token shows that it is the same client, whose old stream may be half open."""
    members = Federation(2)
    first = connect(members.join(request("a"), 0.0))
    with pytest.raises(NameTakenError, match="'a' is already connected"):
        members.join(request("a"), 0.0)
    assert members.join(request("a", token=first.token), 0.0) is first


def test_lost_client_comes_back_with_the_same_data() -> None:
    """As a new process, without its token: it gets a new one, and the old one is void."""
    members = Federation(1)
    first = members.join(request("a"), 0.0)
    members.roster.begun, old = True, first.token
    with pytest.raises(MismatchError, match="comes back with 4 in 1"):
        members.join(request("a", rows=4), 0.0)
    assert members.join(request("a"), 0.0) is first
    assert first.token != old


def test_client_that_never_connected_may_come_with_other_data_before_the_rounds_begin() -> None:
    """A first try with the wrong file does not bind."""
    members = Federation(1)
    members.join(request("a", rows=3), 0.0)
    assert members.join(request("a", rows=9), 0.0).rows == 9
    assert members.join(request("a", columns=2), 0.0).columns == 2


def test_first_client_decides_the_columns_if_the_configuration_does_not() -> None:
    """And the others must have as many."""
    members = Federation(2)
    members.join(request("a", columns=5), 0.0)
    with pytest.raises(MismatchError, match="'b' has 6 columns, but this run has 5"):
        members.join(request("b", columns=6), 0.0)
    with pytest.raises(MismatchError, match="'a' has 2 columns, but this run has 7"):
        Federation(1, 7).join(request(), 0.0)


def test_full_run_takes_nobody_else() -> None:
    """Where names are not listed."""
    members = Federation(1)
    connect(members.join(request("a"), 0.0))
    with pytest.raises(NotAllowedError, match="has its 1 clients"):
        members.join(request("b"), 0.0)


def test_missing_clients_are_named_or_counted() -> None:
    """Those who joined by name, those who never did by number."""
    members = Federation(3)
    connect(members.join(request("a"), 0.0))
    members.join(request("b"), 0.0)
    assert members.roster.missing() == ["b", "1 more"]
    assert Federation(["x", "y"]).roster.missing() == ["x", "y"]


def test_columns_of_the_first_client_hold_as_long_as_anybody_is_there() -> None:
    """Others were given them; when nobody is left, the next client decides."""
    members = Federation(3)

    def join(now: float, name: str, *columns: str) -> list[str]:
        schema = tuple(Column(column, Kind.NUMBER) for column in columns)
        members.join(JoinRequest(name=name, rows=3, columns=len(columns), schema=schema), now)
        return [column.name for column in members.roster.recipe.features]

    assert join(0.0, "a", "age", "bmi") == ["age", "bmi"]
    assert join(100.0, "b", "bmi", "age") == ["age", "bmi"]
    assert join(150.0, "c", "bmi", "age") == ["age", "bmi"]  # a has vanished
    assert join(500.0, "d", "bmi", "age") == ["bmi", "age"]


@pytest.mark.parametrize(
    ("change", "error", "reason"),
    [
        ({"protocol": PROTOCOL + 1}, MismatchError, "install the same version of fism on both sides"),
        ({"rows": 0}, MismatchError, "0 rows for 1 virtual clients"),
        ({"virtual_clients": 4}, MismatchError, "3 rows for 4 virtual clients"),
        ({"rows": 2**49}, MismatchError, "exceeds the limits"),
        ({"columns": 2**33}, MismatchError, "exceeds the limits"),
        ({"schema": (Column("x", Kind.NUMBER),)}, ContractError, "2 columns with 1 names"),
        ({"name": ""}, ContractError, "1 to 64 printable characters"),
        ({"name": "x" * 65}, ContractError, "1 to 64 printable characters"),
        ({"name": "a\nb"}, ContractError, "1 to 64 printable characters"),
    ],
)
def test_impossible_request_is_refused(change: dict[str, Any], error: type[Exception], reason: str) -> None:
    """Before it takes a place."""
    members = Federation(1)
    with pytest.raises(error, match=reason):
        members.join(replace(request(), **change), 0.0)
    assert members.roster.in_order() == []


def test_certificate_decides_the_name() -> None:
    """And the coordinator's list decides who is allowed."""
    members = Federation(2, allowed=["a", "b"])
    with pytest.raises(NotAllowedError, match="your certificate is for 'b': you cannot join as 'a'"):
        members.join(request("a"), 0.0, proven="b")
    with pytest.raises(NotAllowedError, match="'c' is not allowed in this run"):
        members.join(request("c"), 0.0, proven="c")
    member = members.join(request("a"), 0.0, proven="a")
    with pytest.raises(NotAllowedError, match="your certificate is for 'b'"):
        members.open(member.token, b"", proven="b")


def test_revoked_client_of_a_resumed_run_is_excluded() -> None:
    """Its name is no longer on the list."""
    members = Federation(2, allowed=["a"])
    members.roster.restore([Member("a", 3, 2, 1), Member("b", 3, 2, 1)], {}, (), now=5.0)
    assert members.revoke() == ["b"]
    assert [(one.name, one.excluded, one.absent_since) for one in members.roster.in_order()] == [
        ("a", "", 5.0),
        ("b", "no longer allowed", 5.0),
    ]
