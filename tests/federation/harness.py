"""Real servers and clients as processes of this host."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

import fism
from fism_server.archive.presence import Presence

STEPS = fism.PowerSteps(gamma=0.3, a=0.7, lam=0.8, b=0.2)
BOUND = 2.0
PATIENCE = 60.0

CONFIG = """
[federation]
name = "test"
clients = {clients}
start = "random"
seed = 7
[inner]
loss = "{loss}"
constraint = {{ kind = "box", lo = -2.0, hi = 2.0 }}
[outer]
kind = "elastic-net"
l1 = 0.25
l2 = 1.5
[steps]
gamma = 0.3
a = 0.7
lambda = 0.8
b = 0.2
[stop]
rounds = {rounds}
[local]
shards = {shards}
"""


@dataclass(frozen=True)
class Federation:
    """Shards on disk and in memory, and a configuration for them."""

    folder: Path
    pairs: list[tuple[Any, Any]]
    files: list[Path]
    config: Path
    rounds: int
    names: list[str]

    def file(self, name: str) -> Path:
        """Return the shard of a client."""
        return self.files[self.names.index(name)]

    def solve(
        self,
        order: list[int] | None = None,
        *,
        rounds: int | None = None,
        first_round: int = 1,
        start: np.ndarray | None = None,
    ) -> fism.Result:
        """Return what one process makes of the same shards, in this order."""
        problem = fism.Problem("logistic", fism.Box(-BOUND, BOUND), fism.ElasticNet(0.25, 1.5))
        n = self.pairs[0][0].shape[1]
        if start is None:
            start = np.random.default_rng(7).uniform(np.full(n, -BOUND), np.full(n, BOUND))
        pairs = [self.pairs[i] for i in order] if order else self.pairs
        rounds = self.rounds if rounds is None else rounds
        return fism.solve(problem, pairs, steps=STEPS, rounds=rounds, first_round=first_round, start=start)


def federation(
    folder: Path, count: int, *, n: int = 5, rounds: int = 12, sparse: bool = False, names: list[str] | None = None
) -> Federation:
    """Write shards of unequal sizes, and a configuration."""
    rng = np.random.default_rng(count)
    pairs: list[tuple[Any, Any]] = []
    files = []
    for i in range(count):
        rows = 3 + 4 * i
        A = rng.normal(size=(rows, n)) * (rng.random((rows, n)) < (0.5 if sparse else 1.0))
        b = np.where(rng.random(rows) < 0.5, -1.0, 1.0)
        file = folder / f"shard-{i}.npz"
        if sparse:
            table = csr_array(A)
            np.savez(file, data=table.data, indices=table.indices, indptr=table.indptr, shape=table.shape, b=b)
            pairs.append((table, b))
        else:
            np.savez(file, A=A, b=b)
            pairs.append((A, b))
        files.append(file)
    config = folder / "run.toml"
    listed = json.dumps(names) if names else count
    shards = json.dumps([file.name for file in files])
    config.write_text(CONFIG.format(clients=listed, rounds=rounds, shards=shards, loss="logistic"))
    return Federation(folder, pairs, files, config, rounds, names or [f"c{i}" for i in range(count)])


def fism_command(*arguments: object, timeout: float = PATIENCE) -> subprocess.CompletedProcess[str]:
    """Run ``fism`` to its end."""
    command = [sys.executable, "-m", "fism", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)


def popen(*arguments: object) -> subprocess.Popen[str]:
    """Start ``fism``."""
    command = [sys.executable, "-m", "fism", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def end(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Wait for a process; return its exit code and what it said."""
    out, err = process.communicate(timeout=PATIENCE)
    return process.returncode, out, err


@dataclass
class Server:
    """A running ``fism server``."""

    process: subprocess.Popen[str]
    out: Path
    lines: list[str] = field(default_factory=list)
    address: str = ""
    _heard: threading.Condition = field(default_factory=threading.Condition)

    def listen(self) -> None:
        """Read its lines in the background."""
        threading.Thread(target=self._read, daemon=True).start()
        self.address = self.wait_for(r"listening on (\S+)").group(1)

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            with self._heard:
                self.lines.append(line.rstrip())
                self._heard.notify_all()

    def wait_for(self, pattern: str, seconds: float = PATIENCE) -> re.Match[str]:
        """Return the first match of ``pattern`` in what the server says."""

        def found() -> re.Match[str] | None:
            return next((match for line in list(self.lines) if (match := re.search(pattern, line))), None)

        with self._heard:
            assert self._heard.wait_for(lambda: found() is not None, seconds), f"no {pattern!r} in {self.lines}"
        match = found()
        assert match is not None
        return match

    def end(self) -> int:
        """Wait for it; return its exit code."""
        return self.process.wait(timeout=PATIENCE)


def server(config: Path, out: Path, *arguments: object) -> AbstractContextManager[Server]:
    """Run ``fism server`` on a free port; nothing of it is left at the end."""
    return serving(out, config, "--out", out, *arguments)


def resumed(out: Path, *arguments: object, listen: str = "127.0.0.1:0") -> AbstractContextManager[Server]:
    """Run ``fism server --resume``."""
    return serving(out, "--resume", out, *arguments, listen=listen)


@contextmanager
def serving(out: Path, *arguments: object, listen: str = "127.0.0.1:0") -> Iterator[Server]:
    """Run ``fism server`` with these arguments."""
    process = popen("server", "--listen", listen, *arguments)
    running = Server(process, out)
    try:
        running.listen()
        yield running
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()


@contextmanager
def clients(address: str, given: Federation, *arguments: object) -> Iterator[dict[str, subprocess.Popen[str]]]:
    """Start a client for every shard, under the name that the configuration gives it; none is left at the end.

    What is put in the place of one is ended too.
    """
    running = {name: client(address, name, given.file(name), *arguments) for name in given.names}
    try:
        yield running
    finally:
        for process in running.values():
            process.kill()
            process.communicate()


def client(address: str, name: str, data: Path, *arguments: object) -> subprocess.Popen[str]:
    """Start ``fism client``."""
    return popen("client", "--server", address, "--name", name, "--data", data, *arguments)


def assert_same_bytes(out: Path, expected: fism.Result) -> None:
    """Compare a run's model and history with those of one process, to the last bit."""
    with np.load(out / "model.npz", allow_pickle=False) as model:
        for name in ("x", "weighted", "average"):
            assert model[name].tobytes() == getattr(expected, name).tobytes(), name
    with sqlite3.connect(out / "run.sqlite") as database:
        rows = database.execute("SELECT inner, outer, change FROM rounds ORDER BY round").fetchall()
    database.close()
    for i, name in enumerate(("inner", "outer", "change")):
        assert np.array([row[i] for row in rows]).tobytes() == expected.history[name].tobytes(), name
    summary = json.loads((out / "summary.json").read_text())
    assert (summary["inner"], summary["outer"]) == (expected.inner, expected.outer)


def facts(out: Path, query: str) -> list[Any]:
    """Return what a run's database answers."""
    database = sqlite3.connect(f"file:{out}/run.sqlite?mode=ro", uri=True)
    try:
        return database.execute(query).fetchall()
    finally:
        database.close()


def present(out: Path) -> list[str]:
    """Return who had an open stream when that was last written down."""
    rows = facts(out, f"SELECT value FROM run WHERE key = '{Presence.KEY}'")
    return [name for (value,) in rows for name in json.loads(value)["present"]]


def events(out: Path) -> list[tuple[str, str]]:
    """Return the kind and the client of every event."""
    return facts(out, "SELECT kind, client FROM events ORDER BY id")


def children(pid: int) -> list[int]:
    """Return the processes that ``pid`` has started."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def alive(pid: int) -> bool:
    """Whether a process runs (one that is dead and not yet fetched does not)."""
    try:
        return " Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


def interrupt(process: subprocess.Popen[str]) -> None:
    """Press Ctrl-C."""
    os.kill(process.pid, signal.SIGINT)


def until(holds: Callable[[], bool], seconds: float = PATIENCE) -> None:
    """Wait for something to hold."""
    limit = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < limit, "it did not come to hold"
        time.sleep(0.02)


def rounds_done(out: Path) -> int:
    """Return how far a run's database says it is."""
    try:
        return int(facts(out, "SELECT max(round) FROM state")[0][0] or 0)
    except sqlite3.Error:
        return 0
