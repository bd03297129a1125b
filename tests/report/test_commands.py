"""Runs as data: ``fism runs``, ``fism export``, ``fism report``, and what Prometheus is told."""

from __future__ import annotations

import csv
import json
import re
import urllib.request
from pathlib import Path

import duckdb
import numpy as np
import pytest

from fism.export import export
from fism.report_plots import write_pictures
from fism.runs import find_runs
from fism_common.errors import ConfigError
from fism_server.archive.snapshot import Reader

from ..federation.harness import clients, end, federation, fism_command, interrupt, server, until
from .folders import begun, finished

ROOT = Path(__file__).parents[2]


def test_runs_are_listed_with_how_far_each_is(tmp_path: Path) -> None:
    """Finished, running, broken off, damaged; the oldest first."""
    runs = tmp_path / "runs"
    runs.mkdir()
    finished(tmp_path / "a", 2, 10).rename(runs / "a")
    begun(tmp_path / "b", 3, 20).archive.close()
    (tmp_path / "b/run").rename(runs / "b")
    (runs / "damaged").mkdir()
    (runs / "damaged/run.sqlite").write_bytes(b"nonsense" * 100)
    job = begun(tmp_path / "c", 1, 30)
    found = {Path(run.folder).name: run for run in find_runs(runs)}
    assert (found["a"].stage, found["a"].rounds, found["a"].inner, found["a"].clients) == ("finished", 10, 100.0, 2)
    assert (found["b"].stage, found["b"].rounds, found["b"].inner) == ("interrupted", 20, 145.0)
    assert "cannot read" in found["damaged"].stage
    assert find_runs(job.out)[0].stage == "running"
    job.archive.close()
    done = fism_command("runs", runs)
    assert done.returncode == 0
    assert re.search(r"a +\d{4}-\d\d-\d\d \d\d:\d\d +finished +2 +10 +100 +50 +0\.\d", done.stdout)
    assert fism_command("runs", tmp_path / "none").returncode == 2
    assert len(json.loads(fism_command("runs", runs, "--json").stdout)) == 3


@pytest.mark.parametrize("form", ["csv", "parquet", "json"])
def test_export_has_every_number(tmp_path: Path, form: str) -> None:
    """Of every round, client, event, evaluation and coefficient; of all digits."""
    run = finished(tmp_path / "it's", 2, 30, names=["age", "dose"])
    files = export(run, tmp_path / "out", form)
    assert [file.stem for file in files] == ["rounds", "answers", "clients", "events", "evaluations", "coefficients"]
    snapshot = Reader(run).read()
    with duckdb.connect() as database:
        read = {one.stem: database.execute("SELECT * FROM query_table(?)", [str(one)]).fetchnumpy() for one in files}
    for name, column in snapshot.rounds.items():
        assert np.array_equal(read["rounds"][name], column), name
    assert len(read["answers"]["round"]) == 2 * 30
    assert np.array_equal(read["answers"]["computed"][1::2], snapshot.answers["site-01"][:, 0])
    assert list(read["clients"]["rows"]) == [100, 101]
    assert list(read["coefficients"]["column"]) == ["age", "dose", "intercept"]
    assert snapshot.state is not None
    assert np.array_equal(read["coefficients"]["x"], snapshot.state.x)
    assert list(read["events"]["text"]) == ["the connection <b>ended</b>"]
    assert list(read["evaluations"]["right"]) == [450, 465, 470]


def test_export_of_a_run_without_events_has_their_columns(tmp_path: Path) -> None:
    """An empty table is a table."""
    job = begun(tmp_path / "a", 1, 3)
    export(job.out, tmp_path / "out", "csv")
    job.archive.close()
    with (tmp_path / "out/events.csv").open() as file:
        assert list(csv.reader(file)) == [["round", "kind", "client", "text", "at", "count"]]
    with pytest.raises(ConfigError, match="cannot create the folder"):
        export(job.out, tmp_path / "out/events.csv/x", "csv")
    with pytest.raises(ConfigError, match="there is no run in"):
        export(tmp_path / "typo", tmp_path / "typo/export", "csv")
    assert not (tmp_path / "typo").exists()


def test_plots_are_pictures_too(tmp_path: Path) -> None:
    """Every plot of the report, over rounds and over seconds, as PNG and SVG."""
    files = write_pictures(finished(tmp_path / "a", 3, 40, names=["age", "$dose$"]), tmp_path / "pictures")
    assert len(files) == 2 * (2 * 5 + 2)
    for file in files:
        begin = file.read_bytes()[:5]
        assert begin == (b"\x89PNG\r" if file.suffix == ".png" else b"<?xml"), file
    assert "dose$" in (tmp_path / "pictures/coefficients.svg").read_text()


def test_prometheus_is_told_what_the_board_shows(tmp_path: Path) -> None:
    """F, H, change and times of a real run, its clients, what was refused; every name on the board is one of these."""
    given = federation(tmp_path, 2, rounds=1_000_000)
    with server(given.config, tmp_path / "run", "--metrics", "127.0.0.1:0") as running:
        address = running.wait_for(r"metrics on (\S+)").group(1)

        def told() -> dict[str, float]:
            with urllib.request.urlopen(f"http://{address}/metrics", timeout=20) as answer:  # ours
                text = answer.read().decode()
            return {name: float(value) for name, value in re.findall(r"^(\w+) ([-+.\deE]+)$", text, re.MULTILINE)}

        with clients(running.address, given) as processes:
            until(lambda: told()["fism_rounds_total"] > 100 and told()["fism_clients_present"] == 2)
            found = told()
            interrupt(running.process)
            assert running.end() == 130
            assert all(end(one)[0] == 4 for one in processes.values())
    assert found["fism_clients_expected"] == 2
    assert found["fism_answers_rejected_total"] == 0
    assert abs(found["fism_round_seconds_count"] - found["fism_rounds_total"]) <= 1  # it went on meanwhile
    rounds = Reader(tmp_path / "run").read().rounds
    k = int(found["fism_round"])
    i = next(i for i in (k - 1, k, k + 1) if rounds["inner"][i] == found["fism_inner_value"])
    assert found["fism_outer_value"] in rounds["outer"][i - 1 : i + 2]
    assert found["fism_change"] in rounds["change"][i - 1 : i + 2]
    board = (ROOT / "deploy/grafana.json").read_text()
    shown = set(re.findall(r"\bfism_\w+", board))
    known = {re.sub(r"_(total|bucket|sum|count)$", "", name) for name in found} | {"fism_events"}
    assert {re.sub(r"_(total|bucket|sum|count)$", "", name) for name in shown} <= known
    assert {"fism_rounds_total", "fism_inner_value", "fism_outer_value", "fism_change"} <= shown


def test_address_for_metrics_that_cannot_be_had_is_refused(tmp_path: Path) -> None:
    """With what to do; no round is done before."""
    given = federation(tmp_path, 1)
    done = fism_command("run", given.config, "--out", tmp_path / "run", "--metrics", "127.0.0.1:99999")
    assert done.returncode == 2
    assert "cannot serve metrics on 127.0.0.1:99999" in done.stderr
    assert "give --metrics another HOST:PORT" in done.stderr
