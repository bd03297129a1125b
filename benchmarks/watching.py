"""The cost of watching a run: its rounds per second with and without a viewer on the live page, alternately."""

from __future__ import annotations

import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from urllib.parse import urlsplit

import numpy as np

from timing import Ratio

CLIENTS, ROWS, COLUMNS = 2, 2000, 100
TURNS, SECONDS = 16, 3.0
CONFIG = """
[federation]
name = "watched"
clients = {clients}
[inner]
loss = "logistic"
constraint = {{ kind = "box", lo = -10.0, hi = 10.0 }}
[outer]
kind = "squared-norm"
[steps]
gamma = 0.1
a = 0.7
lambda = 1.0
b = 0.2
[stop]
rounds = 10000000
[local]
shards = {shards}
"""


def watching() -> Iterator[Ratio]:
    """Yield how much slower rounds are with a viewer, over pairs of consecutive turns in one run."""
    with tempfile.TemporaryDirectory() as scratch, _run(Path(scratch)) as (page, metrics):
        with _viewer(page):
            time.sleep(2 * SECONDS)  # until everything is imported and the first view is drawn
        slower = []
        for _ in range(TURNS):
            alone = _rate(metrics)
            with _viewer(page):
                slower.append(alone / _rate(metrics))
    yield Ratio("rounds with a viewer on the live page, over without", statistics.median(slower), 1.02, most=True)


@contextmanager
def _run(folder: Path) -> Iterator[tuple[str, str]]:
    rng = np.random.default_rng(0)
    names = [f"shard-{i}.npz" for i in range(CLIENTS)]
    for name in names:
        np.savez(folder / name, A=rng.normal(size=(ROWS, COLUMNS)), b=rng.choice([-1.0, 1.0], ROWS))
    config = folder / "run.toml"
    config.write_text(CONFIG.format(clients=CLIENTS, shards=names))
    command = [
        sys.executable,
        "-m",
        "fism",
        "run",
        config,
        "--out",
        folder / "run",
        "--watch",
        "--metrics",
        "127.0.0.1:0",
    ]
    process = subprocess.Popen(list(map(str, command)), stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    said = ""
    try:
        for line in process.stderr:
            said += line
            if "the rounds begin" in line:
                break
        Thread(target=process.stderr.read, daemon=True).start()
        page, metrics = re.search(r"watch it at (\S+)", said), re.search(r"metrics on (\S+)", said)
        assert page is not None
        assert metrics is not None
        yield page[1], f"http://{metrics[1]}/metrics"
    finally:
        process.terminate()
        process.wait()


@contextmanager
def _viewer(page: str) -> Iterator[None]:
    """Receive all views, as a browser does, but draw none: drawing costs only the viewer."""
    place = urlsplit(page)
    with socket.create_connection((place.hostname or "", place.port or 0), timeout=60) as connection:
        connection.sendall(f"GET /events HTTP/1.0\r\nHost: {place.netloc}\r\n\r\n".encode())
        reading = Thread(target=lambda: [None for _ in iter(lambda: connection.recv(65536), b"")], daemon=True)
        reading.start()
        yield
        connection.shutdown(socket.SHUT_RDWR)
        reading.join()


def _rate(metrics: str) -> float:
    begin, first = time.perf_counter(), _rounds(metrics)
    time.sleep(SECONDS)
    return (_rounds(metrics) - first) / (time.perf_counter() - begin)


def _rounds(metrics: str) -> float:
    with urllib.request.urlopen(metrics, timeout=60) as answer:  # noqa: S310  # our own
        found = re.search(r"^fism_rounds_total ([\d.eE+]+)$", answer.read().decode(), re.MULTILINE)
    assert found is not None
    return float(found[1])


if __name__ == "__main__":
    for ratio in watching():
        print(ratio)
