"""Ctrl-C: the state is saved, nothing is left running."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import subprocess
import threading
import time
from pathlib import Path

import pytest

from fism_client.data.matrix import Matrix
from fism_client.data.readers.arrays import read_npz
from fism_client.session.participant import Participant
from fism_client.session.session import Session
from fism_common.wire.pb import federation_pb2 as pb

from ..faults.double import Double
from .harness import (
    PATIENCE,
    alive,
    children,
    client,
    end,
    events,
    federation,
    interrupt,
    popen,
    rounds_done,
    server,
    until,
)

LONG = 10**7
SLOW = """
import math
import fism


def value(z, b):
    total = z
    for i in range(10**11):
        total += math.sin(total)
    return total


slow = fism.CustomLoss("slow", value, lambda z, b: z - b)
"""


def started(out: Path, config: Path) -> tuple[subprocess.Popen[str], list[int]]:
    """Start a long local run; return it and its clients once rounds are done."""
    process = popen("run", config, "--out", out)
    until(lambda: rounds_done(out) > 3)
    return process, children(process.pid)


def test_interrupted_run_saves_its_state_and_ends_its_clients(tmp_path: Path) -> None:
    """Exit code 130, within the grace."""
    given = federation(tmp_path, 3, rounds=LONG)
    process, clients = started(tmp_path / "run", given.config)
    assert len(clients) == 3
    interrupt(process)
    began = time.monotonic()
    code, _, said = end(process)
    assert time.monotonic() - began < 10
    assert code == 130
    assert f"the run's state is saved in {tmp_path / 'run'}" in said
    assert not any(alive(pid) for pid in clients)
    with sqlite3.connect(tmp_path / "run/run.sqlite") as database:
        (round_,), (last,) = (
            database.execute(q).fetchone() for q in ("SELECT max(round) FROM state", "SELECT max(round) FROM rounds")
        )
    database.close()
    assert round_ == last + 1 > 3


def test_interrupted_server_tells_its_clients(tmp_path: Path) -> None:
    """They end with the code of a run that was stopped, and say why."""
    given = federation(tmp_path, 2, rounds=LONG)
    with server(given.config, tmp_path / "run") as running:
        clients = [client(running.address, f"c{i}", given.files[i]) for i in range(2)]
        until(lambda: rounds_done(tmp_path / "run") > 3)
        interrupt(running.process)
        assert running.end() == 130
        for one in clients:
            code, _, said = end(one)
            assert code == 4
            assert "the server stopped the run: the run was interrupted" in said


def test_interrupted_server_waits_for_its_clients_to_hang_up(tmp_path: Path) -> None:
    """One that is in the middle of its pass hears the goodbye after it, on a stream that is still open."""
    given = federation(tmp_path, 1, rounds=LONG)
    with server(given.config, tmp_path / "run") as running:
        double = Double(running.address, "c0", given.files[0])
        double.open()
        order = double.answer_until(2)
        interrupt(running.process)
        until(lambda: [kind for kind, _ in events(tmp_path / "run")] == ["stopped"])
        with pytest.raises(subprocess.TimeoutExpired):
            running.process.wait(timeout=1.0)
        double.send(double.right_answer(order))
        assert not double.finish().finished
        assert running.end() == 130
        double.close()


def test_finished_run_stays_finished_when_its_end_is_interrupted(tmp_path: Path) -> None:
    """While the server waits for a client that does not hang up: the model is there, and so are summary and report."""
    given, out = federation(tmp_path, 1), tmp_path / "run"
    with server(given.config, out) as running:
        double = Double(running.address, "c0", given.files[0])
        double.open()
        until_solution(double)
        until((out / "summary.json").exists)
        interrupt(running.process)
        assert running.end() == 0
        running.wait_for(r"model +")
        assert (out / "report.html").exists()
        double.close()


def test_failed_run_says_why_when_its_end_is_interrupted(tmp_path: Path) -> None:
    """And not that it was interrupted."""
    given, out = federation(tmp_path, 2, rounds=LONG), tmp_path / "run"
    stop = ("--set", 'limits.on_absence="stop"', "--set", "limits.absence_seconds=0.5")
    with server(given.config, out, *stop) as running:
        slow, lost = (Double(running.address, f"c{i}", given.files[i]) for i in range(2))
        for one in (slow, lost):
            one.open()
        slow.answer_until(1)
        lost.close()
        until(lambda: ("stopped", "") in events(out))
        interrupt(running.process)
        assert running.end() == 4
        running.wait_for("error: c1 absent for over 0.5 s, and limits.on_absence is stop")
        slow.close()


def test_client_that_comes_after_the_solution_gets_it(tmp_path: Path) -> None:
    """A new process of one that had answered, while the server waits for another one to hang up."""
    given, out = federation(tmp_path, 2), tmp_path / "run"
    with server(given.config, out, "--set", "limits.shutdown_seconds=60") as running:
        slow, gone = (Double(running.address, f"c{i}", given.files[i]) for i in range(2))
        for one in (slow, gone):
            one.open()
        closings = threading.Thread(target=until_solution, args=[slow])
        closings.start()
        until_solution(gone)
        closings.join()
        until((out / "summary.json").exists)
        gone.close()
        code, _, said = end(client(running.address, "c1", given.files[1], "--save", tmp_path / "mine.npz"))
        assert code == 0, said
        assert (tmp_path / "mine.npz").exists()
        slow.finish()
        assert running.end() == 0
        slow.close()


def until_solution(double: Double) -> None:
    """Answer all questions, the solution included, and do not hang up."""
    asked = pb.Question()
    while asked.kind != pb.Question.SOLUTION:
        asked = double.receive().question
        double.send(double.right_answer(asked))


def test_client_that_comes_back_to_an_interrupted_server_hears_goodbye(tmp_path: Path) -> None:
    """While the server waits for another one to hang up."""
    given = federation(tmp_path, 2, rounds=LONG)
    with server(given.config, tmp_path / "run") as running:
        slow, lost, back = (Double(running.address, f"c{i}", given.files[i]) for i in (0, 1, 1))
        slow.open()
        lost.open()
        slow.answer_until(1)
        lost.close()
        running.wait_for("lost: .* client=c1")
        interrupt(running.process)
        until(lambda: ("stopped", "") in events(tmp_path / "run"))
        back.open()
        assert not back.finish().finished
        assert not slow.finish().finished
        assert running.end() == 130
        slow.close()
        back.close()


def test_server_that_still_waits_can_be_interrupted(tmp_path: Path) -> None:
    """Before the first client has come."""
    given = federation(tmp_path, 2)
    with server(given.config, tmp_path / "run") as running:
        interrupt(running.process)
        assert running.end() == 130


def test_second_interrupt_ends_at_once(tmp_path: Path) -> None:
    """Also while a client that is frozen keeps the first from finishing."""
    given = federation(tmp_path, 2, rounds=LONG)
    process, clients = started(tmp_path / "run", given.config)
    os.kill(clients[0], signal.SIGSTOP)
    try:
        interrupt(process)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(timeout=1.0)
        interrupt(process)
        assert process.wait(timeout=5.0) == 130
    finally:
        os.kill(clients[0], signal.SIGCONT)
        for stream in (process.stdout, process.stderr):
            assert stream is not None
            stream.close()
    until(lambda: not any(alive(pid) for pid in clients))


def test_killed_run_leaves_no_client_behind(tmp_path: Path) -> None:
    """Whatever happens to the one that started them."""
    given = federation(tmp_path, 2, rounds=LONG)
    process, clients = started(tmp_path / "run", given.config)
    process.kill()
    end(process)
    until(lambda: not any(alive(pid) for pid in clients))


def test_client_may_be_told_to_end_at_any_moment(tmp_path: Path) -> None:
    """While it joins, opens its stream, waits for others: it goes, and the next one of its name is let in.

    Nobody is refused for it.
    """
    given = federation(tmp_path, 2)
    who = Participant("c0", Matrix("rows", read_npz(given.files[0])))

    async def go_after(seconds: float) -> None:
        session = Session(running.address, who)
        task = asyncio.create_task(session.take_part())
        await asyncio.sleep(seconds)
        session.leave(task)
        await asyncio.wait([task], timeout=PATIENCE)
        assert task.cancelled()

    async def go_often() -> None:
        for milliseconds in range(100):
            await go_after(milliseconds % 25 / 1000)

    with server(given.config, tmp_path / "run") as running:
        asyncio.run(go_often())
        processes = [client(running.address, f"c{i}", given.files[i]) for i in range(2)]
        assert [end(process)[0] for process in processes] == [0, 0]
        assert running.end() == 0
    assert "refused" not in {kind for kind, _ in events(tmp_path / "run")}


def test_client_in_a_long_pass_leaves_when_it_is_told_to(tmp_path: Path) -> None:
    """It says so, and does not wait for the pass."""
    given = federation(tmp_path, 1)
    (tmp_path / "own.py").write_text(SLOW)
    with server(given.config, tmp_path / "run", "--set", "inner.loss=own:slow") as running:
        (tmp_path / "client.toml").write_text(
            f'server = "{running.address}"\nname = "c0"\ndata = "{given.files[0]}"\nloss = "own:slow"\n'
        )
        process = popen("client", tmp_path / "client.toml")
        running.wait_for("the rounds begin")
        began = cpu_seconds(process.pid)
        until(lambda: cpu_seconds(process.pid) > began + 0.5)
        process.terminate()
        code, _, said = end(process)
        assert (code, said.splitlines()[-1]) == (130, "interrupted")
        running.wait_for(r"left: interrupted client=c0")


def cpu_seconds(pid: int) -> float:
    """Return how long a process has computed."""
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def test_client_that_is_told_to_end_says_that_it_leaves(tmp_path: Path) -> None:
    """By Ctrl-C or as service managers do it: the server knows that they went on purpose, and waits by name."""
    given = federation(tmp_path, 2, rounds=LONG)
    with server(given.config, tmp_path / "run") as running:
        clients = [client(running.address, f"c{i}", given.files[i]) for i in range(2)]
        until(lambda: rounds_done(tmp_path / "run") > 3)
        interrupt(clients[1])
        clients[0].terminate()
        for name, process in zip(("c0", "c1"), clients, strict=True):
            assert end(process)[0] == 130
            running.wait_for(rf"left: interrupted client={name}")
        running.wait_for(r"waiting for c[01]")  # not for one that had answered the round
