"""The commands for data and models, as one types them."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

from fism.sharding import deal
from fism_common.data.columns import Column, Kind, Recipe
from fism_common.errors import DataError
from fism_common.model import Fitted, write_model
from fism_common.problem.registry import Variant

from ..federation.harness import client, end, federation, fism_command, server

TABLE = "id,age,ward,sick\n" + "".join(f"{i},{20 + i},{'AB'[i % 2]},{'yes' if i % 3 else 'no'}\n" for i in range(60))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Write a table, and a model for it: sick if the age is above 50, or in ward B."""
    (tmp_path / "t.csv").write_text(TABLE)
    columns = (Column("age", Kind.NUMBER), Column("ward", Kind.TEXT))
    recipe = Recipe(features=columns, levels={"ward": ("A", "B")}, intercept=True)
    write_model(
        tmp_path / "model", Fitted(np.array([1.0, 0.0, 100.0, -50.5]), Variant("logistic", {}), recipe, None), {}
    )
    return tmp_path


def test_inspect_shows_what_a_client_would_use(folder: Path) -> None:
    """For people, and as JSON."""
    done = fism_command("inspect", folder / "t.csv", "--label", "sick", "--positive", "yes", "--drop", "id", "--json")
    told = json.loads(done.stdout)
    assert (told["rows"], told["columns"], told["labels"]) == (60, 2, {"-1": 20, "1": 40})
    assert told["table"][0] == {"name": "age", "kind": "number", "missing": 0, "least": 20, "mean": 49.5, "most": 79}
    assert told["table"][1]["levels"] == {"A": 30, "B": 30}
    assert told["storage"] == "dense uint8"
    text = fism_command("inspect", folder / "t.csv").stdout
    assert "none: give a table's label column with --label" in text
    assert "A: 30, B: 30" in text


def test_predict_prints_a_line_for_every_row(folder: Path) -> None:
    """Score, prediction, probability; also into a file. The label need not be there."""
    (folder / "new.csv").write_text("ward,age\nA,50\nA,51\nB,20\n")
    done = fism_command("predict", folder, folder / "new.csv")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert [row["prediction"] for row in rows] == ["-1.0", "1.0", "1.0"]
    assert float(rows[0]["score"]) == -0.5
    assert float(rows[0]["probability"]) == pytest.approx(1 / (1 + np.exp(0.5)))
    assert fism_command("predict", folder, folder / "new.csv", "--out", folder / "p.csv").returncode == 0
    assert (folder / "p.csv").read_text() == done.stdout


def test_evaluate_prints_measures(folder: Path) -> None:
    """By the model's columns, whatever else the table has."""
    done = fism_command("evaluate", folder, folder / "t.csv", "--label", "sick", "--positive", "yes", "--json")
    assert done.returncode == 0, done.stderr
    measured = json.loads(done.stdout)
    ages = np.arange(20, 80)
    right = np.where((ages > 50) | (ages % 2 == 1), 1, -1) == np.where(np.arange(60) % 3, 1, -1)
    assert measured["accuracy"] == pytest.approx(right.mean())
    assert {"rows", "loss", "auc"} <= set(measured)


@pytest.mark.parametrize(
    ("arguments", "rows"),
    [
        (("--parts", "4"), [15, 15, 15, 15]),
        (("--sizes", "1,2,3"), [10, 20, 30]),
        (("--by", "ward"), [30, 30]),
    ],
)
def test_shard_deals_out_all_rows(arguments: tuple[str, ...], rows: list[int], folder: Path) -> None:
    """Each row once, in tables of the same columns."""
    done = fism_command("shard", folder / "t.csv", "--out", folder / "s", *arguments)
    assert done.returncode == 0, done.stderr
    files = sorted((folder / "s").iterdir())
    parts = [file.read_text().splitlines() for file in files]
    assert [len(part) - 1 for part in parts] == rows
    assert all(part[0] == "id,age,ward,sick" for part in parts)
    assert sorted(line for part in parts for line in part[1:]) == sorted(TABLE.splitlines()[1:])


def test_dirichlet_shards_differ_in_their_labels_and_are_seeded() -> None:
    """The smaller alpha is, the more."""
    classes = np.repeat([0, 1], 500)

    def shares(alpha: float, seed: int) -> np.ndarray:
        found = deal(1000, parts=5, classes=classes, alpha=alpha, seed=seed)
        return np.array([classes[found == i].mean() for i in range(5)])

    assert np.std([shares(100.0, seed) for seed in range(5)]) < 0.1 < np.std([shares(0.7, seed) for seed in range(5)])
    np.testing.assert_array_equal(shares(1.0, 3), shares(1.0, 3))
    with pytest.raises(DataError, match="3 rows in 9 parts leave part"):
        deal(3, parts=9)


def test_shard_of_arrays_is_an_npz_file(tmp_path: Path) -> None:
    """Sparse ones stay sparse."""
    (tmp_path / "t.svm").write_text("".join(f"{1 if i % 2 else -1} {i + 1}:{i}.5\n" for i in range(6)))
    done = fism_command("shard", tmp_path / "t.svm", "--out", tmp_path / "s", "--parts", "2", "--columns", "9")
    assert done.returncode == 0, done.stderr
    with np.load(tmp_path / "s/part-1.npz") as one, np.load(tmp_path / "s/part-2.npz") as two:
        assert sorted([*one["data"], *two["data"]]) == [0.5, 1.5, 2.5, 3.5, 4.5, 5.5]
        assert one["shape"].tolist() == two["shape"].tolist() == [3, 9]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--sizes", "a"), "--sizes takes numbers"),
        (("--sizes", "1,-1"), "shares must be above 0"),
        (("--sizes", "1,2", "--by", "ward"), "--sizes and --by cannot be combined; give one"),
        (("--by", "none"), "cannot be split"),
        (("--dirichlet", "1"), "give the label column with --label"),
        (("--parts", "61"), "61 parts leave part"),
    ],
)
def test_shard_says_what_it_cannot_do(arguments: tuple[str, ...], reason: str, folder: Path) -> None:
    """And writes nothing."""
    done = fism_command("shard", folder / "t.csv", "--out", folder / "s", *arguments)
    assert done.returncode == 2
    assert reason in done.stderr
    assert not list((folder / "s").glob("*"))


def test_doctor_finds_nothing_wrong_before_a_good_run(tmp_path: Path) -> None:
    """And takes no place in it."""
    given = federation(tmp_path, 1)
    with server(given.config, tmp_path / "run") as running:
        how = ("--server", running.address, "--name", "c0")
        done = fism_command("doctor", *how, "--data", given.files[0])
        assert done.returncode == 0, done.stdout
        assert [line.split()[:2] for line in done.stdout.splitlines()] == [
            ["ok", what] for what in ("versions", "kernels", "data", "certificates", "server", "joining", "columns")
        ]
        assert end(client(running.address, "c0", given.files[0]))[0] == 0
        assert running.end() == 0


def test_doctor_says_what_to_do(tmp_path: Path) -> None:
    """About a server that is not there, certificates, data, a name, and columns."""
    given = federation(tmp_path, 2)

    def advice(*arguments: object) -> str:
        done = fism_command("doctor", *arguments)
        assert done.returncode == 4
        return "\n".join(line for line in done.stdout.splitlines() if not line.startswith("ok"))

    assert "no connection to 127.0.0.1:1" in advice("--server", "127.0.0.1:1", "--name", "a", "--data", given.files[0])
    told = advice("--server", "example.com:1", "--name", "a", "--data", tmp_path / "none.csv")
    assert "data          there is no file" in told
    assert "certificates  example.com:1 is another host: give --certs" in told
    np.savez(tmp_path / "wide.npz", A=np.ones((3, 9)), b=[1.0, 1.0, -1.0])
    np.savez(tmp_path / "label.npz", A=np.ones((3, 5)), b=[1.0, 2.0, -1.0])
    with server(given.config, tmp_path / "run", "--set", "inner.columns=5") as running:
        how = ("--server", running.address, "--name")
        assert "has 9 columns, but this run has 5" in advice(*how, "a", "--data", tmp_path / "wide.npz")
        assert "label.npz: the label of row 1 is 2" in advice(*how, "a", "--data", tmp_path / "label.npz")
        held = advice(*how, "a", "--data", tmp_path / "label.npz", "--holdout", "0.5")
        assert "the label of row 1 is 2" in held, "whether it is held out or not"
        advice(*how, "a", "--data", tmp_path / "none.npz")
        assert not any("version 0" in line for line in running.lines)
        assert "a client's name has" in advice(*how, "a" * 99, "--data", given.files[0])
