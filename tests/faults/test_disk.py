"""A disk that is full, a database that is locked or damaged: a clear error, and the last good state can be read."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from fism_server.archive.states import newest_state

from ..federation.harness import (
    Federation,
    assert_same_bytes,
    clients,
    end,
    federation,
    fism_command,
    resumed,
    rounds_done,
    server,
    until,
)

ROUNDS = 2500


@pytest.fixture
def given(tmp_path: Path) -> Federation:
    """Return a federation of two."""
    return federation(tmp_path, 2, rounds=ROUNDS)


def readable_round(out: Path) -> int:
    """Return the round of the state that a resumed run would begin with."""
    with closing(sqlite3.connect(out / "run.sqlite")) as database:
        state = newest_state(database)
    assert state is not None
    return state.round


def finish(given: Federation, out: Path) -> None:
    """Resume a run, and see that it ends with the bytes of an undisturbed one."""
    with resumed(out) as running, clients(running.address, given) as running_clients:
        assert [end(one)[0] for one in running_clients.values()] == [0, 0]
        assert running.end() == 0
    assert_same_bytes(out, given.solve())


LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, 150_000))
from fism.cli.main import app
sys.argv = ["fism", *sys.argv[1:]]
app()
"""


def test_disk_that_fills_up_ends_the_run_with_its_state_saved(given: Federation, tmp_path: Path) -> None:
    """Files may not grow beyond a size that some rounds reach; with space again the run is resumed."""
    out = tmp_path / "run"
    # Compiled kernels are larger than the limit: they must be in the cache before.
    warm = fism_command("run", given.config, "--out", tmp_path / "warm", "--set", "stop.rounds=1")
    assert warm.returncode == 0, warm.stderr
    command = [sys.executable, "-c", LIMITED, "run", str(given.config), "--out", str(out)]
    # Python does not notice that it wrote half of a .pyc file, and nobody could import that module again.
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False, env=environment)
    assert done.returncode == 4
    assert f"error: cannot write {out}/run.sqlite: " in done.stderr
    assert "what was saved before is still in it: check that the disk has space" in done.stderr
    assert "Traceback" not in done.stderr
    assert 1 < readable_round(out) <= ROUNDS
    assert fism_command("run", "--resume", out).returncode == 0
    assert_same_bytes(out, given.solve())


def mounts_are_possible() -> bool:
    """Whether this user may have a file system of his own."""
    try:
        command = ["unshare", "-rm", "mount", "-t", "tmpfs", "none", "/mnt"]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not mounts_are_possible(), reason="needs a mount namespace")
def test_full_file_system_ends_the_run_with_its_state_saved(given: Federation, tmp_path: Path) -> None:
    """A real one of 256 KiB; what is in it can be read."""
    disk, kept = tmp_path / "disk", tmp_path / "kept"
    disk.mkdir()
    script = (
        f"mount -t tmpfs -o size=256k none {disk} && "
        f"{sys.executable} -m fism run {given.config} --out {disk}/run; code=$?; cp -r {disk}/run {kept}; exit $code"
    )
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", script], capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 4
    assert "database or disk is full" in done.stderr
    assert "Traceback" not in done.stderr
    assert readable_round(kept) > 1
    assert fism_command("run", "--resume", kept).returncode == 0
    assert_same_bytes(kept, given.solve())


@pytest.mark.long
def test_locked_database_ends_the_run_with_its_state_saved(given: Federation, tmp_path: Path) -> None:
    """Another process that writes to it and does not end."""
    out = tmp_path / "run"
    with server(given.config, out) as running, clients(running.address, given) as running_clients:
        until(lambda: rounds_done(out) > 20)
        other = sqlite3.connect(out / "run.sqlite", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        assert running.end() == 4
        running.wait_for("error: cannot write .*run.sqlite: database is locked; what was saved before")
        assert [end(one)[0] for one in running_clients.values()] == [4, 4]
        other.close()
    assert readable_round(out) > 20
    finish(given, out)


@pytest.fixture
def broken_off(given: Federation, tmp_path: Path) -> Path:
    """Return the folder of a run whose server was killed, with all of its database in one file."""
    out = tmp_path / "run"
    with server(given.config, out) as running, clients(running.address, given):
        until(lambda: rounds_done(out) > 20)
        running.process.kill()
    database = sqlite3.connect(out / "run.sqlite")
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()
    return out


def test_state_that_is_damaged_gives_way_to_the_one_before(given: Federation, broken_off: Path) -> None:
    """A bit of the newest x has flipped: its checksum tells, and the rounds after the older state are done again."""
    database = sqlite3.connect(broken_off / "run.sqlite", isolation_level=None)
    newest, older = database.execute("SELECT slot, round FROM state ORDER BY saved DESC").fetchall()
    (x,) = database.execute("SELECT entries FROM vectors WHERE name = 'x' AND slot = ?", newest[:1]).fetchone()
    changed = bytes([x[0] ^ 1]) + x[1:]
    database.execute("UPDATE vectors SET entries = ? WHERE name = 'x' AND slot = ?", (changed, newest[0]))
    database.close()
    assert older[1] < newest[1]
    assert readable_round(broken_off) == older[1]
    finish(given, broken_off)


@pytest.mark.parametrize("damage", ["no database", "cut off", "overwritten", "both states"])
def test_damaged_database_is_told_and_left_as_it_is(damage: str, broken_off: Path) -> None:
    """Nothing is resumed from it, and nothing is written to it."""
    file = broken_off / "run.sqlite"
    content = file.read_bytes()
    match damage:
        case "no database":
            file.write_bytes(b"this is text, and not a database\n" * 100)
        case "cut off":
            file.write_bytes(content[: len(content) // 2])
        case "overwritten":
            file.write_bytes(content[:4096] + b"\xaa" * 8192 + content[3 * 4096 :])
        case "both states":
            database = sqlite3.connect(file)
            database.execute("UPDATE state SET crc = crc + 1")
            database.commit()
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            database.close()
    before = file.read_bytes()
    done = fism_command("server", "--resume", broken_off, "--listen", "127.0.0.1:0")
    assert done.returncode == 4
    assert f"error: {file} is damaged" in done.stderr
    assert "restore it from a backup, or start a new run" in done.stderr
    assert "Traceback" not in done.stderr
    assert file.read_bytes() == before


def test_damaged_configuration_is_told(broken_off: Path) -> None:
    """The file beside the database that says what the run was begun with."""
    (broken_off / "config.json").write_text("{")
    done = fism_command("server", "--resume", broken_off)
    assert done.returncode == 2
    assert "cannot read the configuration of the run in" in done.stderr


def test_changed_input_file_is_told(tmp_path: Path) -> None:
    """A vector that the configuration names is part of it."""
    given = federation(tmp_path, 1, rounds=100_000)
    np.save(tmp_path / "start.npy", np.zeros(5))
    out, start = tmp_path / "run", ("--set", 'federation.start="start.npy"')
    with server(given.config, out, *start) as running, clients(running.address, given):
        until(lambda: rounds_done(out) > 5)
        running.process.kill()
    np.save(tmp_path / "start.npy", np.ones(5))
    done = fism_command("server", "--resume", out)
    assert done.returncode == 2
    assert "the file of federation.start has changed" in done.stderr


def test_folder_that_cannot_be_made_or_written_is_told(given: Federation, tmp_path: Path) -> None:
    """Before anything is started."""
    (tmp_path / "file").write_text("")
    for out in (tmp_path / "file" / "run", Path("/proc/run")):
        done = fism_command("run", given.config, "--out", out)
        assert done.returncode == 2
        assert f"cannot make the run folder {out}" in done.stderr


def test_configuration_with_h_is_for_its_owner_alone(broken_off: Path) -> None:
    """The database can be given away; this file says what H is."""
    file = broken_off / "config.json"
    assert file.stat().st_mode & 0o777 == 0o600
    assert json.loads(file.read_text())["config"]["outer"]["l1"] == 0.25
    shutil.rmtree(broken_off)
