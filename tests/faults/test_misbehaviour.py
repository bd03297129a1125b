"""A client that does not keep to the contract: nothing of it reaches the mean, and the honest ones finish."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from pathlib import Path

import grpc
import numpy as np
import pytest
from google.protobuf.message import DecodeError

import fism
from fism_common.joining import PROTOCOL
from fism_common.sums.grid import grid_of
from fism_common.wire.pb import federation_pb2 as pb
from fism_common.wire.slices import pack

from ..federation.harness import BOUND, assert_same_bytes, client, end, events, facts, federation, server
from .double import PATIENCE, Double

Change = Callable[[pb.Answer], None]


def put(**fields: object) -> Change:
    """Return what changes fields of an answer."""

    def change(reply: pb.Answer) -> None:
        for name, value in fields.items():
            if isinstance(value, pb.Evaluation):
                reply.evaluation.CopyFrom(value)
            elif isinstance(value, list):
                reply.inner[:] = value
            else:
                setattr(reply, name, value)

    return change


GRID = grid_of(fism.Box(-BOUND, BOUND), 5, 2)
BAD: dict[str, tuple[Change, str]] = {
    "the smallest word": (put(points=pack(np.full(5, -(2**63)))), "x is outside X"),
    "F not finite": (put(inner=[math.inf]), "F_i is inf"),
    "F missing": (put(inner=[]), "F_i has 0 parts"),
    "F in too many parts": (put(inner=[1.0] * 41), "F_i has 41 parts"),
    "outside X": (put(points=pack(GRID.words(np.full(5, 2.001)))), "x is outside X"),
    "too long": (put(points=pack(np.zeros(6))), "does not continue the vector"),
    "half an entry": (put(points=b"\0" * 39), "does not continue the vector"),
    "evaluation": (put(evaluation=pb.Evaluation(rows=3, right=4)), "4 of 3 held-out rows"),
    "empty evaluation": (put(evaluation=pb.Evaluation(rows=0)), "None of 0 held-out rows"),
    "sum that would overflow": (put(inner=[1.7e308]), "F_i is 1.7e"),
    "huge evaluation": (put(evaluation=pb.Evaluation(rows=2**63)), "held-out rows as correct"),
}
STRAY: dict[str, Change] = {
    "another question": put(number=7),
    "too early": put(number=3),
    "another attempt": put(attempt=2),
    "question 0": put(number=0, attempt=1),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_answer_is_refused_and_asked_again(kind: str, tmp_path: Path) -> None:
    """The client is told why; its next answer is used."""
    given = federation(tmp_path, 2)
    with server(given.config, tmp_path / "run") as running:
        honest, double = client(running.address, "c0", given.files[0]), Double(running.address, "c1", given.files[1])
        double.open()
        order = double.answer_until(2)
        bad = double.right_answer(order)
        change, reason = BAD[kind]
        change(bad.answer)
        double.send(bad)
        refused = double.receive().refused
        assert reason in refused.reason
        assert (refused.round, refused.excluded) == (2, False)
        assert double.receive().question == order
        double.send(double.right_answer(order))
        assert double.finish().finished
        assert (end(honest)[0], running.end()) == (0, 0)
        double.close()
    assert_same_bytes(tmp_path / "run", given.solve())
    assert events(tmp_path / "run") == [("rejected", "c1")]


@pytest.mark.parametrize("kind", [*STRAY, "duplicate", "late", "garbage", "second opening", "empty"])
def test_stray_message_is_refused_and_has_no_effect(kind: str, tmp_path: Path) -> None:
    """The question that is open stays open."""
    given = federation(tmp_path, 2)
    with server(given.config, tmp_path / "run") as running:
        honest, double = client(running.address, "c0", given.files[0]), Double(running.address, "c1", given.files[1])
        double.open()
        order = double.answer_until(2)
        right = double.right_answer(order)
        stray: pb.ClientMessage | bytes = pb.ClientMessage()
        match kind:
            case "duplicate":
                double.send(right)
                stray = double.right_answer(order)
                stray.answer.points = pack(np.zeros(5))
            case "late":
                stray = double.right_answer(order)
                stray.answer.number = 1
            case "garbage":
                stray = b"\xff\xff\xff"
            case "second opening":
                stray = pb.ClientMessage(opening=pb.Opening(token=b"x"))
            case "empty":
                stray = pb.ClientMessage(answer=pb.Answer())
            case _:
                stray = double.right_answer(order)
                STRAY[kind](stray.answer)
        double.send(stray)
        if kind != "duplicate":
            assert not double.receive().refused.excluded
            double.send(right)
        assert double.finish().finished
        assert (end(honest)[0], running.end()) == (0, 0)
        double.close()
    assert_same_bytes(tmp_path / "run", given.solve())
    assert events(tmp_path / "run") == [("rejected", "c1")]


def test_answer_that_breaks_off_is_noticed(tmp_path: Path) -> None:
    """Another one begins where a slice was to come."""
    given = federation(tmp_path, 2)
    with server(given.config, tmp_path / "run") as running:
        honest, double = client(running.address, "c0", given.files[0]), Double(running.address, "c1", given.files[1])
        double.open()
        order = double.answer_until(2)
        half, right = double.right_answer(order), double.right_answer(order)
        half.answer.points = half.answer.points[:16]
        double.send(half)
        double.send(right)
        assert "2 of 5 entries have arrived" in double.receive().refused.reason
        assert double.receive().question == order
        double.send(right)
        assert double.finish().finished
        assert (end(honest)[0], running.end()) == (0, 0)
        double.close()
    assert_same_bytes(tmp_path / "run", given.solve())


def test_third_violation_excludes_a_client(tmp_path: Path) -> None:
    """With the reason; started anew it may come back, and then all goes well."""
    given = federation(tmp_path, 2)
    with server(given.config, tmp_path / "run") as running:
        honest, double = client(running.address, "c0", given.files[0]), Double(running.address, "c1", given.files[1])
        double.open()
        double.answer_until(2)
        for _ in range(3):
            double.send(b"\xff")
        said = [double.receive().refused for _ in range(3)]
        assert [one.excluded for one in said] == [False, False, True]
        assert "3 messages were rejected" in said[2].reason
        with pytest.raises(StopIteration):
            double.receive()
        running.wait_for("excluded: 3 messages were rejected.*client=c1")
        double.open()
        assert double.finish().finished
        assert (end(honest)[0], running.end()) == (0, 0)
        double.close()
    assert_same_bytes(tmp_path / "run", given.solve())
    assert [kind for kind, _ in events(tmp_path / "run")] == [
        "rejected",
        "rejected",
        "rejected",
        "excluded",
        "returned",
    ]


def test_value_at_the_solution_that_is_not_finite_is_asked_again(tmp_path: Path) -> None:
    """F there is checked as in every round."""
    given = federation(tmp_path, 1, rounds=1)
    with server(given.config, tmp_path / "run") as running:
        double = Double(running.address, "c0", given.files[0])
        double.open()
        double.send(double.right_answer(double.receive().question))
        solution = double.receive().question
        bad = double.right_answer(solution)
        bad.answer.inner[:] = [math.nan]
        double.send(bad)
        assert "F_i is nan" in double.receive().refused.reason
        assert double.receive().question == solution
        double.send(double.right_answer(solution))
        assert double.finish().finished
        assert running.end() == 0
        double.close()
    assert_same_bytes(tmp_path / "run", given.solve())


def test_goodbye_of_a_client_cannot_pass_for_the_servers_words(tmp_path: Path) -> None:
    """It is told on one line."""
    given = federation(tmp_path, 1)
    with server(given.config, tmp_path / "run") as running:
        double = Double(running.address, "c0", given.files[0])
        double.open()
        double.receive()
        double.send(pb.ClientMessage(leaving=pb.Leaving(reason="bye\nWARNING the run is over")))
        running.wait_for(r"left: 'bye\\nWARNING the run is over' client=c0")
        double.close()


def test_new_process_of_a_client_that_has_answered_gets_the_solution(tmp_path: Path) -> None:
    """While another one is still waited for."""
    given = federation(tmp_path, 2, rounds=1)
    with server(given.config, tmp_path / "run") as running:
        slow, double = (Double(running.address, f"c{i}", given.files[i]) for i in range(2))
        for one in (slow, double):
            one.open()
        for one in (slow, double):
            one.send(one.right_answer(one.receive().question))
        solution = slow.receive().question
        double.send(double.right_answer(double.receive().question))
        double.close()
        running.wait_for("lost: the connection is lost client=c1")
        again = client(running.address, "c1", given.files[1], "--save", tmp_path / "mine.npz")
        running.wait_for("returned: .*client=c1")
        slow.send(slow.right_answer(solution))
        assert slow.finish().finished
        assert (end(again)[0], running.end()) == (0, 0)
        slow.close()
    with np.load(tmp_path / "mine.npz") as mine:
        assert mine["x"].tobytes() == given.solve().x.tobytes()


def mutated(raw: bytes, rng: random.Random) -> bytes:
    """Return a message with some bytes changed, cut out or put in; or any bytes at all."""
    if rng.random() < 0.2:
        return rng.randbytes(rng.randrange(200))
    changed = bytearray(raw)
    for _ in range(rng.randrange(1, 6)):
        at = rng.randrange(len(changed) + 1)
        match rng.randrange(3):
            case 0:
                changed[at : at + 1] = rng.randbytes(1)
            case 1:
                del changed[at : at + rng.randrange(9)]
            case 2:
                changed[at:at] = rng.randbytes(rng.randrange(9))
    return bytes(changed)


def is_as_good_as_right(raw: bytes, right: pb.Answer) -> bool:
    """Whether nothing in a message shows that it is not the client's own: another point of X, say."""
    try:
        reply = pb.ClientMessage.FromString(raw).answer
    except DecodeError:
        return False
    size = len(right.points)
    same = (reply.number, reply.attempt, reply.offset, len(reply.points)) == (right.number, right.attempt, 0, size)
    if not same or len(reply.inner) != 1:
        return False
    x = GRID.values(np.frombuffer(reply.points, np.int64))
    return bool(np.all(np.abs(x) <= 2.001)) and math.isfinite(reply.inner[0])


def resident(pid: int) -> int:
    """Return a process's memory in bytes."""
    return 4096 * int(Path(f"/proc/{pid}/statm").read_text().split()[1])


@pytest.mark.long
def test_ten_thousand_mutated_messages_do_no_harm(tmp_path: Path) -> None:
    """Against Join, against streams without a name, and as a member: the bytes are right, the memory stays flat."""
    given = federation(tmp_path, 2, rounds=400)
    rng = random.Random(8)  # noqa: S311  # noise, not secrets
    with server(given.config, tmp_path / "run") as running:
        honest, double = client(running.address, "c0", given.files[0]), Double(running.address, "c1", given.files[1])
        double.open()
        order = double.answer_until(2)
        strangers = grpc.insecure_channel(running.address)
        joins: grpc.UnaryUnaryMultiCallable[bytes, bytes] = strangers.unary_unary("/fism.v1.Federation/Join")
        rounds: grpc.StreamStreamMultiCallable[bytes, bytes] = strangers.stream_stream("/fism.v1.Federation/Round")
        wish = pb.JoinRequest(
            protocol=PROTOCOL, name="c1", rows=7, columns=5, virtual_clients=1, token=b"t" * 16
        ).SerializeToString()
        first = pb.ClientMessage(opening=pb.Opening(token=b"t" * 16)).SerializeToString()
        sizes = []
        for i in range(4000):
            with pytest.raises(grpc.RpcError):
                joins(mutated(wish, rng), timeout=PATIENCE)
            with pytest.raises(grpc.RpcError):
                list(rounds(iter([mutated(first, rng)]), timeout=PATIENCE))
            if i % 2000 == 1000:
                sizes.append(resident(running.process.pid))
        strangers.close()
        answer = double.right_answer(order)
        for _ in range(700):
            for message in (mutated(answer.SerializeToString(), rng) for _ in range(3)):
                if not is_as_good_as_right(message, answer.answer):
                    double.send(message)
            for _ in range(3):  # so that it is excluded, whatever became of the others
                double.send(b"\xff")
            double.drain()
            double.open()
        sizes.append(resident(running.process.pid))
        assert double.finish().finished
        assert (end(honest)[0], running.end()) == (0, 0)
        double.close()
    assert max(sizes) - min(sizes) < 20e6
    assert_same_bytes(tmp_path / "run", given.solve())
    ((refused,),) = facts(tmp_path / "run", "SELECT sum(count) FROM events WHERE kind = 'refused'")
    assert refused >= 8000
