"""Data that cannot be used is refused with the file, the row, the column and what was expected."""

from __future__ import annotations

import gzip
import random
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from fism_client.data.loading import Data, load
from fism_client.data.shard import Shard
from fism_common.data.columns import Column, Kind, Missing, Recipe
from fism_common.data.source import Reading, Source
from fism_common.errors import DataError, MismatchError

from .files import LABELS, ROWS, encoded, idx, options, table, write

TABLES = [
    ("a,y\n1,1\nx,2\n", {}, "row 2, column 'a' is 'x', where a number is expected"),
    ("a,b,y\n1,2,1\n1,2,3,4\n", {}, "line 3 has 4 fields, but the first line has 3"),
    ("a,y\n1,1\n,2\n", {}, "row 2, column 'a' is missing; leave the row out"),
    ("a,y\ninf,1\n", {}, "row 1, column 'a' is (inf|'inf')"),
    ("a,b,y\n1,2,1\n1,2\n1,2,3\n", {}, "line 3 has 2 fields, but the first line has 3"),
    ("a;y\n1;1\n1;x\n", {}, "row 2, column 'y' is 'x', where a number is expected"),
    ("a,a,y\n1,2,1\n", {}, "the column names 'a', 'a' are duplicates; upper and lower case count as equal"),
    ("a,A,y\n1,2,1\n", {}, "the column names 'a', 'A' are duplicates"),
    ("a,y\r\n1,1\n2,-1\r\n", {}, "mixes Windows and Unix line endings; save it with one of them"),
    ('a,b,y\n1,2,1\n"x"z,2,1\n', {}, 'line 3: .* expected after .*; a " inside quotes is written twice'),
    ("a,y\n1,1\n", {"scale": 0.5}, "scale is for arrays only; remove it"),
    ("a,y\n1,1\n", {"columns": 3}, "columns is for svmlight"),
    ("a,y\n1,1\n", {"zero_based": True}, "zero_based is for svmlight"),
    ("a,y\n1,1\n1,\n", {}, "row 2, column 'y' is missing, and it is the label"),
    ("a,y\n1,M\n1,B\n", {}, "row 1, column 'y' is 'M', where a number is expected for the label"),
    (
        "a,y\n1,1\n1,0\n",
        {"positive": "yes"},
        r"column 'y' is a number, but the label that counts as 1 \(positive\) is 'yes'",
    ),
    ("a,y\n1,1\n", {"label": "z"}, "has no column 'z'; it has 'a', 'y'"),
    ("a,y\n1,1\n", {"features": ["b"]}, "has no column 'b'; it has 'a', 'y'"),
    ("a,y\n1,1\n", {"drop": ["b"]}, "has no column 'b'; it has 'a', 'y'"),
    ("a,y\n1,1\n", {"drop": ["a"]}, "has no column left to fit a model on"),
    ("a,y\n1,1\n", {"label": None}, "say which of its columns is the label: 'a', 'y'"),
    ("a,y\n", {}, "has no rows; leave this client out"),
    ("", {}, "(cannot be read|has no column)"),
]


@pytest.mark.parametrize(("text", "reading", "reason"), TABLES)
def test_table_is_refused_with_the_place(text: str, reading: dict[str, Any], reason: str, tmp_path: Path) -> None:
    """CSV; what is wrong with values is the same in every table."""
    with pytest.raises(DataError, match=rf"t\.csv.*{reason}"):
        as_numbers(table(tmp_path, text, **reading))


def as_numbers(data: Data) -> Shard:
    """Make rows of columns that are all to be numbers."""
    return data.encode(Recipe(features=tuple(Column(column.name, Kind.NUMBER) for column in data.schema)))


def test_label_that_no_row_has_is_warned_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A site may have none of one class; or the word is misspelt."""
    assert table(tmp_path, "a,y\n1,B\n2,B\n", positive="M").labels.tolist() == [-1.0, -1.0]
    assert "column 'y' is never 'M', which counts as 1 (found: B): all rows count as -1" in caplog.text


def test_file_in_another_encoding_is_refused(tmp_path: Path) -> None:
    """With its line."""
    (tmp_path / "t.csv").write_bytes(b"a,w,y\n1,caf\xe9,1\n")
    with pytest.raises(DataError, match=r"t\.csv: line 2 is not in UTF-8; save the file in that encoding"):
        load(Source(data="t.csv"), Reading(label="y"), tmp_path)


def test_few_texts_among_numbers_are_pointed_at(tmp_path: Path) -> None:
    """They make a text of the whole column, which the federation refuses without having seen a value."""
    data = table(tmp_path, "a,w,y\n1,u,1\nx,v,2\n,u,1\n4,v,1\n5,u,1\n")
    (doubt,) = data.doubts()
    assert doubt.endswith("t.csv: row 2, column 'a' is 'x', where a number is expected, as in 3 of 5 rows")
    (doubt,) = table(tmp_path, "seen,y\n2025-01-31,1\n2025-02-30,2\n2025-02-01,1\n").doubts()
    assert "row 2, column 'seen' is '2025-02-30', where a time such as 2025-12-31" in doubt
    assert doubt.endswith("as in 2 of 3 rows")


def test_column_without_a_name_is_not_used(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """As pandas writes the numbers of rows; it would be one more feature."""
    data = table(tmp_path, ",a,y\n0,5,1\n1,6,-1\n")
    assert [column.name for column in data.schema] == ["a"]
    assert as_numbers(data).rows.tolist() == [[5.0], [6.0]]  # type: ignore[union-attr]
    assert "t.csv: column 1 has no name in the first line, and is not used" in caplog.text


def test_number_that_turns_out_to_be_none_is_refused_with_its_line(tmp_path: Path) -> None:
    """Beyond the lines that a column's kind is guessed from."""
    text = "a,y\n" + "1,1\n" * 30_000 + "x,1\n" + "1,1\n" * 100
    with pytest.raises(
        DataError, match=r"t\.csv: (line 30002|row 30001), column 'a' is 'x', where a number is expected"
    ):
        as_numbers(table(tmp_path, text))


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("t.jsonl", '{"a": 1, "y": 1}\n{"a": 1, "y"\n', "t.jsonl cannot be read: .*"),
        ("t.jsonl", '{"a": [1, 2], "y": 1}\n', "column 'a' is of type .*, which is not a number, text or time"),
        ("t.parquet", "PAR1 and no more", "t.parquet cannot be read"),
        ("t.csv.gz", "\x1f\x8b no gzip", "t.csv.gz cannot be read"),
    ],
)
def test_broken_file_is_refused_by_name(name: str, text: str, reason: str, tmp_path: Path) -> None:
    """With what its reader says of it."""
    with pytest.raises(DataError, match=reason):
        encoded(table(tmp_path, text, name))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("1 1:2\nx 1:1\n", "line 2: a row begins with its label, a finite number, not 'x'"),
        ("1 1:2 3\n", "line 1: column:value is expected, not '3'"),
        ("1 a:2\n", "line 1: a column is a whole number, not 'a:2'"),
        ("1 qid:3 1:2\n", "line 1: a column is a whole number, not 'qid:3'"),
        ("1 2:1 1:1\n", "line 1: columns must ascend, each at most once in a row, not '1:1'"),
        ("1 2:1 2:1\n", "line 1: columns must ascend"),
        ("1 0:1\n", r"line 1: columns are numbered from 1 \(set zero_based if these start at 0\), not '0:1'"),
        ("1 99999999999:1\n", "line 1: a column's number must be below 2147483647, not '99999999999:1'"),
        ("1 1:\n", "line 1: a finite number is expected after the colon"),
        ("1 1:nan\n", "line 1: a finite number is expected after the colon, not 'nan'"),
        ("inf 1:1\n", "line 1: a row begins with its label, a finite number, not 'inf'"),
        ("1 1:1e999\n", "line 1: a number must fit in a double, not '1e999'"),
        (f"1 1:0.{'1' * 60}\n", "line 1: a number has at most 40 characters"),
        ("# nothing\n\n", "has no rows; leave this client out"),
    ],
)
def test_svmlight_is_refused_with_the_line(text: str, reason: str, tmp_path: Path) -> None:
    """And what was expected there."""
    (tmp_path / "t.svm").write_text(text)
    with pytest.raises(DataError, match=rf"t\.svm.*{reason}"):
        load(Source(data="t.svm"), Reading(), tmp_path)


def test_arrays_are_refused_with_the_place(tmp_path: Path) -> None:
    """NaN without a rule for it, infinities, labels that are missing or too few, columns that are too few."""
    write(tmp_path)

    def refused(reason: str, source: Source, reading: Reading | None = None, **arrays: Any) -> None:  # noqa: ANN401  # what NumPy saves
        if arrays:
            np.savez(tmp_path / "t.npz", **arrays)
        with pytest.raises(DataError, match=reason):
            encoded(load(source, reading or Reading(), tmp_path))

    npz, holed = Source(data="t.npz"), ROWS.copy()
    holed[1, 0] = np.nan
    refused(r"t\.npz: row 1, column 0 is nan", npz, A=holed, b=LABELS)
    refused(r"t\.npz: row 1, column 0 is inf", npz, A=np.where(np.isnan(holed), np.inf, holed), b=LABELS)
    refused("has the arrays", npz, A=ROWS)
    refused("3 rows but 2 labels", npz, A=ROWS, b=LABELS[:2])
    refused("scale must be a number", npz, A=ROWS, b=LABELS, scale=np.ones(2))
    refused("does not hold compressed sparse rows", npz, data=ROWS[0], indices=[0], indptr=[0], shape=[1], b=LABELS)
    refused("has no labels in it; name the file that has them", Source(data="table.npy"))
    refused("there is no file", Source(data="table.npy", labels="none.npy"))
    refused("label is for tables", Source(data="table.npy", labels="labels.npy"), Reading(label="y"))
    refused("labels is for .npy and IDX files", Source(data="t.npz", labels="labels.npy"))
    refused("labels is for .npy and IDX files", Source(data="table.csv", labels="labels.npy"), Reading(label="y"))
    refused("zero_based is for svmlight", Source(data="t.npz"), Reading(zero_based=True))
    refused("columns is for svmlight", Source(data="table.npy", labels="labels.npy"), Reading(columns=2))
    refused("column 'y' is a time; a label must be a number", Source(query="SELECT 1 AS a, DATE '2025-01-01' AS y"), Y)
    refused("column 'y' is of type INTEGER", Source(query="SELECT 1 AS a, [1] AS y"), Y)
    refused("has 2 columns, but the setting columns is 1", Source(data="table.svm"), Reading(columns=1))
    refused("there is no file", Source(data="none.csv"))
    (tmp_path / "table.xlsx").write_bytes(b"PK")
    refused("unknown file extension; supported are tables", Source(data="table.xlsx"))
    (tmp_path / "t-ubyte").write_bytes(idx(ROWS)[:-1])
    refused("has 5 entries, but its header says 3 x 2", Source(data="t-ubyte", labels="labels.npy"))
    refused("the query cannot be read", Source(query="SELECT nothing FROM 'table.csv'"), Reading(label="y"))
    twice = "the column names 'a', 'A' are duplicates; upper and lower case count as equal"
    refused(twice, Source(query="SELECT 1 AS a, 2 AS 'A', 3 AS y"), Reading(label="y"))
    refused("must be one SELECT", Source(query="SET threads = 1"), Reading(label="y"))


Y = Reading(label="y")
FORMS = ["csv", "jsonl", "parquet", "npz", "sparse.npz", "npy", "svm", "svm.gz", "idx"]


def mutated(content: bytes, rng: random.Random) -> bytes:
    """Return a file with some bytes changed, cut out, or put in."""
    found = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 8))):
        at = rng.randrange(len(found) + 1)
        match rng.randrange(4):
            case 0 if found:
                found[min(at, len(found) - 1)] = rng.randrange(256)
            case 1:
                del found[at : at + rng.choice((1, 1, 4, 40))]
            case 2:
                found[at:at] = rng.choice((b",", b"\n", b":", b"nan", b"1e999", b"\0", b"\xff\xfe", b'"', b"-"))
            case _:
                del found[at:]
    return bytes(found)


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("form", FORMS)
def test_mutated_files_are_read_or_refused(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten thousand of each form: a shard, or an error that names the file or the columns. Never anything else."""
    connect, databases = duckdb.connect, [duckdb.connect()]

    def cursor(**_: object) -> duckdb.DuckDBPyConnection:
        """Return a connection to a database that lives on: a new one takes 20 ms. Some files end it, though."""
        try:
            found = databases[-1].cursor()
            found.execute("SELECT 1").fetchall()
        except duckdb.Error:
            databases.append(connect())
            found = databases[-1].cursor()
        return found

    monkeypatch.setattr(duckdb, "connect", cursor)
    files = write(tmp_path)
    files["idx"] = tmp_path / "table-ubyte"
    files["idx"].write_bytes(idx(np.arange(12).reshape(3, 2, 2)))
    source, reading = options(files[form])
    if form == "idx":
        source = Source(data=source.data, labels="labels.npy")
    whole, rng = files[form].read_bytes(), random.Random(form)  # noqa: S311  # noise, not secrets
    if form == "svm.gz":
        whole = gzip.decompress(whole)
    refused = 0
    for _ in range(10_000):
        content = mutated(whole, rng)
        files[form].write_bytes(
            gzip.compress(content, 1, mtime=0) if form == "svm.gz" and rng.random() < 0.5 else content
        )
        try:
            shard = encoded(load(source, reading, tmp_path), missing=Missing.MEAN)
        except MismatchError:  # a column that is now of texts
            refused += 1
        except DataError as error:
            assert str(files[form]) in str(error)  # noqa: PT017  # most are refused, some are not
            refused += 1
        else:
            assert shard.count == shard.labels.size > 0
    assert 1000 < refused < 10_000
