"""Processes that freeze and thaw, on both sides."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from ..federation.harness import (
    assert_same_bytes,
    clients,
    end,
    events,
    federation,
    popen,
    rounds_done,
    server,
    until,
)

ROUND_LIMIT = ("--set", "limits.round_seconds=1.5")
NOTICED = 25.0
"""Seconds in which a frozen peer is noticed by its silence alone: fifteen, on a busy machine."""


def test_client_frozen_beyond_the_rounds_limit_is_lost_and_comes_back(tmp_path: Path) -> None:
    """Its deadline ends the stream; thawed, it joins again, and the bytes are the same."""
    given = federation(tmp_path, 2, rounds=3000)
    with (
        server(given.config, tmp_path / "run", *ROUND_LIMIT) as running,
        clients(running.address, given) as running_clients,
    ):
        until(lambda: rounds_done(tmp_path / "run") > 20)
        os.kill(running_clients["c0"].pid, signal.SIGSTOP)
        running.wait_for(r"lost: no answer in 1.5 s client=c0")
        running.wait_for(r"waiting for c0, \d+ s")
        os.kill(running_clients["c0"].pid, signal.SIGCONT)
        assert [end(one)[0] for one in running_clients.values()] == [0, 0]
        assert running.end() == 0
    assert_same_bytes(tmp_path / "run", given.solve())
    assert events(tmp_path / "run") == [("lost", "c0"), ("returned", "c0")]


SLOW = """
import math
import fism


def value(z, b):
    waste = 0.0
    for i in range(50_000_000):
        waste += math.sin(z + i)
    return (z - b) ** 2 / 2 + 1e-300 * waste


loss = fism.CustomLoss("slow", value, lambda z, b: z - b)
"""


@pytest.mark.long
def test_client_that_misses_the_deadline_again_and_again_is_put_out(tmp_path: Path) -> None:
    """It is told what to change; the run waits for it to be started anew."""
    given = federation(tmp_path, 1)
    (tmp_path / "slow.py").write_text(SLOW)
    given.config.write_text(given.config.read_text().replace('"logistic"', '"slow:loss"'))
    settings = tmp_path / "client.toml"
    settings.write_text(f'name = "c0"\ndata = "{given.files[0].name}"\nloss = "slow:loss"\n')
    with server(given.config, tmp_path / "run", "--set", "limits.round_seconds=0.5") as running:
        code, _, said = end(popen("client", settings, "--server", running.address))
        assert code == 3, said
        assert "'c0' is excluded: 3 times no answer in 0.5 s in one round: raise limits.round_seconds" in said
        running.wait_for(r"waiting for c0, \d+ s")
    kinds = [kind for kind, _ in events(tmp_path / "run")]
    assert kinds == ["lost", "returned", "lost", "returned", "excluded", "refused"]


@pytest.mark.long
def test_frozen_client_is_noticed_by_its_silence(tmp_path: Path) -> None:
    """Long before the round's limit: it answers no ping."""
    given = federation(tmp_path, 2, rounds=3000)
    with server(given.config, tmp_path / "run") as running, clients(running.address, given) as running_clients:
        until(lambda: rounds_done(tmp_path / "run") > 20)
        os.kill(running_clients["c1"].pid, signal.SIGSTOP)
        running.wait_for(r"lost: the connection is lost client=c1", NOTICED)
        os.kill(running_clients["c1"].pid, signal.SIGCONT)
        assert [end(one)[0] for one in running_clients.values()] == [0, 0]
        assert running.end() == 0
    assert_same_bytes(tmp_path / "run", given.solve())


@pytest.mark.long
def test_frozen_server_is_noticed_and_held_against_nobody(tmp_path: Path) -> None:
    """Clients look for it; thawed after all limits, it goes on with all of them, though it may not wait for any."""
    given = federation(tmp_path, 2, rounds=3000)
    limits = (
        "--set",
        "limits.round_seconds=10",
        "--set",
        "limits.absence_seconds=8",
        "--set",
        'limits.on_absence="stop"',
    )
    with server(given.config, tmp_path / "run", *limits) as running, clients(running.address, given) as running_clients:
        until(lambda: rounds_done(tmp_path / "run") > 20)
        running.process.send_signal(signal.SIGSTOP)
        began = time.monotonic()
        for one in running_clients.values():
            assert one.stderr is not None
            line = one.stderr.readline()
            while "trying again" not in line:
                line = one.stderr.readline()
        assert time.monotonic() - began < NOTICED
        running.process.send_signal(signal.SIGCONT)
        assert [end(one)[0] for one in running_clients.values()] == [0, 0]
        assert running.end() == 0
    assert_same_bytes(tmp_path / "run", given.solve())
