"""A round of a real federation without local work, against the fastest possible round."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from fism.certs import init, issue
from timing import Ratio

HERE = Path(__file__).parent
CLIENTS = 8
CONFIG = """
[federation]
clients = {clients}
[inner]
loss = "squared"
constraint = {{ kind = "box", lo = -1.0, hi = 1.0 }}
[outer]
kind = "squared-norm"
[steps]
gamma = 0.1
a = 0.7
lambda = 0.1
b = 0.2
[stop]
rounds = {rounds}
"""


def bare(n: int, rounds: int) -> float:
    """Return the median milliseconds of a bare round."""
    command = [sys.executable, str(HERE / "bare_exchange.py"), "server", str(n), str(CLIENTS), str(rounds)]
    # Its clients are killed at the end and print errors about it.
    return float(subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout)


def ours(n: int, rounds: int, *, tls: bool = False) -> float:
    """Return the median milliseconds of a round of `fism server` with clients that do no work."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "run.toml").write_text(CONFIG.format(clients=CLIENTS, rounds=rounds))
        command = [sys.executable, "-m", "fism", "server", str(folder / "run.toml"), "--listen", "127.0.0.1:0"]
        command += ["--out", str(folder / "run"), "--json"]
        certs = []
        if tls:
            init(folder)
            issue(folder, "server", ["127.0.0.1"])
            for i in range(CLIENTS):
                issue(folder, f"c{i}")
            command += ["--certs", str(folder)]
            certs = [str(folder)]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert server.stderr is not None
        address = server.stderr.readline().split()[-1]
        clients = [
            subprocess.Popen([sys.executable, str(HERE / "idle_client.py"), address, f"c{i}", str(n), *certs])
            for i in range(CLIENTS)
        ]
        out, _ = server.communicate()
        for client in clients:
            client.wait()
        return float(json.loads(out)["round_ms"])


def exchange() -> Iterator[Ratio]:
    """Yield our median round over the bare one, each the best of three, measured alternately."""
    for n, rounds in ((784, 500), (100_000, 60), (1_000_000, 15)):
        pairs = [(bare(n, rounds), ours(n, rounds)) for _ in range(3)]
        least, own = min(pair[0] for pair in pairs), min(pair[1] for pair in pairs)
        what = f"a round of 8 clients over a bare exchange, n = {n} ({own:.2f} over {least:.2f} ms)"
        yield Ratio(what, own / least, 1.25, most=True)
        safe = min(ours(n, rounds, tls=True) for _ in range(3))
        yield Ratio(f"the same with TLS over plain text, n = {n} ({safe:.2f} over {own:.2f} ms)", safe / own, None)
