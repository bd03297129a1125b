"""Who is let in."""

from __future__ import annotations

import pytest

from fism_common.errors import MismatchError, NameTakenError, NotAllowedError, NotJoinedError, ProblemError
from fism_common.wire.codec import PROTOCOL
from fism_common.wire.pb import federation_pb2 as pb
from fism_server.federation.roster import Member, Members
from fism_server.net.link import Link


def request(name: str = "a", rows: int = 3, columns: int = 2, shards: int = 1, token: bytes = b"") -> pb.JoinRequest:
    """Return a wish to join."""
    return pb.JoinRequest(protocol=PROTOCOL, name=name, rows=rows, columns=columns, shards=shards, token=token)


def connect(member: Member) -> Member:
    """Give a member a stream."""
    member.link = Link(member, lambda: None)
    return member


def test_order_is_of_the_list_or_by_bytes() -> None:
    """Whoever came first."""
    listed, counted = Members(["z", "a", "m"], None), Members(3, None)
    for members in (listed, counted):
        for name in ("m", "z", "a"):
            members.join(request(name))
    assert [member.name for member in listed.in_order()] == ["z", "a", "m"]
    assert [member.name for member in counted.in_order()] == ["a", "m", "z"]


def test_tokens_are_different_and_lead_to_their_member() -> None:
    """And to nobody else."""
    members = Members(2, None)
    a, b = members.join(request("a")), members.join(request("b"))
    assert a.token != b.token
    assert members.open(a.token, b"") is a
    with pytest.raises(NotJoinedError):
        members.open(b"", b"")


def test_client_that_comes_back_with_other_rows_is_refused() -> None:
    """Of the same number: their digest tells."""
    members = Members(1, None)
    first = members.join(request("a"))
    members.open(first.token, b"digest")
    members.begun = True
    with pytest.raises(MismatchError, match="'a' began the run with other rows"):
        members.open(members.join(request("a")).token, b"another")


def test_client_that_the_run_went_on_without_is_refused() -> None:
    """With the round; the others have their places."""
    members = Members(2, None)
    a, b = members.join(request("a")), members.join(request("b"))
    members.begun = True
    members.leave_out([a], 7)
    assert (members.in_order(), members.expected) == ([b], 1)
    with pytest.raises(NotAllowedError, match="went on without it in round 7"):
        members.join(request("a"))
    with pytest.raises(NotAllowedError, match="has its 1 clients"):
        members.join(request("c"))


def test_refused_client_takes_no_place_and_learns_nothing_of_the_outer_objective() -> None:
    """Columns that H cannot have: said to the coordinator alone."""

    def check(columns: int) -> None:
        if columns < 5:
            raise ProblemError("a group names column 4")

    members = Members(1, None, check)
    with pytest.raises(MismatchError, match="2 columns do not fit this run") as refused:
        members.join(request("a", columns=2))
    assert "group" not in str(refused.value)
    assert members.join(request("b", columns=5)).columns == 5


def test_stream_of_a_client_that_is_put_out_is_refused() -> None:
    """With its old token, without a join."""
    members = Members(1, None)
    first = members.join(request("a"))
    first.put_out = "it lied"
    with pytest.raises(NotAllowedError, match="'a' is put out: it lied"):
        members.open(first.token, b"")


def test_client_started_anew_has_a_clean_slate() -> None:
    """The process that was put out is told why; a new one has somebody who has seen to it."""
    members = Members(1, None)
    first = members.join(request("a"))
    members.begun, first.offences, first.put_out = True, 3, "it lied"
    with pytest.raises(NotAllowedError, match="'a' is put out: it lied"):
        members.join(request("a", token=first.token))
    assert not members.join(request("a")).put_out
    assert first.offences == 0


def test_taken_name_is_refused_while_its_client_is_connected() -> None:
    """Unless the token shows that it is the same client, whose old stream may be half open."""
    members = Members(2, None)
    first = connect(members.join(request("a")))
    with pytest.raises(NameTakenError, match="'a' is connected already"):
        members.join(request("a"))
    assert members.join(request("a", token=first.token)) is first


def test_lost_client_comes_back_with_the_same_data() -> None:
    """As a new process, without its token: it gets a new one, and the old one is void."""
    members = Members(1, None)
    first = members.join(request("a"))
    members.begun, old = True, first.token
    with pytest.raises(MismatchError, match="comes back with 4 in 1"):
        members.join(request("a", rows=4))
    assert members.join(request("a")) is first
    assert first.token != old


def test_client_that_never_connected_may_come_with_other_data_before_the_rounds_begin() -> None:
    """A first try with the wrong file does not bind."""
    members = Members(1, None)
    members.join(request("a", rows=3))
    assert members.join(request("a", rows=9)).rows == 9
    assert members.join(request("a", columns=2)).columns == 2


def test_first_client_decides_the_columns_if_the_configuration_does_not() -> None:
    """And the others must have as many."""
    members = Members(2, None)
    members.join(request("a", columns=5))
    with pytest.raises(MismatchError, match="'b' has 6 columns, but this run has 5"):
        members.join(request("b", columns=6))
    with pytest.raises(MismatchError, match="'a' has 2 columns, but this run has 7"):
        Members(1, 7).join(request())


def test_full_run_takes_nobody_else() -> None:
    """Where names are not listed."""
    members = Members(1, None)
    connect(members.join(request("a")))
    with pytest.raises(NotAllowedError, match="has its 1 clients"):
        members.join(request("b"))


def test_missing_clients_are_named_or_counted() -> None:
    """Those who joined by name, those who never did by number."""
    members = Members(3, None)
    connect(members.join(request("a")))
    members.join(request("b"))
    assert members.missing() == ["b", "1 more"]
    assert Members(["x", "y"], None).missing() == ["x", "y"]


def test_columns_of_the_first_client_hold_as_long_as_anybody_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others were told of them; when nobody is left, whoever comes next decides."""
    clock = [0.0]
    monkeypatch.setattr("fism_server.federation.roster.time.monotonic", lambda: clock[0])
    members = Members(3, None)

    def join(name: str, *columns: str) -> list[str]:
        wish = request(name, columns=len(columns))
        wish.schema.extend(pb.Column(name=column, kind="number") for column in columns)
        members.join(wish).joined = clock[0]
        return [column.name for column in members.recipe.features]

    assert join("a", "age", "bmi") == ["age", "bmi"]
    clock[0] = 100.0
    assert join("b", "bmi", "age") == ["age", "bmi"]
    clock[0] = 150.0  # a has vanished
    assert join("c", "bmi", "age") == ["age", "bmi"]
    clock[0] = 500.0
    assert join("d", "bmi", "age") == ["bmi", "age"]
