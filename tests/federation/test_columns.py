"""Federations of tables: columns that are agreed on, encoded and standardised together, and a model that is of use."""

from __future__ import annotations

import json
import re
import signal
import sqlite3
from pathlib import Path

import numpy as np
import pytest

import fism
from fism.pooled import pool
from fism_client.data.loading import load
from fism_common.data.source import Reading, Source
from fism_server.problem.plan import read_plan

from .harness import client, end, fism_command, present, resumed, rounds_done, server, until

CONFIG = """
[federation]
name = "tables"
clients = ["north", "east", "south"]
start = "random"
[inner]
loss = "logistic"
constraint = { kind = "box", lo = -5.0, hi = 5.0 }
[data]
standardise = true
intercept = true
missing = "mean"
levels = { ward = ["A", "B", "C"] }
[outer]
kind = "elastic-net"
l1 = 0.5
l2 = 1.0
[steps]
gamma = 0.5
a = 0.7
lambda = 1.0
b = 0.2
[stop]
rounds = 40
[local]
shards = ["north.csv", "east.csv", "south.csv"]
label = "sick"
positive = "yes"
drop = ["id"]
holdout = 0.2
"""
HOW = ("--label", "sick", "--positive", "yes", "--drop", "id", "--holdout", "0.2")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Write three unequal sites: numbers, one far from 0 and some missing, and a category."""
    rng = np.random.default_rng(0)
    for name, rows in (("north", 12), ("east", 30), ("south", 55)):
        lines = ["id,age,ward,seen,sick"]
        for i in range(rows):
            age = "" if rng.random() < 0.1 else f"{rng.normal(60, 12):.1f}"
            seen = 1.7e9 + rng.normal()
            lines.append(f"{i},{age},{rng.choice(list('ABC'))},{seen:.6f},{rng.choice(['yes', 'no'])}")
        (tmp_path / f"{name}.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "tables.toml").write_text(CONFIG)
    return tmp_path


def alone(folder: Path) -> fism.Result:
    """Return what one process makes of all tables, by the same steps."""
    plan = read_plan(folder / "tables.toml")
    shards = list(pool(plan).train.values())
    n = shards[0].columns
    problem = fism.Problem("logistic", plan.constraint, plan.objective(n))
    return fism.solve(problem, shards, steps=plan.steps, rounds=40, start=plan.start(n))


def test_federation_of_tables_gives_the_bytes_of_one_process(folder: Path) -> None:
    """Encoded, filled in and standardised without pooling a row."""
    done = fism_command("run", folder / "tables.toml", "--out", folder / "run")
    assert done.returncode == 0, done.stderr
    with np.load(folder / "run/model.npz") as model:
        assert model["x"].tobytes() == alone(folder).x.tobytes()


@pytest.mark.long
def test_federation_standardises_as_if_rows_were_pooled(folder: Path) -> None:
    """Means and spreads of one table with all rows, to 1e-9."""
    config = folder / "tables.toml"
    config.write_text(CONFIG.replace("holdout = 0.2", "holdout = 0.0"))
    assert fism_command("run", config, "--out", folder / "run").returncode == 0
    query = "SELECT age, seen, 0 AS y FROM 'north.csv' UNION ALL SELECT age, seen, 0 FROM 'east.csv' UNION ALL SELECT "
    together = load(Source(query=query + "age, seen, 0 FROM 'south.csv'"), Reading(label="y"), folder)
    listed = {one["column"]: one for one in json.loads((folder / "run/model.json").read_text())["coefficients"]}
    for name, values in together.columns.items():  # type: ignore[union-attr]
        there = values[~np.isnan(values)]
        near = there - there[0]
        assert listed[name]["mean"] == pytest.approx(there[0] + near.mean(), rel=1e-15)
        assert listed[name]["spread"] == pytest.approx(near.std(), rel=1e-9)
    assert listed["ward=A"]["spread"] == 1.0


@pytest.mark.long
def test_model_predicts_the_same_in_original_units(folder: Path) -> None:
    """Scores from standardised columns, from coefficients in original units, and from scikit-learn."""
    text = CONFIG.replace('drop = ["id"]', 'drop = ["id", "seen"]')
    (folder / "tables.toml").write_text(text)
    assert fism_command("run", folder / "tables.toml", "--out", folder / "run").returncode == 0
    model = fism.load(folder / "run")
    assert model.names == ["age", "ward=A", "ward=B", "ward=C"]
    rng = np.random.default_rng(1)
    wards = rng.integers(0, 3, 50)
    ages = rng.normal(60, 12, 50)
    rows = np.column_stack([ages, *(wards == i for i in range(3))])
    scores = model.decision_function({"age": ages, "ward": np.array(list("ABC"))[wards]})
    np.testing.assert_allclose(model.decision_function(rows), scores, rtol=1e-12)
    np.testing.assert_allclose(rows @ model.coef + model.intercept, scores, rtol=1e-9)
    outside = model.to_sklearn()
    np.testing.assert_allclose(outside.decision_function(rows), scores, rtol=1e-9)
    np.testing.assert_allclose(outside.predict_proba(rows), model.predict_proba(rows), rtol=1e-9)
    np.testing.assert_array_equal(outside.predict(rows), model.predict(rows))


@pytest.mark.long
def test_times_are_predicted_to_nine_digits(folder: Path) -> None:
    """Where the constant in original units loses digits, the model does without it."""
    assert fism_command("run", folder / "tables.toml", "--out", folder / "run").returncode == 0
    model = fism.load(folder / "run")
    x = alone(folder).x
    plan = read_plan(folder / "tables.toml")
    shards = list(pool(plan).train.values())
    held = load(Source(data="south.csv"), Reading(label="sick", positive="yes", drop=["id"]), folder)
    expected = shards[2].scores(x)
    found = model.scores(model.prepare(held))
    assert all(np.min(np.abs(found - score)) <= 1e-9 * abs(score) for score in expected)


def test_client_with_other_columns_is_refused_with_a_table(folder: Path) -> None:
    """Before a row is looked at; its own doubts are told beside it."""
    text = (folder / "east.csv").read_text()
    (folder / "east.csv").write_text(text.replace("seen", "last_seen").replace("\n1,", "\n1,x", 1))
    with server(folder / "tables.toml", folder / "run") as running:
        north = client(running.address, "north", folder / "north.csv", *HOW)
        until(lambda: present(folder / "run") == ["north"])
        code, _, said = end(client(running.address, "east", folder / "east.csv", *HOW))
        assert code == 3
        assert "the columns of 'east' differ from this federation's:" in said
        assert re.search(r"age +number +text, its levels not listed", said)
        assert re.search(r"seen +number +-", said)
        assert re.search(r"last_seen +- +number", said)
        assert "row 2, column 'age' is 'x" in said
        north.terminate()
        end(north)


def test_level_that_is_not_listed_ends_the_client_with_its_row(folder: Path) -> None:
    """The server is told nothing of it."""
    (folder / "east.csv").write_text((folder / "east.csv").read_text().replace(",A,", ",Z,", 1))
    with server(folder / "tables.toml", folder / "run") as running:
        code, _, said = end(client(running.address, "east", folder / "east.csv", *HOW))
        assert code == 2
        assert re.search(r"east.csv: row \d+, column 'ward' is 'Z'; the federation lists 'A', 'B', 'C'", said)
        assert not any("'Z'" in line for line in running.lines)


@pytest.mark.long
def test_run_that_is_resumed_standardises_as_it_began(folder: Path) -> None:
    """With the means and spreads that were saved, though clients have come anew."""
    config = folder / "tables.toml"
    config.write_text(CONFIG.replace("rounds = 40", "rounds = 4000"))
    names = ("north", "east", "south")
    with server(config, folder / "run") as running:
        clients = [client(running.address, name, folder / f"{name}.csv", *HOW) for name in names]
        until(lambda: rounds_done(folder / "run") > 20)
        running.process.kill()
        for one in clients:
            one.kill()
            end(one)
    with resumed(folder / "run") as running:
        clients = [client(running.address, name, folder / f"{name}.csv", *HOW) for name in names]
        assert [end(one)[0] for one in clients] == [0, 0, 0]
        assert running.end() == 0
    whole = fism_command("run", config, "--out", folder / "whole")
    assert whole.returncode == 0, whole.stderr
    with np.load(folder / "run/model.npz") as one, np.load(folder / "whole/model.npz") as other:
        for name in one.files:
            assert one[name].tobytes() == other[name].tobytes(), name


@pytest.mark.long
def test_damaged_scaling_is_noticed(folder: Path) -> None:
    """It belongs to the state of the run."""
    config = folder / "tables.toml"
    config.write_text(CONFIG.replace("rounds = 40", "rounds = 1000000"))
    names = ("north", "east", "south")
    with server(config, folder / "run") as running:
        clients = [client(running.address, name, folder / f"{name}.csv", *HOW) for name in names]
        until(lambda: rounds_done(folder / "run") > 5)
        for one in clients:
            one.kill()
            end(one)
        running.process.kill()
        running.process.wait()
    with sqlite3.connect(folder / "run/run.sqlite") as database:
        database.execute("UPDATE vectors SET entries = zeroblob(8) WHERE name = 'spread'")
    database.close()
    done = fism_command("server", "--resume", folder / "run")
    assert done.returncode == 4
    assert "is damaged (the scaling of its columns has a wrong checksum)" in done.stderr


def test_intercept_is_left_out_of_the_1_norm(folder: Path) -> None:
    """It keeps the quadratic term."""
    outer = read_plan(folder / "tables.toml").objective(4)
    assert outer.value(np.array([0.0, 0.0, 0.0, 2.0])) == 2.0
    assert outer.value(np.array([0.0, 0.0, 2.0, 0.0])) == 3.0
    assert outer.modulus == 1.0


@pytest.mark.long
def test_client_keeps_a_model_that_it_can_use(folder: Path) -> None:
    """The server's, but for what only the server knows."""
    names = ("north", "east", "south")
    with server(folder / "tables.toml", folder / "run") as running:
        own = folder / "mine.npz"
        clients = [
            client(
                running.address, name, folder / f"{name}.csv", *HOW, *(("--save", str(own)) if name == "north" else ())
            )
            for name in names
        ]
        assert [end(one)[0] for one in clients] == [0, 0, 0]
        assert running.end() == 0
    mine, theirs = fism.load(own), fism.load(folder / "run/model.json")
    assert mine.coef.tobytes() == theirs.coef.tobytes()
    assert mine.intercept == theirs.intercept
    assert "clients" not in mine.card


@pytest.mark.long
def test_run_goes_on_without_a_client_that_stays_away_before_it_is_measured(folder: Path) -> None:
    """By the means and spreads of those that are left."""
    config = folder / "tables.toml"
    config.write_text(CONFIG + '[limits]\non_absence = "continue"\nabsence_seconds = 3\nround_seconds = 600\n')
    with server(config, folder / "run") as running:
        gone = client(running.address, "north", folder / "north.csv", *HOW)
        running.wait_for("waiting for east.* south")
        stopped = [client(running.address, name, folder / f"{name}.csv", *HOW) for name in ("east", "south")]
        gone.send_signal(signal.SIGSTOP)  # it has joined, and will not answer
        running.wait_for("dropped: .*2 clients and .* rows are left")
        gone.kill()
        end(gone)
        assert [end(one)[0] for one in stopped] == [0, 0]
        assert running.end() == 0
    card = json.loads((folder / "run/model.json").read_text())
    assert [one["name"] for one in card["clients"]] == ["east", "south"]


def test_vectors_need_an_order_of_named_columns(folder: Path) -> None:
    """Else they would belong to whichever columns the first client has first."""
    np.save(folder / "anchor.npy", np.zeros(6))
    text = CONFIG.replace(
        'kind = "elastic-net"\nl1 = 0.5\nl2 = 1.0', 'kind = "squared-distance"\nanchor = "anchor.npy"'
    )
    (folder / "tables.toml").write_text(text)
    done = fism_command("run", folder / "tables.toml", "--out", folder / "run")
    assert done.returncode == 3
    assert "must list them (data.features)" in done.stderr
