"""A server that is killed: resumed from its database, the model has the bytes of an undisturbed run."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from fism_server.archive.reader import load
from fism_server.archive.writer import Archive

from ..federation.harness import (
    assert_same_bytes,
    client,
    clients,
    end,
    federation,
    fism_command,
    interrupt,
    popen,
    resumed,
    rounds_done,
    server,
    until,
)

KILLS = 20


@pytest.mark.long
def test_killed_server_changes_no_byte(tmp_path: Path) -> None:
    """Twenty times at any moment; the clients wait, and come back by themselves."""
    given = federation(tmp_path, 2, rounds=20_000)
    out, rng = tmp_path / "run", random.Random(9)  # noqa: S311  # moments, not secrets
    with server(given.config, out) as first:
        address = first.address
        with clients(address, given) as running_clients:
            until(lambda: rounds_done(out) > 10)
            first.process.kill()
            for _ in range(KILLS - 1):
                before = rounds_done(out)
                with resumed(out, listen=address) as again:
                    until(lambda: rounds_done(out) > before + 10)  # noqa: B023
                    time.sleep(rng.uniform(0.0, 0.05))  # any moment, that of a transaction too
                    again.process.kill()
            with resumed(out, listen=address) as last:
                assert [end(one)[0] for one in running_clients.values()] == [0, 0]
                assert last.end() == 0
    assert_same_bytes(out, given.solve())


SAVING = """
import sys
from pathlib import Path
import numpy as np
from fism_server.algorithm.methods.fism import FismState
from fism_server.algorithm.record import Record
from fism_server.archive.writer import Archive

archive = Archive.create(Path(sys.argv[1]), {})
progress = FismState.at(1, np.zeros(300_000))
archive.begin([], progress.state())
print("saving", flush=True)
while True:
    k = progress.round
    progress.advance(Record(k, 1.0, 1.0, 0.0, 0.0, 0.0), np.full(300_000, float(k + 1)))
    archive._due = 0.0
    archive.add(progress.last, 0.0, [], [], progress.state)
"""


def test_server_killed_inside_a_transaction_leaves_a_whole_state(tmp_path: Path) -> None:
    """A process that does nothing but save long vectors, killed twenty times: x, sums and records are of one round."""
    rng = random.Random(2)  # noqa: S311  # moments, not secrets
    for i in range(KILLS):
        folder = tmp_path / str(i)
        folder.mkdir()
        process = subprocess.Popen([sys.executable, "-c", SAVING, str(folder)], stdout=subprocess.PIPE)
        assert process.stdout is not None
        assert process.stdout.readline() == b"saving\n"
        time.sleep(rng.uniform(0.05, 0.25))  # any moment
        process.kill()
        process.communicate()
        archive = Archive.open(folder)
        execute = archive.database.connection.execute
        rounds = [round_ for (round_,) in execute("SELECT round FROM rounds ORDER BY round")]
        execute(
            "INSERT INTO clients VALUES (0, 'a', 1, 1, 1, x'', NULL)"  # a run with clients has a state
        )
        state = load(archive.database).state
        archive.close()
        assert state is not None
        k = state.round
        assert rounds == list(range(1, k))
        assert np.all(state.x == (k if k > 1 else 0))
        assert np.all(state.vectors["gamma_sum_x"] == sum(range(2, k)))
        assert np.all(state.vectors["k_sum_x"] == sum(j * j for j in range(2, k)))


@pytest.fixture
def interrupted(tmp_path: Path) -> Path:
    """Return the folder of a run whose server was killed in the middle."""
    given = federation(tmp_path, 2, rounds=100_000)
    with server(given.config, tmp_path / "run") as running, clients(running.address, given):
        until(lambda: rounds_done(tmp_path / "run") > 5)
        running.process.kill()
    return tmp_path / "run"


def test_resuming_with_another_configuration_is_refused_with_what_differs(interrupted: Path) -> None:
    """Every key and both values; limits may be others."""
    config = interrupted.parent / "run.toml"
    done = fism_command("server", config, "--resume", interrupted, "--set", "steps.gamma=0.5", "--set", "outer.l1=2")
    assert done.returncode == 2
    assert "steps.gamma was 0.3 and is 0.5" in done.stderr
    assert "outer.l1 was 0.25 and is 2" in done.stderr
    done = fism_command("server", "--resume", interrupted, "--set", "stop.rounds=7")
    assert done.returncode == 2
    assert "stop.rounds was 100000 and is 7" in done.stderr
    absent = ("--set", 'limits.on_absence="stop"', "--set", "limits.absence_seconds=0.2")
    done = fism_command("server", config, "--resume", interrupted, "--listen", "127.0.0.1:0", *absent)
    assert done.returncode == 4
    assert "c0, c1 absent for over 0.2 s, and limits.on_absence is stop" in done.stderr


def test_resuming_with_other_rows_is_refused(interrupted: Path) -> None:
    """Of the same number, by their digest; and another name is none of the run's."""
    given = federation(interrupted.parent, 2)
    with np.load(given.files[0]) as shard:
        np.savez(given.files[0], A=shard["A"] + 1e-12, b=shard["b"])
    with resumed(interrupted) as running:
        code, _, said = end(client(running.address, "c0", given.files[0]))
        assert code == 3
        assert "'c0' began the run with other rows" in said
        code, _, said = end(client(running.address, "c7", given.files[1]))
        assert code == 3
        assert "the run has its 2 clients" in said


def test_what_cannot_be_resumed_is_told(interrupted: Path, tmp_path: Path) -> None:
    """No run, a run that another server has, both --out and --resume, nothing to run at all."""
    with resumed(interrupted) as running:
        done = fism_command("server", "--resume", interrupted, "--listen", "127.0.0.1:0")
        assert done.returncode == 2
        assert f"another server is running in {interrupted}" in done.stderr
        running.process.kill()
    for arguments, reason in (
        (("--resume", tmp_path), "there is no run to resume"),
        (("--resume", interrupted, "--out", tmp_path / "x"), "give only one of them"),
        ((), "give the run's TOML file, or --resume"),
        ((tmp_path / "run.toml", "--out", interrupted), "resume it with --resume"),
    ):
        done = fism_command("server", *arguments)
        assert done.returncode == 2
        assert reason in done.stderr


def test_interrupted_local_run_is_resumed_to_the_same_bytes(tmp_path: Path) -> None:
    """`fism run --resume`, and a finished run is not resumed."""
    given = federation(tmp_path, 2, rounds=2500)
    process = popen("run", given.config, "--out", tmp_path / "run")
    until(lambda: rounds_done(tmp_path / "run") > 5)
    interrupt(process)
    assert end(process)[0] == 130
    done = fism_command("run", "--resume", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    expected = given.solve()
    assert_same_bytes(tmp_path / "run", expected)
    done = fism_command("run", "--resume", tmp_path / "run")
    assert done.returncode == 2
    assert "is finished; its model is" in done.stderr


OWN = """
import numpy as np
import fism


class Secret(fism.OuterObjective):
    smooth = True
    modulus = 1.0

    def value(self, x):
        return float("inf")

    def subgradient(self, x):
        return x
"""


def test_clients_are_not_told_why_a_run_failed_at_the_server(tmp_path: Path) -> None:
    """It may tell of H; the coordinator is told."""
    given = federation(tmp_path, 1)
    (tmp_path / "own.py").write_text(OWN)
    text = given.config.read_text().replace('kind = "elastic-net"\nl1 = 0.25\nl2 = 1.5', 'kind = "own:Secret"')
    given.config.write_text(text)
    with server(given.config, tmp_path / "run") as running:
        code, _, said = end(client(running.address, "c0", given.files[0]))
        assert running.end() == 4
        running.wait_for("error: round 1 overflowed .*H = inf")
    assert code == 4
    assert "the server stopped the run: it failed; ask its coordinator for details" in said
    assert "inf" not in said


@pytest.mark.long
def test_client_that_waited_longer_than_its_patience_comes_back(tmp_path: Path) -> None:
    """Patience is for a server that cannot be reached, not for one that has nothing to say yet."""
    given = federation(tmp_path, 2)
    out = tmp_path / "run"
    with server(given.config, out) as running:
        early = client(running.address, "c0", given.files[0], "--patience", 6)
        running.wait_for("waiting for 1 more, ")
        with pytest.raises(subprocess.TimeoutExpired):
            early.wait(timeout=8)
        running.process.kill()
        with resumed(out, listen=running.address) as again:
            late = client(again.address, "c1", given.files[1])
            assert (end(early)[0], end(late)[0], again.end()) == (0, 0, 0)
    assert_same_bytes(out, given.solve())


def test_server_killed_before_the_rounds_is_resumed_too(tmp_path: Path) -> None:
    """It then waits for its clients as a new one does."""
    given = federation(tmp_path, 2)
    with server(given.config, tmp_path / "run") as running:
        running.process.kill()
    with resumed(tmp_path / "run") as running, clients(running.address, given) as running_clients:
        assert [end(one)[0] for one in running_clients.values()] == [0, 0]
        assert running.end() == 0
    assert_same_bytes(tmp_path / "run", given.solve())
