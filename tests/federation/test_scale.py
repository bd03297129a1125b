"""Long vectors and many clients."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np

from .harness import PATIENCE, Server, client, federation, server

SESSIONS = """
import asyncio, sys
import numpy as np
from fism_client.data.matrix import Matrix
from fism_client.session.participant import Participant
from fism_client.session.session import Session
from fism_client.data.shard import Shard

address, first, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])

def session(i):
    rng = np.random.default_rng(i)
    shard = Shard.of(rng.normal(size=(4, 5)), np.where(rng.random(4) < 0.5, -1.0, 1.0))
    return Session(address, Participant(f"c{i:03}", Matrix("rows", shard)))

async def take_part():
    return await asyncio.gather(*(session(i).take_part() for i in range(first, first + count)))

solutions = asyncio.run(take_part())
sys.exit(0 if len(solutions) == count and len({x.tobytes() for x in solutions}) == 1 else 1)
"""


def memory(running: Server, key: str) -> int:
    """Return a number of bytes from the kernel's account of the server."""
    lines = Path(f"/proc/{running.process.pid}/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(key + ":"))


def test_three_million_columns_work_in_slices(tmp_path: Path) -> None:
    """The server needs at most 3 S + 8 vectors above what it had at its start."""
    n, S = 3_000_000, 4
    given = federation(tmp_path, S, rounds=3)
    rng = np.random.default_rng(0)
    for file in given.files:
        columns = np.sort(rng.choice(n, (5, 20)), axis=1)
        np.savez(
            file, data=np.ones(100), indices=columns.ravel(), indptr=np.arange(0, 101, 20), shape=(5, n), b=np.ones(5)
        )
    with server(given.config, tmp_path / "run", "--set", 'federation.start="zero"') as running:
        before = memory(running, "VmRSS")
        clients = [client(running.address, f"c{i}", file) for i, file in enumerate(given.files)]
        peak = before
        while running.process.poll() is None:
            try:
                peak = max(peak, memory(running, "VmHWM"))
                running.process.wait(timeout=0.05)
            except subprocess.TimeoutExpired:
                continue
            except (OSError, StopIteration):
                break
        assert running.end() == 0, running.lines
        for one in clients:
            assert one.communicate(timeout=PATIENCE) is not None
            assert one.returncode == 0
    assert peak - before < (3 * S + 8) * 8 * n, f"{(peak - before) / (8 * n):.1f} vectors"
    with np.load(tmp_path / "run/model.npz") as model:
        assert model["x"].size == n
        assert np.count_nonzero(model["x"]) > 50


def test_128_sessions_at_once_finish(tmp_path: Path) -> None:
    """Sixteen in each of eight processes, fifty rounds; the server has no thread per client."""
    given = federation(tmp_path, 1, rounds=50)
    with server(given.config, tmp_path / "run", "--set", "federation.clients=128") as running:
        processes = [
            subprocess.Popen([sys.executable, "-c", SESSIONS, running.address, str(16 * i), "16"]) for i in range(8)
        ]
        running.wait_for("128 clients, 512 rows, 5 columns: the rounds begin", seconds=100)
        threads = len(list(Path(f"/proc/{running.process.pid}/task").iterdir()))
        assert [process.wait(timeout=100) for process in processes] == [0] * 8
        assert running.end() == 0
    assert threads < 40
    assert json.loads((tmp_path / "run/summary.json").read_text())["rounds"] == 50
