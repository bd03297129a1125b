"""A client's side of a conversation with a server that does not keep to the contract."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import chain, repeat

import grpc
import pytest

from fism_client.data.matrix import Matrix
from fism_client.participant import Participant
from fism_client.session import Session
from fism_client.shard import Shard
from fism_common.errors import ContractError, MismatchError
from fism_common.pb import federation_pb2 as pb

SHARD = Shard.of([[1.0, 2.0]], [1.0])
PROBLEM = pb.JoinReply(run_id="r", token=b"t", loss=pb.Loss(name="squared"), set=pb.Set(box=pb.Box(lo=-1, hi=1)))


@contextmanager
def answering(*joins: bytes, stream: tuple[bytes, ...] = ()) -> Iterator[str]:
    """Run a server that gives these answers to Join, the last one again and again, and these messages on every stream.

    Its stream ends at once, which a client may notice before it has read what was sent; it then joins again.
    """
    answers = chain(joins, repeat(joins[-1]))
    server = grpc.server(ThreadPoolExecutor(2))
    methods: dict[str, grpc.RpcMethodHandler[bytes, bytes]] = {
        "Join": grpc.unary_unary_rpc_method_handler(lambda _request, _context: next(answers)),
        "Round": grpc.stream_stream_rpc_method_handler(lambda _requests, _context: iter(stream)),
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("fism.v1.Federation", methods),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        server.stop(None).wait()


def session(address: str) -> Session:
    """Return a client."""
    return Session(address, Participant("a", Matrix("rows", SHARD)), patience=5)


@pytest.mark.parametrize("joins", [(b"\xff",), (PROBLEM.SerializeToString(),)], ids=["join", "stream"])
def test_bytes_that_are_no_message_end_the_client_with_a_reason(joins: tuple[bytes, ...]) -> None:
    """And not with silence."""
    told = pytest.raises(ContractError, match="bytes that are no message of the contract")
    with answering(*joins, stream=(b"\xff\xff",)) as address, told:
        session(address).run()


def test_another_run_at_the_address_is_noticed() -> None:
    """A client that comes back has the problem of the run that it joined."""
    other = pb.JoinReply()
    other.CopyFrom(PROBLEM)
    other.run_id = "another"
    told = pytest.raises(MismatchError, match="has begun another run; start this client anew")
    with answering(PROBLEM.SerializeToString(), other.SerializeToString()) as address, told:
        session(address).run()
