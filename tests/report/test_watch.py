"""The live page's server: it reads, answers GET alone, and stays on this host."""

from __future__ import annotations

import http.client
import json
import logging
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from fism_common.errors import ConfigError
from fism_server.report.watch import Publisher

from ..federation.harness import end, fism_command, interrupt, popen, until
from .folders import begun, finished


@pytest.fixture
def page(tmp_path: Path) -> Iterator[tuple[str, int, Path]]:
    """Return where a page is served, and the folder of its run, which is under way."""
    job = begun(tmp_path / "a", 2, 20)
    process = popen("watch", job.out, "--listen", "127.0.0.1:0")
    assert process.stdout is not None
    host, _, port = process.stdout.readline().strip().removesuffix("/").rpartition("/")[2].partition(":")
    yield host, int(port), job.out
    interrupt(process)
    assert end(process)[0] == 130
    job.archive.close()


def ask(host: str, port: int, path: str, method: str = "GET", **headers: str) -> tuple[int, str]:
    """Return the status and the text of an answer."""
    connection = http.client.HTTPConnection(host, port, timeout=20)
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


def test_page_is_read_and_nothing_is_changed(page: tuple[str, int, Path]) -> None:
    """The page, its script, its events; no other path, no other method, no other host's name; no file of the run."""
    host, port, run = page
    before = {file.name: file.stat().st_mtime_ns for file in run.iterdir() if not file.name.endswith("-shm")}
    assert ask(host, port, "/")[0] == 200
    assert "Plotly" in ask(host, port, "/plotly.js")[1]
    assert ask(host, port, "/config.json")[0] == 404
    assert ask(host, port, "/../config.json")[0] == 404
    for method in ("POST", "PUT", "DELETE"):
        assert ask(host, port, "/", method)[0] == 501
    assert ask(host, port, "/", Host="evil.example")[0] == 421
    assert ask(host, port, "/", Host=f"localhost:{port}")[0] == 200
    connection = http.client.HTTPConnection(host, port, timeout=20)
    connection.request("GET", "/events")
    answer = connection.getresponse()
    assert answer.headers["Content-Type"] == "text/event-stream"
    assert answer.readline() == b"event: view\n"
    view = json.loads(answer.readline().removeprefix(b"data: "))
    assert view["status"] == "Running."
    connection.close()
    after = {file.name: file.stat().st_mtime_ns for file in run.iterdir() if not file.name.endswith("-shm")}
    assert after == before


def test_page_is_for_this_host_unless_told(tmp_path: Path) -> None:
    """It tells what H is."""
    run = finished(tmp_path / "a", 1, 5)
    done = fism_command("watch", run, "--listen", "0.0.0.0:0")
    assert done.returncode == 2
    assert "other hosts can reach 0.0.0.0:0: give --insecure" in done.stderr
    for address in ("127.0.0.1:99999", "127.0.0.1", "nowhere.invalid:1"):
        done = fism_command("watch", run, "--listen", address, "--insecure")
        assert done.returncode == 2
        assert "cannot listen on" in done.stderr


def test_page_of_a_run_that_is_gone_stays_and_comes_back(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """What was shown is shown; a new run in the folder is shown next; the end is told."""
    run = finished(tmp_path / "a", 2, 5)
    publisher = Publisher(run)
    thread = threading.Thread(target=publisher.run)
    views = publisher.views()
    thread.start()
    assert "5 rounds" in str(next(views))
    run.rename(tmp_path / "away")
    with caplog.at_level(logging.WARNING):
        until(lambda: "the run cannot be shown" in caplog.text)
    (tmp_path / "away").rename(run)
    with sqlite3.connect(run / "run.sqlite") as database:
        database.execute("DELETE FROM events")
    database.close()
    assert "Nothing went wrong" in str(next(views))
    publisher.end(0)
    thread.join()
    assert list(views) != []  # the last view, and then no more
    publisher.end(10)  # nobody is left to be told


def test_only_so_many_may_look(tmp_path: Path) -> None:
    """The next one is told so; one that leaves makes room."""
    publisher = Publisher(finished(tmp_path / "a", 1, 5))
    thread = threading.Thread(target=publisher.run)
    thread.start()
    looking = [publisher.views() for _ in range(20)]
    for views in looking:
        next(views)
    with pytest.raises(ConfigError, match="this run already has 20 viewers"):
        next(publisher.views())
    looking.pop().close()
    assert next(publisher.views())
    publisher.end(0)
    thread.join()


def test_there_is_nothing_to_watch_in_no_run(tmp_path: Path) -> None:
    """Refused before it listens."""
    done = fism_command("watch", tmp_path, "--listen", "127.0.0.1:0")
    assert done.returncode == 2
    assert "there is no run in" in done.stderr
    assert list(tmp_path.iterdir()) == []
