"""Which run `fism server --resume-latest` continues."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from fism_common.errors import ConfigError
from fism_server.archive.writer import Archive
from fism_server.cli import find_job
from fism_server.run.job import latest_unfinished

from ..federation.harness import federation


def run(folder: Path, **facts: str) -> Path:
    """Make a run with nothing done."""
    folder.mkdir(parents=True)
    Archive.create(folder, {"id": "1", "name": "a", **facts}).close()
    return folder


def test_latest_run_is_resumed_unless_it_is_finished(tmp_path: Path) -> None:
    """Older ones, other federations', and folders where no run was begun do not count."""
    assert latest_unfinished(tmp_path, "a") is None
    assert latest_unfinished(tmp_path / "nothing", "a") is None
    first = run(tmp_path / "a-20260101-000000")
    run(tmp_path / "a-b-20270101-000000")
    run(tmp_path / "a-copy")
    (tmp_path / "a-20280101-000000").mkdir()
    half_made = tmp_path / "a-20280101-000001/run.sqlite"
    half_made.parent.mkdir()
    sqlite3.connect(half_made).close()
    assert latest_unfinished(tmp_path, "a") == first
    second = run(tmp_path / "a-20260101-000001")
    assert latest_unfinished(tmp_path, "a") == second
    run(tmp_path / "a-20260101-000002", stopped="rounds")
    assert latest_unfinished(tmp_path, "a") is None


def test_resume_latest_begins_a_run_and_then_resumes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same command for the first start and for every later one; another problem is refused."""
    given = federation(tmp_path, 2)
    monkeypatch.chdir(tmp_path)
    first = find_job(given.config, [], None, None, latest=True)
    first.archive.close()
    again = find_job(given.config, [], None, None, latest=True)
    again.archive.close()
    assert (again.out, again.run_id) == (first.out, first.run_id)
    with pytest.raises(ConfigError, match=r"steps\.gamma was 0\.3 and is 5"):
        find_job(given.config, ["steps.gamma=5"], None, None, latest=True)


def test_run_is_resumed_by_the_version_that_began_it(tmp_path: Path) -> None:
    """Another one may keep its state otherwise, or round otherwise."""
    given = federation(tmp_path, 2)
    out = tmp_path / "run"
    job = find_job(given.config, [], out, None)
    job.archive.database.connection.execute("UPDATE run SET value = '\"0.0.9\"' WHERE key = 'version'")
    job.archive.close()
    with pytest.raises(ConfigError, match=r"was started with version 0\.0\.9 of fism"):
        find_job(None, [], None, out)
