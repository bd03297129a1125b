"""A shard is whatever the site has: the same rows from every form."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fism_client.data.loading import load
from fism_client.data.readers.svmlight import read_svmlight
from fism_client.data.shard import SparseRows
from fism_common.data.columns import Kind
from fism_common.data.source import Reading, Source
from fism_common.errors import DataError

from .files import LABELS, ROWS, dense, encoded, idx, read, table, write

FORMS = ["csv", "tsv", "csv.gz", "svm", "svm.gz", "jsonl", "parquet", "npz", "sparse.npz", "npy"]


@pytest.mark.parametrize("form", FORMS)
def test_same_rows_from_every_form(form: str, tmp_path: Path) -> None:
    """Rows, labels, and sparse where the file is."""
    shard = encoded(read(write(tmp_path)[form]))
    np.testing.assert_array_equal(dense(shard), ROWS)
    np.testing.assert_array_equal(shard.labels, LABELS)
    assert isinstance(shard.rows, SparseRows) == form.startswith(("svm", "sparse"))


def test_query_selects_rows_and_columns(tmp_path: Path) -> None:
    """Files in it are tables, relative to the folder."""
    write(tmp_path)
    query = "SELECT b, 10 * a AS ten, y FROM 'table.parquet' WHERE a > 0"
    data = load(Source(query=query), Reading(label="y"), tmp_path)
    assert [column.name for column in data.schema] == ["b", "ten"]
    np.testing.assert_array_equal(dense(encoded(data)), [[0.5, 10.0], [0.25, 30.0]])


def test_images_are_rows_of_pixels(tmp_path: Path) -> None:
    """IDX, kept as bytes, with their labels in a file of their own; one digit against the others."""
    images = np.arange(24).reshape(3, 2, 4)
    (tmp_path / "i-ubyte").write_bytes(idx(images))
    (tmp_path / "l-ubyte").write_bytes(idx(np.array([0, 7, 7])))
    data = load(Source(data="i-ubyte", labels="l-ubyte"), Reading(positive=7, scale=0.5), tmp_path)
    shard = encoded(data)
    assert (shard.rows.dtype, shard.labels.tolist()) == (np.uint8, [-1.0, 1.0, 1.0])  # type: ignore[union-attr]
    np.testing.assert_array_equal(dense(shard), images.reshape(3, 8) / 2)


def test_columns_are_chosen_by_name(tmp_path: Path) -> None:
    """Those that are named, in their order; or all but some."""
    text = "id,a,b,y\n1,2,3,4\n"
    assert [c.name for c in table(tmp_path, text).schema] == ["id", "a", "b"]
    assert [c.name for c in table(tmp_path, text, drop=["id"]).schema] == ["a", "b"]
    assert [c.name for c in table(tmp_path, text, features=["b", "a"]).schema] == ["b", "a"]


def test_kinds_are_told_apart(tmp_path: Path) -> None:
    """Numbers, texts, days and times as ISO 8601 has them, as seconds since 1970; what is empty is a number."""
    text = (
        "n,t,d,s,w,e,y\n1.5,f,1970-01-02,1970-01-01 00:00:10.5,01/02/2020,,1\n"
        "2,t,1970-01-03,1970-01-01T00:00:11,12/12/2020,,2\n"
    )
    data = table(tmp_path, text)
    kinds = [Kind.NUMBER, Kind.TEXT, Kind.TIME, Kind.TIME, Kind.TEXT, Kind.NUMBER]
    assert [column.kind for column in data.schema] == kinds
    levels = {"t": ("t", "f"), "w": ("01/02/2020", "12/12/2020")}
    rows = [[1.5, 0, 1, 86400, 10.5, 1, 0, -9], [2, 1, 0, 172800, 11, 0, 1, -9]]
    np.testing.assert_array_equal(dense(encoded(data, levels=levels, missing=-9.0)), rows)


def test_kinds_of_a_parquet_file_are_its_own(tmp_path: Path) -> None:
    """Truths are 0 and 1; decimals, large integers and nulls are numbers; time zones count; enumerations are texts."""
    with duckdb.connect() as database:
        database.execute(
            """COPY (SELECT true AS b, 1.25::DECIMAL(9, 2) AS d, 7::HUGEINT AS h, NULL::INT AS n, 3::UTINYINT AS u,
            '1970-01-01 01:00:00+01'::TIMESTAMPTZ AS z, NULL::DATE AS nd, 'k'::ENUM ('k', 'l') AS e, 1 AS y) TO '"""
            f"{tmp_path}/t.parquet'"
        )
    data = load(Source(data="t.parquet"), Reading(label="y"), tmp_path)
    assert [str(column.kind) for column in data.schema] == [*["number"] * 5, "time", "time", "text"]
    rows = dense(encoded(data, levels={"e": ("k", "l")}, missing=-9.0))
    np.testing.assert_array_equal(rows, [[1, 1.25, 7, -9, 3, 0, -9, 1, 0]])


def test_times_are_as_iso_8601_writes_them(tmp_path: Path) -> None:
    """With a zone or in UTC; what only begins like one makes a text of its column."""
    lines = [
        "1970-01-01",
        "1970-01-01T00:00:01",
        "1970-01-01 00:00:02.5",
        "1970-01-01T01:00:03+01:00",
        "1970-01-01T00:00:04Z",
    ]
    data = table(tmp_path, "d,y\n" + "".join(f"{line},1\n" for line in lines))
    np.testing.assert_array_equal(dense(encoded(data)), [[0.0], [1.0], [2.5], [3.0], [4.0]])
    for odd in ("20251230", "45000", "today", "2025", "2025-02-30", "2025-12-31x"):
        data = table(tmp_path, f"d,y\n2025-12-31,1\n{odd},1\n")
        assert [column.kind for column in data.schema] == [Kind.TEXT], odd


def test_days_of_either_month_are_texts_in_json_too(tmp_path: Path) -> None:
    """Whatever else is in the file."""
    for other in ("13-02-2025", "02-13-2025"):
        data = table(tmp_path, f'{{"d": "01-02-2025", "y": 1}}\n{{"d": "{other}", "y": 1}}\n', "t.jsonl")
        assert [column.kind for column in data.schema] == [Kind.TEXT]
    data = table(tmp_path, '{"d": "1970-01-01T00:00:05Z", "e": "1970-01-02", "y": 1}\n', "t.jsonl")
    np.testing.assert_array_equal(dense(encoded(data)), [[5.0, 86400.0]])


def test_kind_of_a_column_is_that_of_all_its_values(tmp_path: Path) -> None:
    """However late the first text, or the first value at all, comes."""
    many = 30_000
    data = table(tmp_path, "ward,y\n" + "1,1\n" * many + "ICU,1\n")
    rows = dense(encoded(data, levels={"ward": ("1", "ICU")}))
    assert (rows[0].tolist(), rows[-1].tolist()) == ([1, 0], [0, 1])
    data = table(tmp_path, "a,y\n" + ",1\n" * many + "2.5,1\n")
    assert [column.kind for column in data.schema] == [Kind.NUMBER]
    assert dense(encoded(data, missing=0.0))[-1].tolist() == [2.5]


def test_separator_is_looked_for_outside_of_quotes(tmp_path: Path) -> None:
    """A name may have commas."""
    data = table(tmp_path, '"Age, years, rounded";"Weight, kg";y\n50;70;1\n')
    assert [column.name for column in data.schema] == ["Age, years, rounded", "Weight, kg"]


def test_query_gives_its_rows_in_one_order(tmp_path: Path) -> None:
    """A client that comes back is known by its rows."""
    with duckdb.connect() as database:
        database.execute(
            f"COPY (SELECT range % 1000 AS pid, range AS v, 1 AS y FROM range(400000)) TO '{tmp_path}/t.parquet'"
        )
    query = "SELECT v, y FROM 't.parquet' JOIN (SELECT DISTINCT pid FROM 't.parquet') USING (pid)"
    first, *others = [encoded(load(Source(query=query), Reading(label="y"), tmp_path)).digest("") for _ in range(4)]
    assert others == [first] * 3


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_numbers_are_as_they_are_written_however_late_they_come(form: str, tmp_path: Path) -> None:
    """A column that begins with whole numbers may have others."""
    if form == "csv":
        text = "a,y\n" + "1,1\n" * 30_000 + "1.5,0.4\n"
    else:
        text = '{"a": 1, "y": 1}\n' * 30_000 + '{"a": 1.5, "y": 0.4}\n'
    data = table(tmp_path, text, f"t.{form}")
    assert dense(encoded(data))[-1].tolist() == [1.5]
    assert data.labels[-1] == 0.4


@pytest.mark.parametrize("name", ["data[1].csv", "d*.csv", "d?.csv", "it's.csv", "year=2020/a.csv"])
def test_file_is_the_one_that_is_named(name: str, tmp_path: Path) -> None:
    """Not another that a pattern fits; and its folder's name is no column."""
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / "data1.csv").write_text("a,y\n1,1\n")
    (tmp_path / name).write_text("a,y\n2,1\n")
    data = load(Source(data=name), Reading(label="y"), tmp_path)
    assert [column.name for column in data.schema] == ["a"]
    assert dense(encoded(data)).tolist() == [[2.0]]


def test_query_is_of_the_files_beside_the_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not of those of the same name where the command was given; it may end as people end it."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "q.csv").write_text("a,y\n1,1\n")
    (tmp_path / "sub/q.csv").write_text("a,y\n2,1\n")
    monkeypatch.chdir(tmp_path)
    everything = "SELECT * FROM 'q.csv'"
    for end in ("", ";", " -- all of it", "\n;\n"):
        data = load(Source(query=everything + end), Reading(label="y"), tmp_path / "sub")
        assert dense(encoded(data)).tolist() == [[2.0]]
    assert Path.cwd() == tmp_path


def test_intercept_is_a_last_column_of_ones(tmp_path: Path) -> None:
    """In every form, also where entries are scaled."""
    files = write(tmp_path)
    for form in ("csv", "npz", "svm", "sparse.npz"):
        np.testing.assert_array_equal(dense(encoded(read(files[form]), intercept=True))[:, -1], np.ones(3))
    for scale in (1 / 255, 0.3, 1e-3):
        for form in ("npz", "svm"):
            rows = dense(encoded(read(files[form], scale=scale), intercept=True))
            np.testing.assert_array_equal(rows[:, -1], np.ones(3))
            np.testing.assert_allclose(rows[:, :2], ROWS * scale, rtol=1e-15)


@pytest.mark.parametrize(
    ("labels", "positive"),
    [(("M", "B"), "M"), ((1, 0), 1), ((1, 0), "1"), (("yes", "no"), "yes"), (("true", "false"), True), ((2.5, 1), 2.5)],
)
def test_one_label_counts_as_positive(labels: tuple[object, object], positive: object, tmp_path: Path) -> None:
    """Whatever the file says, also where it is read as true and false."""
    text = "a,y\n" + "".join(f"1,{label}\n" for label in (labels[0], labels[1], labels[0]))
    assert table(tmp_path, text, positive=positive).labels.tolist() == [1.0, -1.0, 1.0]


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20), st.data())
def test_svmlight_numbers_are_read_to_the_last_bit(values: list[float], data: st.DataObject) -> None:
    """However they are written."""
    ways = st.sampled_from(["{!r}", "{:.17g}", "{:.25e}", "{:+.16e}", "{:.20g}"])
    texts = [data.draw(ways).format(value) for value in values]
    path = Path(data.draw(st.just("/dev/shm" if Path("/dev/shm").is_dir() else "."))) / "fism-numbers.svm"  # noqa: S108
    path.write_text("".join(f"{text} 3:{text}\n" for text in texts))
    try:
        shard = read_svmlight(path, Reading())
    finally:
        path.unlink()
    expected = np.array([float(text) for text in texts])
    assert shard.labels.tobytes() == expected.tobytes()
    rows = shard.rows
    assert isinstance(rows, SparseRows)
    np.testing.assert_array_equal(rows.data.astype(float), expected)


def test_svmlight_is_read_as_scikit_learn_reads_it(tmp_path: Path) -> None:
    """A file with comments, blank lines, Windows line ends, no last newline, and rows without entries."""
    from sklearn.datasets import load_svmlight_file  # noqa: PLC0415

    rng = np.random.default_rng(0)
    lines = []
    for i in range(300):
        columns = np.flatnonzero(rng.random(50) < 0.2) + 1
        pairs = " ".join(f"{column}:{rng.normal() * 10.0 ** rng.integers(-5, 5)!r}" for column in columns)
        lines.append(f"{rng.normal():.6g} {pairs}" + (" # note" if i % 7 == 0 else "") + ("\r" if i % 5 == 0 else ""))
    path = tmp_path / "rows.svm"
    path.write_text("# head\n" + "\n".join(lines).replace("np.float64(", "").replace(")", ""))
    rows, labels = load_svmlight_file(str(path))
    shard = read_svmlight(path, Reading())
    np.testing.assert_array_equal(dense(shard), rows.toarray())
    np.testing.assert_array_equal(shard.labels, labels)


def test_svmlight_longer_than_a_block_is_one_shard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of every size give the same rows, and errors the same line."""
    text = "".join(f"{i} 1:{i} {i + 2}:0.5\n" for i in range(50))
    path = tmp_path / "rows.svm"
    path.write_text(text)
    whole = dense(read_svmlight(path, Reading()))
    for size in (1, 7, 64):
        monkeypatch.setattr("fism_client.data.readers.svmlight._BLOCK", size)
        np.testing.assert_array_equal(dense(read_svmlight(path, Reading())), whole)
    path.write_text(text + "1 x:1\n")
    with pytest.raises(DataError, match="line 51: a column is a whole number, not 'x:1'"):
        read_svmlight(path, Reading())


def test_columns_of_svmlight_can_be_said_and_counted_from_zero(tmp_path: Path) -> None:
    """A shard may lack the last columns of the federation."""
    path = tmp_path / "rows.svm"
    path.write_text("1 0:5 2:6\n")
    shard = read_svmlight(path, Reading(zero_based=True, columns=9))
    assert dense(shard).tolist() == [[5, 0, 6, 0, 0, 0, 0, 0, 0]]
