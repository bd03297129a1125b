"""Mutual TLS: who gets in, who does not, and what both are told."""

from __future__ import annotations

import os
import re
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import grpc
import numpy as np
import pytest
from cryptography import x509

from fism.certs import init, issue
from fism_common.joining import PROTOCOL
from fism_common.wire.pb import federation_pb2 as pb
from fism_common.wire.pb import federation_pb2_grpc as rpc
from fism_common.wire.tls import TlsFiles

from ..federation.harness import (
    Federation,
    Server,
    assert_same_bytes,
    client,
    end,
    events,
    facts,
    federation,
    fism_command,
    resumed,
    rounds_done,
    server,
    until,
)
from ..federation.tap import Tap
from .http2 import HELLO, JOIN

NAMES = ["north-hospital", "south-hospital"]
QUICK = 5.0
"""Seconds in which whoever does not belong is sent away, besides the start of its process."""


@pytest.fixture
def certs(tmp_path: Path) -> Path:
    """Return a folder of certificates."""
    folder = tmp_path / "certs"
    init(folder)
    issue(folder, "server", ["localhost", "127.0.0.1"])
    for name in (*NAMES, "stranger"):
        issue(folder, name)
    return folder


@pytest.fixture
def given(tmp_path: Path) -> Federation:
    """Return a federation of two, by name."""
    return federation(tmp_path, 2, names=NAMES)


def at_localhost(running: Server) -> str:
    """Return the server's address by name."""
    return running.address.replace("127.0.0.1", "localhost")


def test_federation_with_certificates_gives_the_same_bytes(given: Federation, certs: Path, tmp_path: Path) -> None:
    """By the host's name and by its address."""
    with server(given.config, tmp_path / "run", "--certs", certs) as running:
        one = client(at_localhost(running), NAMES[0], given.files[0], "--certs", certs)
        two = client(running.address, NAMES[1], given.files[1], "--certs", certs)
        assert (end(one)[0], end(two)[0], running.end()) == (0, 0, 0)
        assert not any("INSECURE" in line for line in running.lines)
    assert_same_bytes(tmp_path / "run", given.solve())


def test_whoever_does_not_belong_is_refused_with_the_cause(given: Federation, certs: Path, tmp_path: Path) -> None:
    """No certificate, an expired one, of another authority, of another's name, not on the list; the honest finish."""
    other = tmp_path / "other"
    init(other)
    issue(other, "server", ["localhost"])
    for name in NAMES:
        issue(other, name)
    expired = tmp_path / "expired"
    init(expired)
    issue(expired, NAMES[1], days=0)
    mixed = tmp_path / "mixed"  # the right authority's certificate with an own one of another
    mixed.mkdir()
    for name, source in (("ca.pem", certs), (f"{NAMES[1]}.pem", other), (f"{NAMES[1]}.key", other)):
        (mixed / name).write_bytes((source / name).read_bytes())
    renamed = tmp_path / "renamed"
    renamed.mkdir()
    for suffix in ("pem", "key"):
        (renamed / f"{NAMES[1]}.{suffix}").write_bytes((certs / f"stranger.{suffix}").read_bytes())
    (renamed / "ca.pem").write_bytes((certs / "ca.pem").read_bytes())
    with server(given.config, tmp_path / "run", "--certs", certs) as running:
        address = at_localhost(running)
        honest = client(address, NAMES[0], given.files[0], "--certs", certs)
        for arguments, code, told in (
            ((), 3, "the server speaks TLS: give --certs"),
            (("--certs", tmp_path / "none"), 2, "cannot read .*none/ca.pem: No such file"),
            (("--certs", expired), 2, f"{NAMES[1]}.pem expired on"),
            (("--certs", other), 3, "the server's certificate was not issued by the authority in .*other/ca.pem"),
            (("--certs", mixed), 2, f"{NAMES[1]}.pem was not issued by the authority in .*mixed/ca.pem"),
            (("--certs", renamed), 2, f"is for 'stranger', not for '{NAMES[1]}'"),
        ):
            began = time.monotonic()
            exit_code, _, said = end(client(address, NAMES[1], given.files[1], *arguments))
            assert exit_code == code, said
            assert re.search(told, said), said
            assert time.monotonic() - began < QUICK + 2
        exit_code, _, said = end(client(address, "stranger", given.files[1], "--certs", certs))
        assert exit_code == 3
        assert "'stranger' is not a client of this run; ask its coordinator to list the name" in said
        running.wait_for("refused: 'stranger' is not a client of this run")
        running.wait_for(r"refused: \d+ connections without a valid certificate")
        last = client(address, NAMES[1], given.files[1], "--certs", certs)
        assert (end(honest)[0], end(last)[0], running.end()) == (0, 0, 0)
    assert_same_bytes(tmp_path / "run", given.solve())
    assert ("refused", "stranger") in events(tmp_path / "run")


def channel(running: Server, certs: Path, name: str | None, ca: Path | None = None) -> grpc.Channel:
    """Return a channel of somebody else's make, which does not look at its own files first."""
    authority = ((ca or certs) / "ca.pem").read_bytes()
    if name is None:
        credentials = grpc.ssl_channel_credentials(authority)
    else:
        files = TlsFiles.of(certs, name)
        credentials = grpc.ssl_channel_credentials(authority, files.key.read_bytes(), files.certificate.read_bytes())
    return grpc.secure_channel(at_localhost(running), credentials)


def test_server_trusts_no_client_to_look_at_its_own_files(given: Federation, certs: Path, tmp_path: Path) -> None:
    """Without a certificate, with an expired one, of another authority: no call comes through, and it is counted."""
    other = tmp_path / "other"
    init(other)
    issue(other, NAMES[0])
    issue(certs, "old", days=0)
    with server(given.config, tmp_path / "run", "--certs", certs) as running:
        for folder, name in ((certs, None), (certs, "old"), (other, NAMES[0])):
            with channel(running, folder, name, certs) as opened, pytest.raises(grpc.RpcError, match="UNAVAILABLE"):
                rpc.FederationStub(opened).Join(pb.JoinRequest(protocol=PROTOCOL, name=NAMES[0]), timeout=QUICK)
        running.wait_for(r"refused: \d+ connections without a valid certificate, or without a call")


def wish(name: str) -> pb.JoinRequest:
    """Return a request to join."""
    return pb.JoinRequest(protocol=PROTOCOL, name=name, rows=3, columns=5, virtual_clients=1)


def test_client_cannot_speak_for_another(given: Federation, certs: Path, tmp_path: Path) -> None:
    """Neither join under its name, nor use its token."""
    with (
        server(given.config, tmp_path / "run", "--certs", certs) as running,
        channel(running, certs, NAMES[0]) as mine,
        channel(running, certs, NAMES[1]) as others,
    ):
        told = f"(?s)PERMISSION_DENIED.*your certificate is for '{NAMES[1]}'"
        with pytest.raises(grpc.RpcError, match=told):
            rpc.FederationStub(others).Join(wish(NAMES[0]), timeout=QUICK)
        joined = rpc.FederationStub(mine).Join(wish(NAMES[0]), timeout=QUICK)
        opening = pb.ClientMessage(opening=pb.Opening(token=joined.token))
        with pytest.raises(grpc.RpcError, match=told):
            list(rpc.FederationStub(others).Round(iter([opening]), timeout=QUICK))


def test_status_is_told_to_clients_of_the_run_only(given: Federation, certs: Path, tmp_path: Path) -> None:
    """Not to a certificate that is not on the list; in plain text, to a token."""
    with server(given.config, tmp_path / "run", "--certs", certs) as running:
        with channel(running, certs, "stranger") as opened, pytest.raises(grpc.RpcError, match="PERMISSION_DENIED"):
            rpc.FederationStub(opened).Status(pb.StatusRequest(), timeout=QUICK)
        with channel(running, certs, NAMES[0]) as opened:
            stub = rpc.FederationStub(opened)
            stub.Join(
                pb.JoinRequest(protocol=PROTOCOL, name=NAMES[0], rows=3, columns=5, virtual_clients=1), timeout=QUICK
            )
            assert stub.Status(pb.StatusRequest(), timeout=QUICK).clients_expected == 2
    with server(given.config, tmp_path / "plain") as running, grpc.insecure_channel(running.address) as opened:
        stub = rpc.FederationStub(opened)
        with pytest.raises(grpc.RpcError, match=r"(?s)PERMISSION_DENIED.*only clients of the run"):
            stub.Status(pb.StatusRequest(), timeout=QUICK)
        joined = stub.Join(wish(NAMES[0]), timeout=QUICK)
        assert stub.Status(pb.StatusRequest(token=joined.token), timeout=QUICK).clients_expected == 2


def test_server_with_a_wrong_certificate_is_refused_by_the_client(
    given: Federation, certs: Path, tmp_path: Path
) -> None:
    """Another host's, and one that has expired since."""
    issue(certs, "elsewhere", ["fism.example"])
    name = ("--set", 'security.name="elsewhere"')
    with server(given.config, tmp_path / "run", "--certs", certs, *name) as running:
        code, _, said = end(client(at_localhost(running), NAMES[0], given.files[0], "--certs", certs))
    assert code == 3
    assert "the server's certificate is for fism.example, not for localhost; use one of these names" in said
    issue(certs, "server", days=0, renew=True)
    done = fism_command("server", given.config, "--certs", certs, "--out", tmp_path / "late")
    assert done.returncode == 2
    assert "server.pem expired on" in done.stderr


def test_revoked_client_is_refused(tmp_path: Path, certs: Path) -> None:
    """Its certificate is as good as before; its name is off the list."""
    given = federation(tmp_path, 1)
    allowed = ("--set", f'security.allowed=["{NAMES[1]}"]')
    with server(given.config, tmp_path / "run", "--certs", certs, *allowed) as running:
        code, _, said = end(client(at_localhost(running), NAMES[0], given.files[0], "--certs", certs))
        assert code == 3
        assert f"'{NAMES[0]}' is not allowed in this run" in said
        one = client(at_localhost(running), NAMES[1], given.files[0], "--certs", certs)
        assert (end(one)[0], running.end()) == (0, 0)


def test_run_is_resumed_without_a_revoked_client(tmp_path: Path, certs: Path) -> None:
    """With "wait" that is refused at once, since it would wait for ever; with "continue" the others go on."""
    given, out = federation(tmp_path, 2, names=NAMES, rounds=3000), tmp_path / "run"
    with server(given.config, out, "--certs", certs) as running:
        processes = [client(running.address, NAMES[i], given.files[i], "--certs", certs) for i in range(2)]
        until(lambda: rounds_done(out) > 20)
        running.process.kill()
        allowed = ("--certs", certs, "--set", f'security.allowed=["{NAMES[0]}"]')
        done = fism_command("server", "--resume", out, *allowed, "--listen", running.address)
        assert done.returncode == 2
        assert f"{NAMES[1]} began the run and is no longer allowed" in done.stderr
        on = ("--set", 'limits.on_absence="continue"')
        with resumed(out, *allowed, *on, listen=running.address) as again:
            code, _, said = end(processes[1])
            assert code == 3
            assert f"'{NAMES[1]}' is not allowed in this run" in said
            assert (end(processes[0])[0], again.end()) == (0, 0)
    assert facts(out, "SELECT name FROM clients WHERE dropped IS NULL") == [(NAMES[0],)]


def test_session_is_not_resumed(given: Federation, certs: Path, tmp_path: Path) -> None:
    """Whose certificate has expired since would get in by it."""
    files = TlsFiles.of(certs, NAMES[0])
    context = ssl.create_default_context(cafile=files.ca)
    context.load_cert_chain(files.certificate, files.key)
    context.set_alpn_protocols(["h2"])
    with server(given.config, tmp_path / "run", "--certs", certs) as running:
        port = int(running.address.rpartition(":")[2])
        session: ssl.SSLSession | None = None
        reused: bool | None = False
        answer = b""
        for _ in range(2):
            with (
                socket.create_connection(("127.0.0.1", port), timeout=QUICK) as raw,
                context.wrap_socket(raw, server_hostname="localhost", session=session) as stream,
            ):
                stream.sendall(HELLO + JOIN)
                answer = b""
                while b"certificate" not in answer and b"printable" not in answer:
                    part = stream.recv(4096)
                    assert part, answer
                    answer += part
                session, reused = stream.session, stream.session_reused
        assert reused
        assert b"every connection must present its certificate" in answer


@pytest.mark.long
def test_plain_text_goes_through_no_proxy(given: Federation, tmp_path: Path) -> None:
    """One that the environment names is on another host."""
    with socket.create_server(("127.0.0.1", 0)) as proxy, server(given.config, tmp_path / "run") as running:
        proxy.settimeout(0.5)
        named = f"http://127.0.0.1:{proxy.getsockname()[1]}"
        environment = {**os.environ, "http_proxy": named, "https_proxy": named, "no_proxy": ""}
        command = [
            sys.executable,
            "-m",
            "fism",
            "client",
            "--server",
            running.address.replace("127.0.0.1", "localhost"),
        ]
        command += ["--name", NAMES[0], "--data", str(given.files[0])]
        process = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
        running.wait_for(f"waiting for {NAMES[1]}, ")
        with pytest.raises(TimeoutError):
            proxy.accept()
        process.kill()
        process.wait()


@pytest.mark.parametrize("address", ["localhost", "localhost:abc", "a..b", ":5", "::1:5", "host:99999"])
def test_address_that_is_none_is_told(address: str, given: Federation, certs: Path) -> None:
    """Before anything is sent."""
    done = fism_command("client", "--server", address, "--name", NAMES[0], "--data", given.files[0], "--certs", certs)
    assert done.returncode == 2
    assert f"{address!r} is neither HOST:PORT" in done.stderr


def test_certificate_replaces_a_half_open_stream_at_once(given: Federation, certs: Path, tmp_path: Path) -> None:
    """A machine that went down and up again need not wait for the server to notice."""
    long = ("--set", "stop.rounds=100000")
    with server(given.config, tmp_path / "run", "--certs", certs, *long) as running:
        tap = Tap(running.address)
        old = client(tap.address, NAMES[0], given.files[0], "--certs", certs)
        other = client(running.address, NAMES[1], given.files[1], "--certs", certs)
        running.wait_for("the rounds begin")
        tap.swallow()
        old.kill()
        old.communicate()
        new = client(running.address, NAMES[0], given.files[0], "--certs", certs)
        running.wait_for(f"lost: a new stream replaces this one client={NAMES[0]}", 10)
        until(lambda: ("returned", NAMES[0]) in events(tmp_path / "run"))
        for one in (new, other):
            one.kill()
            one.communicate()
        tap.close()


def test_wire_shows_no_vector_and_no_name(given: Federation, certs: Path, tmp_path: Path) -> None:
    """A recording proxy sees TLS 1.3, in which even certificates travel encrypted; in plain text it sees all."""
    with server(given.config, tmp_path / "run", "--certs", certs) as running:
        tap = Tap(running.address)
        one = client(tap.address, NAMES[0], given.files[0], "--certs", certs)
        two = client(running.address, NAMES[1], given.files[1], "--certs", certs)
        assert (end(one)[0], end(two)[0], running.end()) == (0, 0, 0)
        tap.close()
    seen = b"".join(bytes(part) for part in [*tap.received, *tap.sent])
    with np.load(tmp_path / "run/model.npz") as model:
        x = model["x"].tobytes()
    assert len(seen) > 5000
    for secret in (x, x[:8], NAMES[0].encode(), b"fism.v1", b"logistic"):
        assert secret not in seen
    with server(given.config, tmp_path / "plain") as running:
        tap = Tap(running.address)
        one, two = client(tap.address, NAMES[0], given.files[0]), client(running.address, NAMES[1], given.files[1])
        assert (end(one)[0], end(two)[0], running.end()) == (0, 0, 0)
        tap.close()
    seen = b"".join(bytes(part) for part in [*tap.received, *tap.sent])
    assert x in seen
    assert NAMES[0].encode() in seen


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_only_tls_1_3_is_spoken(version: ssl.TLSVersion, given: Federation, certs: Path, tmp_path: Path) -> None:
    """TLS 1.2 would show a client's certificate in clear: it ends before that is sent."""
    files = TlsFiles.of(certs, NAMES[0])
    context = ssl.create_default_context(cafile=files.ca)
    context.load_cert_chain(files.certificate, files.key)
    context.maximum_version = version
    context.set_alpn_protocols(["h2"])
    with server(given.config, tmp_path / "run", "--certs", certs) as running:
        port = int(running.address.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), timeout=QUICK) as raw:
            if version == ssl.TLSVersion.TLSv1_2:
                with pytest.raises(OSError, match=r"EOF|ALERT|reset"):
                    context.wrap_socket(raw, server_hostname="localhost")
            else:
                with context.wrap_socket(raw, server_hostname="localhost") as stream:
                    assert stream.version() == "TLSv1.3"


def test_client_with_a_certificate_does_not_go_on_in_plain_text(given: Federation, certs: Path, tmp_path: Path) -> None:
    """Whatever the server says it speaks."""
    with server(given.config, tmp_path / "run") as running:
        code, _, said = end(client(running.address, NAMES[0], given.files[0], "--certs", certs))
    assert code == 3
    assert "the server speaks plain text, but this client has a certificate" in said


def test_plain_text_beyond_this_host_needs_insecure(given: Federation, tmp_path: Path) -> None:
    """At both ends; and is then said on every start line."""
    done = fism_command("server", given.config, "--listen", "0.0.0.0:0", "--out", tmp_path / "no")
    assert done.returncode == 2
    assert "without certificates the server listens on this host only" in done.stderr
    assert not (tmp_path / "no").exists()
    done = fism_command(
        "server",
        given.config,
        "--listen",
        "127.0.0.1:0",
        "--health",
        "0.0.0.0:0",
        "--out",
        tmp_path / "no",
    )
    assert done.returncode == 2
    done = fism_command("client", "--server", "192.0.2.1:1", "--name", "a", "--data", given.files[0])
    assert done.returncode == 2
    assert "192.0.2.1:1 is another host: give --certs" in done.stderr
    with server(given.config, tmp_path / "run", "--insecure") as running:
        assert any(re.search(r"listening on \S+ INSECURE", line) for line in running.lines)
        one, two = (client(running.address, NAMES[i], given.files[i], "--insecure") for i in range(2))
        said = [end(each)[2] for each in (one, two)]
        assert running.end() == 0
    assert all("INSECURE: plain text to" in text for text in said)


def test_unix_socket_needs_no_certificate(given: Federation, tmp_path: Path) -> None:
    """Nobody on another host can reach it."""
    with tempfile.TemporaryDirectory() as short:
        address = f"unix:{short}/fism.sock"
        with server(given.config, tmp_path / "run", "--listen", address) as running:
            one, two = (client(address, NAMES[i], given.files[i]) for i in range(2))
            assert (end(one)[0], end(two)[0], running.end()) == (0, 0, 0)


def test_renewed_certificate_is_used_without_a_restart(given: Federation, certs: Path, tmp_path: Path) -> None:
    """The server reads its files again when they change."""
    with server(given.config, tmp_path / "run", "--certs", certs) as running:
        port = int(running.address.rpartition(":")[2])

        def serial() -> int:
            pem = ssl.get_server_certificate(("127.0.0.1", port), timeout=QUICK)
            return x509.load_pem_x509_certificate(pem.encode()).serial_number

        before = serial()
        issue(certs, "server", renew=True)
        assert serial() != before


def test_health_is_told_over_tls(given: Federation, certs: Path, tmp_path: Path) -> None:
    """To whoever has a certificate."""
    with server(given.config, tmp_path / "run", "--certs", certs) as running:
        done = fism_command("health", at_localhost(running), "--certs", certs, "--name", "stranger")
    assert done.stdout == "serving\n"
