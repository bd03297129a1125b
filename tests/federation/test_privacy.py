"""H stays private: of the outer objective, a client receives one subgradient a round."""

from __future__ import annotations

import struct
from pathlib import Path

import grpc
import numpy as np

import fism
from fism_common.joining import PROTOCOL
from fism_common.wire.pb import federation_pb2 as pb
from fism_common.wire.pb import federation_pb2_grpc as rpc

from .harness import client, end, federation, server
from .tap import Tap

# All that a server can say to a client, and all that a client can say back. A new field needs a place here.
WORDS = {
    "JoinReply": ["run_id", "token", "loss", "constraint", "round", "recipe", "version"],
    "Variant": ["kind", "numbers", "vectors"],
    "Recipe": ["features", "levels", "unknown", "missing", "fill", "intercept", "standardise"],
    "Levels": ["level"],
    "ServerMessage": ["setup", "question", "refused", "goodbye"],
    "Setup": ["offset", "vectors"],
    "Question": ["number", "attempt", "kind", "round", "gamma", "weight", "evaluate", "summands", "offset", "x", "h"],
    "Refused": ["round", "reason", "excluded"],
    "Goodbye": ["finished", "reason"],
    "StatusReply": ["run_id", "round", "clients_present", "clients_expected"],
    "JoinRequest": [
        *("protocol", "name", "rows", "columns", "virtual_clients", "token", "schema", "version", "dry_run"),
    ],
    "Column": ["name", "kind"],
    "ClientMessage": ["opening", "answer", "leaving"],
    "Opening": ["token", "shard_digest"],
    "Answer": [
        *("number", "attempt", "seconds", "inner", "evaluation", "offset"),
        *("points", "g", "count", "mean", "rest", "squares"),
    ],
    "Evaluation": ["rows", "right", "loss"],
    "Leaving": ["reason"],
    "StatusRequest": ["token"],
}


def test_contract_has_no_place_for_the_outer_objective() -> None:
    """Every message and field is on the list above; `h` is the only word of H among them."""
    messages = pb.DESCRIPTOR.message_types_by_name
    assert {name: [field.name for field in messages[name].fields] for name in messages} == WORDS


def messages(connection: bytes) -> list[bytes]:
    """Return the gRPC messages in what a server sent on one HTTP/2 connection, call by call."""
    bodies: dict[int, bytearray] = {}
    at = 0
    while at + 9 <= len(connection):
        length = int.from_bytes(connection[at : at + 3])
        kind, stream = connection[at + 3], int.from_bytes(connection[at + 5 : at + 9]) & 0x7FFFFFFF
        if kind == 0:
            bodies.setdefault(stream, bytearray()).extend(connection[at + 9 : at + 9 + length])
        at += 9 + length
    found = []
    for stream in sorted(bodies):
        body, begin = bytes(bodies[stream]), 0
        while begin < len(body):
            (size,) = struct.unpack(">I", body[begin + 1 : begin + 5])
            found.append(body[begin + 5 : begin + 5 + size])
            begin += 5 + size
    return found


def test_every_byte_that_a_client_receives_is_accounted_for(tmp_path: Path) -> None:
    """The public problem, then per round x_k, a subgradient and two scalars, and the solution. Nothing of H besides."""
    given = federation(tmp_path, 2, rounds=6)
    anchor = np.array([0.123456789, -0.987654321, 0.555444333, 1.112223334, -1.357924680])
    text = given.config.read_text()
    text = text.replace(
        'kind = "elastic-net"\nl1 = 0.25\nl2 = 1.5', f'kind = "squared-distance"\nanchor = {anchor.tolist()}'
    )
    given.config.write_text(text)
    with server(given.config, tmp_path / "run") as running:
        tap = Tap(running.address)
        with grpc.insecure_channel(running.address) as channel:
            stub = rpc.FederationStub(channel)
            joined_first = stub.Join(
                pb.JoinRequest(protocol=PROTOCOL, name="b", rows=7, columns=5, virtual_clients=1), timeout=10
            )
            status = stub.Status(pb.StatusRequest(token=joined_first.token), timeout=10)
        clients = [client(tap.address, "a", given.files[0]), client(running.address, "b", given.files[1])]
        assert [end(one)[0] for one in clients] == [0, 0]
        assert running.end() == 0
        tap.close()
    (connection,) = [bytes(kept) for kept in tap.received]
    joined, *rest = messages(connection)

    reply = pb.JoinReply.FromString(joined)
    public = pb.JoinReply(run_id=reply.run_id, token=reply.token, loss=pb.Variant(kind="logistic"))
    public.constraint.CopyFrom(pb.Variant(kind="box", numbers={"lo": -2.0, "hi": 2.0}))
    public.recipe.unknown, public.recipe.missing, public.version = "refuse", "refuse", fism.__version__
    assert reply == public
    assert len(joined) == len(public.SerializeToString())  # no unknown field; maps have no order

    passes = [
        message
        for message in map(pb.ServerMessage.FromString, rest)
        if message.HasField("question") and message.question.kind == pb.Question.PASS
    ]
    expected = [
        pb.ServerMessage(
            question=pb.Question(
                number=k,
                attempt=1,
                kind=pb.Question.PASS,
                round=k,
                gamma=0.3 / k**0.7,
                weight=0.8 / k**0.2 / 10,
                summands=2,
                x=message.question.x,
                h=(np.frombuffer(message.question.x) - anchor).tobytes(),
            )
        )
        for k, message in enumerate(passes, start=1)
    ]
    with np.load(tmp_path / "run/model.npz") as model:
        solved = pb.Question(number=7, attempt=1, kind=pb.Question.SOLUTION, round=6, x=model["x"].tobytes())
    goodbye = pb.ServerMessage(goodbye=pb.Goodbye(finished=True, reason="the run is finished"))
    solution = pb.ServerMessage(question=solved)
    assert rest == [message.SerializeToString() for message in (*expected, solution, goodbye)]
    assert len(passes) == 6

    for secret in [*anchor, *-anchor]:
        for place in (connection, status.SerializeToString()):
            assert struct.pack("<d", secret) not in place
            assert f"{secret:.6f}".encode() not in place


def test_summary_and_database_tell_no_more_of_the_outer_objective_than_its_value(tmp_path: Path) -> None:
    """Not its name, not a parameter; numbers in a database are big-endian."""
    given = federation(tmp_path, 1, rounds=3)
    given.config.write_text(given.config.read_text().replace("l1 = 0.25", "l1 = 0.123456789"))
    with server(given.config, tmp_path / "run") as running:
        assert end(client(running.address, "a", given.files[0]))[0] == 0
        assert running.end() == 0
    for name in ("summary.json", "run.sqlite"):
        content = (tmp_path / "run" / name).read_bytes()
        assert len(content) > 100
        for secret in (b"elastic", b"0.123456789", struct.pack(">d", 0.123456789), struct.pack("<d", 0.123456789)):
            assert secret not in content
