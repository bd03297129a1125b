"""Many rounds: nothing grows."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from ..federation.harness import assert_same_bytes, clients, end, federation, rounds_done, server, until


class Use(NamedTuple):
    """What a process has of the machine."""

    memory: int
    threads: int
    handles: int


def use(pid: int) -> Use:
    """Return what a process has now."""
    process = Path(f"/proc/{pid}")
    pages = int((process / "statm").read_text().split()[1])
    return Use(4096 * pages, len(list((process / "task").iterdir())), len(list((process / "fd").iterdir())))


@pytest.mark.long
def test_five_thousand_rounds_leave_both_ends_as_they_were(tmp_path: Path) -> None:
    """Memory, threads and file handles of the server and of every client, of eight."""
    given, out = federation(tmp_path, 8, rounds=5000), tmp_path / "run"
    with server(given.config, out) as running, clients(running.address, given) as running_clients:
        pids = [running.process.pid, *(one.pid for one in running_clients.values())]
        until(lambda: rounds_done(out) > 500, 200)
        before = [use(pid) for pid in pids]
        until(lambda: rounds_done(out) > 4500, 300)
        after = [use(pid) for pid in pids]
        assert [end(one)[0] for one in running_clients.values()] == [0] * 8
        assert running.end() == 0
    for first, last in zip(before, after, strict=True):
        assert last.memory - first.memory < 4e6
        assert last.threads <= first.threads + 2
        assert last.handles <= first.handles + 2
    assert_same_bytes(out, given.solve())
