"""A federation over separate hosts, with a network as between sites: 40 ms away, one frame in a hundred lost."""

from __future__ import annotations

import shutil
from contextlib import ExitStack
from pathlib import Path

import pytest

from ..federation.harness import Server, assert_same_bytes, end, events, facts, federation, rounds_done, until
from .hosts import DELAY, SERVER, network

ROUNDS = 150


@pytest.mark.long
def test_cut_and_healed_wire_changes_no_byte(tmp_path: Path) -> None:
    """A server and three clients on four hosts, by TLS; one wire is cut, and healed once that was noticed."""
    given = federation(tmp_path, 3, rounds=ROUNDS, names=["north", "east", "south"])
    out = tmp_path / "run"
    with network(3) as (server_host, hosts), ExitStack() as stack:
        server_host.fism("certs", "init", "--folder", tmp_path / "certs")
        server_host.fism("certs", "issue", "server", "--host", SERVER, "--folder", tmp_path / "certs")
        process = server_host.popen(
            "server", given.config, "--certs", tmp_path / "certs", "--listen", "0.0.0.0:50051", "--out", out
        )
        stack.callback(process.communicate)
        stack.callback(process.kill)
        running = Server(process, out)
        running.listen()
        clients = []
        for name, host in zip(given.names, hosts, strict=True):
            server_host.fism("certs", "issue", name, "--folder", tmp_path / "certs")
            site = tmp_path / name
            site.mkdir()
            for file in ("ca.pem", f"{name}.pem", f"{name}.key"):
                shutil.copy(tmp_path / "certs" / file, site)
            who = ("--server", f"{SERVER}:50051", "--certs", site, "--name", name)
            clients.append(host.popen("client", *who, "--data", given.file(name)))
            stack.callback(clients[-1].communicate)
            stack.callback(clients[-1].kill)
        wire = hosts[1].wire
        assert wire is not None
        until(lambda: rounds_done(out) > 3)
        wire.is_cut = True
        until(lambda: ("lost", "east") in events(out))
        wire.is_cut = False
        assert [end(client)[0] for client in clients] == [0, 0, 0]
        assert running.end() == 0
        assert all(host.wire is not None and host.wire.lost > 0 for host in hosts)
    assert ("returned", "east") in events(out)
    assert min(seconds for (seconds,) in facts(out, "SELECT seconds FROM rounds")) > 2 * DELAY
    assert_same_bytes(out, given.solve())
