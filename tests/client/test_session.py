"""A client's side of a conversation with a server that does not keep to the contract."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import chain, repeat

import grpc
import numpy as np
import pytest

from fism_client.data.matrix import Matrix
from fism_client.data.shard import Shard
from fism_client.session.participant import Participant
from fism_client.session.session import Session
from fism_common.errors import ContractError, MismatchError, NameTakenError, RefusedError, StoppedError
from fism_common.wire.pb import federation_pb2 as pb
from fism_common.wire.slices import pack

SHARD = Shard.of([[1.0, 2.0]], [1.0])
BOX = pb.Variant(kind="box", numbers={"lo": -1.0, "hi": 1.0})
PROBLEM = pb.JoinReply(run_id="r", token=b"t", loss=pb.Variant(kind="squared"), constraint=BOX)


@contextmanager
def answering(*joins: bytes, stream: tuple[bytes, ...] = ()) -> Iterator[str]:
    """Run a server that gives these answers to Join, the last one again and again, and these messages on every stream.

    Its stream ends at once, whatever the client has to say after its opening.
    """
    answers = chain(joins, repeat(joins[-1]))

    def speak(requests: Iterator[bytes], _: object) -> Iterator[bytes]:
        next(requests)
        yield from stream

    server = grpc.server(ThreadPoolExecutor(2))
    methods: dict[str, grpc.RpcMethodHandler[bytes, bytes]] = {
        "Join": grpc.unary_unary_rpc_method_handler(lambda _request, _context: next(answers)),
        "Round": grpc.stream_stream_rpc_method_handler(speak),
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("fism.v1.Federation", methods),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        server.stop(None).wait()


def session(address: str, shard: Shard = SHARD, patience: float = 5.0) -> Session:
    """Return a client."""
    return Session(address, Participant("a", Matrix("rows", shard)), patience=patience)


@pytest.mark.parametrize("joins", [(b"\xff",), (PROBLEM.SerializeToString(),)], ids=["join", "stream"])
def test_bytes_that_are_no_message_end_the_client_with_a_reason(joins: tuple[bytes, ...]) -> None:
    """And not with silence."""
    told = pytest.raises(ContractError, match="bytes that are not a message of the protocol")
    with answering(*joins, stream=(b"\xff\xff",)) as address, told:
        session(address).run()


def test_another_run_at_the_address_is_noticed() -> None:
    """A client that comes back has the problem of the run that it joined."""
    other = pb.JoinReply()
    other.CopyFrom(PROBLEM)
    other.run_id = "another"
    told = pytest.raises(MismatchError, match="has begun another run; restart this client")
    with answering(PROBLEM.SerializeToString(), other.SerializeToString()) as address, told:
        session(address).run()


def test_excluded_client_has_not_finished() -> None:
    """Though it has the solution: the run waits for its answer."""
    solution = pb.Question(number=1, attempt=1, kind=pb.Question.SOLUTION, x=pack(np.zeros(2)))
    refused = pb.Refused(round=1, reason="F is too large", excluded=True)
    stream = tuple(
        message.SerializeToString()
        for message in (pb.ServerMessage(question=solution), pb.ServerMessage(refused=refused))
    )
    told = pytest.raises(RefusedError, match="the server excluded this client: F is too large")
    with answering(PROBLEM.SerializeToString(), stream=stream) as address, told:
        session(address).run()


def test_name_is_tried_for_from_when_it_is_first_told_to_be_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long the server could not be reached before."""
    monkeypatch.setattr("fism_client.session.session._SECONDS_FOR_A_NAME", 1.0)
    began, statuses = time.monotonic(), []

    def join(_request: bytes, context: grpc.ServicerContext) -> bytes:
        late = time.monotonic() - began > 2.0
        statuses.append(late)
        context.abort(grpc.StatusCode.ALREADY_EXISTS if late else grpc.StatusCode.UNAVAILABLE, "not now")

    server = grpc.server(ThreadPoolExecutor(2))
    methods: dict[str, grpc.RpcMethodHandler[bytes, bytes]] = {"Join": grpc.unary_unary_rpc_method_handler(join)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("fism.v1.Federation", methods),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        with pytest.raises(NameTakenError, match="not now"):
            session(f"127.0.0.1:{port}", patience=60.0).run()
    finally:
        server.stop(None).wait()
    assert statuses.count(True) > 1


def test_goodbye_that_comes_during_a_pass_is_heard(caplog: pytest.LogCaptureFixture) -> None:
    """Also by a client whose answer can no longer be sent: it does not look for a server that has gone."""
    rows = 2_000_000  # a pass that is longer than the way of the goodbye
    zero = pack(np.zeros(2))
    asked = [
        pb.Question(number=1, attempt=attempt, kind=pb.Question.PASS, gamma=1e-9, x=zero, h=zero) for attempt in (1, 2)
    ]
    goodbye = pb.ServerMessage(goodbye=pb.Goodbye(finished=False, reason="interrupted"))
    said = (*(pb.ServerMessage(question=one) for one in asked), goodbye)
    stream = tuple(one.SerializeToString() for one in said)
    told = pytest.raises(StoppedError, match="the server stopped the run: interrupted")
    with answering(PROBLEM.SerializeToString(), stream=stream) as address, told:
        session(address, Shard.of(np.ones((rows, 2)), np.ones(rows))).run()
    assert "trying again" not in caplog.text


def test_question_before_the_whole_problem_is_an_error_of_the_server() -> None:
    """It has not sent the bounds of X."""
    bounds = pb.Variant(kind="box", numbers={"lo": -1.0}, vectors=["hi"])
    problem = pb.JoinReply(run_id="r", token=b"t", loss=pb.Variant(kind="squared"), constraint=bounds)
    zero = pack(np.zeros(2))
    asked = pb.ServerMessage(question=pb.Question(number=1, attempt=1, kind=pb.Question.PASS, x=zero, h=zero))
    told = pytest.raises(ContractError, match="asked for a Pass before it sent the whole problem")
    with answering(problem.SerializeToString(), stream=(asked.SerializeToString(),)) as address, told:
        session(address).run()


def test_goodbye_without_a_solution_is_an_error_of_the_server() -> None:
    """The protocol's table does not allow it."""
    goodbye = pb.ServerMessage(goodbye=pb.Goodbye(finished=True, reason="finished")).SerializeToString()
    told = pytest.raises(ContractError, match="'Goodbye, finished' when this client was 'stream open'")
    with answering(PROBLEM.SerializeToString(), stream=(goodbye,)) as address, told:
        session(address).run()
