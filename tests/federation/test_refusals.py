"""Who does not fit is refused with a reason that it prints, and the others go on."""

from __future__ import annotations

import re
import socket
import sqlite3
from pathlib import Path

import grpc
import numpy as np
import pytest

from fism_common.joining import PROTOCOL
from fism_common.wire.pb import federation_pb2 as pb
from fism_common.wire.pb import federation_pb2_grpc as rpc

from .harness import assert_same_bytes, client, end, federation, fism_command, server


@pytest.mark.long
def test_misfits_are_refused_and_the_others_finish(tmp_path: Path) -> None:
    """Another width, no rows, labels that the loss cannot use, a name not on the list."""
    given = federation(tmp_path, 2, names=["a", "b"])
    wide, empty, zeros = (tmp_path / f"{name}.npz" for name in ("wide", "empty", "zeros"))
    np.savez(wide, A=np.ones((3, 9)), b=np.ones(3))
    np.savez(empty, A=np.ones((0, 5)), b=np.ones(0))
    np.savez(zeros, A=np.ones((3, 5)), b=np.zeros(3))
    with server(given.config, tmp_path / "run") as running:
        first = client(running.address, "a", given.files[0])
        running.wait_for("waiting for b")
        for name, file, code, reason in (
            ("b", wide, 3, r"'b' has 9 columns, but this run has 5"),
            ("b", empty, 2, r"empty.npz is empty: 0 rows"),
            ("b", zeros, 2, r"the label of row 0 is 0.*needs -1 or 1"),
            ("stranger", given.files[1], 3, r"'stranger' is not a client of this run"),
            ("b", tmp_path / "none.npz", 2, r"there is no file"),
        ):
            exit_code, _, said = end(client(running.address, name, file))
            assert exit_code == code, said
            assert re.search(reason, said), said
        second = client(running.address, "b", given.files[1])
        assert (end(first)[0], end(second)[0], running.end()) == (0, 0, 0)
    assert_same_bytes(tmp_path / "run", given.solve())


@pytest.mark.long
def test_name_that_stays_taken_is_refused(tmp_path: Path) -> None:
    """After it was tried for a while: its holder may have been about to be seen as gone."""
    given = federation(tmp_path, 2, names=["a", "b"])
    with server(given.config, tmp_path / "run") as running:
        first = client(running.address, "a", given.files[0])
        running.wait_for("waiting for b")
        exit_code, _, said = end(client(running.address, "a", given.files[0]))
        assert exit_code == 3
        assert "'a' is already connected" in said
        first.kill()
        first.communicate()


@pytest.mark.parametrize(
    ("change", "code", "reason"),
    [
        ({"protocol": 99}, "FAILED_PRECONDITION", "version 99.*version 4.*same version of fism"),
        ({"name": ""}, "INVALID_ARGUMENT", "1 to 64 printable"),
        ({"name": "a\nb"}, "INVALID_ARGUMENT", "1 to 64 printable"),
        ({"rows": 0}, "FAILED_PRECONDITION", "each needs a row"),
        ({"virtual_clients": 9}, "FAILED_PRECONDITION", "each needs a row"),
        ({"columns": 0}, "FAILED_PRECONDITION", "0 columns"),
    ],
    ids=["version", "no name", "name of two lines", "no rows", "more virtual clients than rows", "no columns"],
)
def test_join_that_does_not_fit_gets_a_status_and_a_reason(
    change: dict[str, object], code: str, reason: str, tmp_path: Path
) -> None:
    """As a client of another make would see it."""
    given = federation(tmp_path, 2)
    with server(given.config, tmp_path / "run") as running, grpc.insecure_channel(running.address) as channel:
        request = {"protocol": PROTOCOL, "name": "a", "rows": 3, "columns": 5, "virtual_clients": 1} | change
        with pytest.raises(grpc.RpcError, match=f"(?s){code}.*{reason}"):
            rpc.FederationStub(channel).Join(pb.JoinRequest(**request), timeout=10)  # type: ignore[arg-type]


def test_stream_without_a_token_is_refused(tmp_path: Path) -> None:
    """The token of Join binds the stream."""
    given = federation(tmp_path, 2)
    with server(given.config, tmp_path / "run") as running, grpc.insecure_channel(running.address) as channel:
        for first, code in (
            (pb.ClientMessage(opening=pb.Opening(token=b"guess")), "UNAUTHENTICATED"),
            (pb.ClientMessage(leaving=pb.Leaving()), "INVALID_ARGUMENT"),
        ):
            with pytest.raises(grpc.RpcError, match=code):
                list(rpc.FederationStub(channel).Round(iter([first]), timeout=10))


def test_port_in_use_is_said(tmp_path: Path) -> None:
    """And the server ends with the code of a wrong option."""
    given = federation(tmp_path, 1)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = fism_command("server", given.config, "--listen", f"127.0.0.1:{port}", "--out", tmp_path / "run")
    assert done.returncode == 2
    assert f"cannot listen on 127.0.0.1:{port}: the port is in use" in done.stderr


def test_second_server_on_a_port_is_refused(tmp_path: Path) -> None:
    """By default gRPC would share the port, and each server get half of the calls."""
    given = federation(tmp_path, 1)
    with server(given.config, tmp_path / "run") as running:
        done = fism_command("server", given.config, "--listen", running.address, "--out", tmp_path / "second")
    assert done.returncode == 2
    assert "the port is in use" in done.stderr


def test_message_beyond_the_limit_is_refused(tmp_path: Path) -> None:
    """Four MiB, whatever a client may send."""
    given = federation(tmp_path, 1)
    unlimited = [("grpc.max_send_message_length", -1)]
    with (
        server(given.config, tmp_path / "run") as running,
        grpc.insecure_channel(running.address, unlimited) as channel,
    ):
        stub = rpc.FederationStub(channel)
        with pytest.raises(grpc.RpcError, match=r"INVALID_ARGUMENT[\s\S]*printable"):
            stub.Join(pb.JoinRequest(protocol=PROTOCOL, name="a" * (2**22 - 100)), timeout=10)
        with pytest.raises(grpc.RpcError, match="RESOURCE_EXHAUSTED"):
            stub.Join(pb.JoinRequest(protocol=PROTOCOL, name="a" * 2**22), timeout=10)


def test_folder_that_is_not_empty_is_refused(tmp_path: Path) -> None:
    """A run never writes over another."""
    given = federation(tmp_path, 1)
    done = fism_command("run", given.config, "--out", tmp_path)
    assert done.returncode == 2
    assert "is not empty" in done.stderr


def test_client_without_a_server_gives_up_after_its_patience(tmp_path: Path) -> None:
    """With the address, and the code of a run that was stopped."""
    given = federation(tmp_path, 1)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    code, _, said = end(client(address, "a", given.files[0], "--patience", 0.5))
    assert code == 4
    assert f"no connection to {address} for 0.5 s" in said


def test_failing_client_ends_a_local_run(tmp_path: Path) -> None:
    """`fism run` does not wait for a client that cannot take part."""
    given = federation(tmp_path, 2)
    np.savez(given.files[1], A=np.ones((3, 5)), b=np.zeros(3))
    done = fism_command("run", given.config, "--out", tmp_path / "run")
    assert done.returncode == 3
    assert "the label of row 0 is 0" in done.stderr
    assert "client-0002 exited with code 2" in done.stderr


def test_run_is_a_database_with_its_clients(tmp_path: Path) -> None:
    """Who took part, with what, and a digest of it."""
    given = federation(tmp_path, 2)
    assert fism_command("run", given.config, "--out", tmp_path / "run").returncode == 0
    with sqlite3.connect(tmp_path / "run/run.sqlite") as database:
        clients = database.execute(
            "SELECT name, rows, columns, virtual_clients, length(digest) FROM clients"
        ).fetchall()
        (round_,) = database.execute("SELECT max(round) FROM state").fetchone()
    database.close()
    assert clients == [("client-0001", 3, 5, 1, 32), ("client-0002", 7, 5, 1, 32)]
    assert round_ == 13
