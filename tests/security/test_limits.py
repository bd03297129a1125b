"""Limits before anybody is known, and a flood."""

from __future__ import annotations

import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

import grpc
import pytest

from fism.certs import init, issue
from fism_common.wire.pb import federation_pb2 as pb
from fism_common.wire.pb import federation_pb2_grpc as rpc

from ..federation.harness import PATIENCE, assert_same_bytes, client, facts, federation, server
from ..federation.tap import Tap
from .http2 import HELLO, frame, headers

CONCURRENT_STREAMS, HEADER_SIZE = 3, 6


def settings(address: str) -> dict[int, int]:
    """Return what a server says of itself in the first frame of HTTP/2."""
    host, port = address.split(":")
    with socket.create_connection((host, int(port)), timeout=5) as raw, raw.makefile("rb") as stream:
        raw.sendall(HELLO)
        head = stream.read(9)
        body = stream.read(int.from_bytes(head[:3]))
    return dict(struct.unpack_from(">HI", body, at) for at in range(0, len(body), 6))


def test_streams_and_headers_are_bounded(tmp_path: Path) -> None:
    """A connection has so many calls at once, and headers of so many bytes."""
    given = federation(tmp_path, 1)
    with server(given.config, tmp_path / "run") as running:
        said = settings(running.address)
        assert said[CONCURRENT_STREAMS] == 32
        assert said[HEADER_SIZE] <= 16 * 2**10
        with (
            grpc.insecure_channel(running.address) as channel,
            pytest.raises(grpc.RpcError, match="RESOURCE_EXHAUSTED"),
        ):
            rpc.FederationStub(channel).Status(pb.StatusRequest(), timeout=10, metadata=(("x", "y" * 20_000),))


def seconds_to_end(address: str, first: bytes) -> float:
    """Return how long a connection lives that sends these bytes and then nothing."""
    host, port = address.split(":")
    with socket.create_connection((host, int(port)), timeout=60) as raw:
        raw.sendall(first)
        began = time.monotonic()
        try:
            while raw.recv(4096):
                pass
        except ConnectionError:
            pass
        return time.monotonic() - began


@pytest.mark.long
def test_connection_that_does_nothing_is_ended(tmp_path: Path) -> None:
    """In the middle of its handshake after ten seconds, without a call after thirty."""
    given, certs = federation(tmp_path, 1), tmp_path / "certs"
    init(certs)
    issue(certs, "server", ["localhost"])
    with server(given.config, tmp_path / "run", "--certs", certs) as running:
        assert 5 < seconds_to_end(running.address, b"") < 15
    with server(given.config, tmp_path / "plain") as running:
        assert 10 < seconds_to_end(running.address, HELLO) < 50


@pytest.mark.long
def test_stream_that_says_nothing_is_ended(tmp_path: Path) -> None:
    """After ten seconds."""
    given = federation(tmp_path, 1)
    with server(given.config, tmp_path / "run") as running, grpc.insecure_channel(running.address) as channel:

        def silence() -> object:
            time.sleep(20)
            yield pb.ClientMessage()

        began = time.monotonic()
        with pytest.raises(grpc.RpcError, match=r"UNAUTHENTICATED[\s\S]*no message in 10 s"):
            list(rpc.FederationStub(channel).Round(silence(), timeout=PATIENCE))  # type: ignore[arg-type]
        assert time.monotonic() - began < 15


@pytest.mark.long
def test_call_that_does_not_send_its_message_is_ended(tmp_path: Path) -> None:
    """And what it has sent is not held any longer."""
    given = federation(tmp_path, 1)
    with server(given.config, tmp_path / "run") as running:
        host, port = running.address.split(":")
        with socket.create_connection((host, int(port)), timeout=20) as raw:
            head = b"\0" + (3_901_000).to_bytes(4) + b"x" * 16_000
            raw.sendall(HELLO + frame(1, 4, 1, headers()) + frame(0, 0, 1, head))
            began, answer = time.monotonic(), b""
            while b"no message in 10 s" not in answer:
                part = raw.recv(4096)
                assert part, answer
                answer += part
            assert time.monotonic() - began < 15


FLOOD = """
import os, socket, sys, threading, time
import grpc
from pathlib import Path
from fism_common.wire.pb import federation_pb2 as pb
from fism_common.wire.pb import federation_pb2_grpc as rpc
from fism_common.wire.tls import TlsFiles, channel_credentials
from fism_common.joining import PROTOCOL

os.nice(19)
kind, address, certs = sys.argv[1], sys.argv[2], Path(sys.argv[3])
host, port = address.split(":")
credentials = channel_credentials(TlsFiles.of(certs, "stranger"))
options = [("grpc.ssl_target_name_override", "localhost")]
print("flooding", flush=True)
match kind:
    case "connections":
        held = []
        while True:
            try:
                held = [socket.create_connection((host, int(port))) for _ in range(1000)]
            except ConnectionRefusedError:  # the run is over
                time.sleep(60)
            time.sleep(5)
    case "joins":
        stub = rpc.FederationStub(grpc.secure_channel(address, credentials, options))
        for i in range(10_000):
            try:
                name = f"wrong-{i}"
                wish = pb.JoinRequest(protocol=PROTOCOL, name=name, rows=2**40, columns=2**31, virtual_clients=1)
                stub.Join(wish, timeout=60)
            except grpc.RpcError:
                pass
        print("done", flush=True)
    case "dribbles":
        big = pb.ClientMessage(leaving=pb.Leaving(reason="x" * 3_900_000))
        def dribble():
            while True:
                with grpc.secure_channel(address, credentials, options) as channel:
                    try:
                        list(rpc.FederationStub(channel).Round(iter([big]), timeout=60))
                    except grpc.RpcError:
                        pass
        threads = [threading.Thread(target=dribble) for _ in range(16)]
        for thread in threads:
            thread.start()
"""


@pytest.mark.long
@pytest.mark.timeout(600)
def test_flood_does_not_stop_an_honest_federation(tmp_path: Path) -> None:
    """A thousand connections that never join, ten thousand joins with a wrong name, streams that dribble 64 KiB/s.

    The honest run takes at most twice its time, to the same bytes; the server stays within 200 MB of its start.
    """
    given, certs = federation(tmp_path, 4, rounds=42_000), tmp_path / "certs"
    init(certs)
    issue(certs, "server", ["localhost", "127.0.0.1"])
    for name in (*given.names, "stranger"):
        issue(certs, name)

    def run(name: str, *, flooded: bool) -> tuple[float, int]:
        """Return how long the rounds took, and how much the server's memory grew."""
        with server(given.config, tmp_path / name, "--certs", certs) as running:
            tap = Tap(running.address)
            tap.delay(1.0)  # 64 KiB at a time
            floods = {}
            for kind, address in (
                ("connections", running.address),
                ("joins", running.address),
                ("dribbles", tap.address),
            ):
                if flooded:
                    command = [sys.executable, "-c", FLOOD, kind, address, str(certs)]
                    floods[kind] = subprocess.Popen(
                        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
                    )
            for process in floods.values():
                assert process.stdout is not None
                assert process.stdout.readline() == "flooding\n"
            start = most = resident(running.process.pid)
            honest = [
                client(running.address, one, file, "--certs", certs)
                for one, file in zip(given.names, given.files, strict=True)
            ]
            running.wait_for("the rounds begin")
            began = time.monotonic()
            while running.process.poll() is None and time.monotonic() - began < 300:
                most = max(most, resident(running.process.pid))
                time.sleep(0.5)
            assert running.end() == 0
            seconds = time.monotonic() - began
            assert [one.wait(timeout=PATIENCE) for one in honest] == [0] * 4
            assert all(one.poll() is None for kind, one in floods.items() if kind != "joins"), "these have no end"
            assert not flooded or floods["joins"].wait(timeout=PATIENCE) == 0, "all were tried"
            for process in floods.values():
                process.kill()
                process.communicate()
            for one in honest:
                one.communicate()
            tap.close()
        assert_same_bytes(tmp_path / name, given.solve())
        return seconds, most - start

    alone, _ = run("alone", flooded=False)
    flooded, growth = run("flooded", flooded=True)
    print(f"{alone:.0f} s alone, {flooded:.0f} s in the flood, {growth / 1e6:.0f} MB more")  # noqa: T201  # for -s
    assert flooded <= 2 * alone, f"{flooded:.0f} s over {alone:.0f} s"
    assert growth < 200e6, f"{growth / 1e6:.0f} MB"
    query = "SELECT sum(count) FROM events WHERE kind = 'refused' AND text NOT LIKE '%connections without%'"
    ((refused,),) = facts(tmp_path / "flooded", query)
    assert refused >= 10_000


def resident(pid: int) -> int:
    """Return a process's memory in bytes; 0 if it is gone."""
    try:
        return 4096 * int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except OSError:
        return 0
