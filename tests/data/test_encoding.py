"""Categories, missing numbers, and the columns that a federation agrees on."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pytest

from fism_client.data.loading import load
from fism_common.data.columns import (
    Column,
    Kind,
    Missing,
    Recipe,
    Standardise,
    Unknown,
    agree,
)
from fism_common.data.source import Reading, Source
from fism_common.errors import DataError, MismatchError
from fism_common.joining import Terms
from fism_common.problem.registry import Variant
from fism_common.wire.pb import federation_pb2 as pb
from fism_common.wire.terms import read_terms, write_terms

from .files import dense, encoded, table

WARDS = {"ward": ("A", "B")}
A, B, W = Column("a", Kind.NUMBER), Column("b", Kind.NUMBER), Column("ward", Kind.TEXT)


def test_each_level_becomes_a_column(tmp_path: Path) -> None:
    """In the order in which the federation lists them."""
    data = table(tmp_path, "ward,a,y\nB,1,1\nA,2,1\n")
    recipe = Recipe(levels=WARDS, intercept=True)
    agreed = agree(recipe, data.schema, "one")
    assert [entry.name for entry in agreed.entries()] == ["ward=A", "ward=B", "a", "intercept"]
    np.testing.assert_array_equal(dense(data.encode(agreed)), [[0, 1, 1, 1], [1, 0, 2, 1]])


def test_numbers_can_be_levels(tmp_path: Path) -> None:
    """As they are written in the configuration, whole ones without a point."""
    rows = dense(encoded(table(tmp_path, "k,y\n1,0\n3,0\n"), levels={"k": ("1", "2", "3")}))
    np.testing.assert_array_equal(rows, [[1, 0, 0], [0, 0, 1]])
    rows = dense(encoded(table(tmp_path, "k,y\n1.5,0\n3,0\n"), levels={"k": ("1.5", "3")}))
    np.testing.assert_array_equal(rows, [[1, 0], [0, 1]])


@pytest.mark.parametrize(
    ("values", "levels"),
    [
        (("900000000000207008", "900000000000207009"), ("900000000000207008", "900000000000207009")),
        (("9007199254740993", "9007199254740992"), ("9007199254740993", "9007199254740992")),
        (("1E2", "100"), ("1E2", "100")),
        (("01", "1"), ("01", "1")),
        (("1.0", "2.50"), ("1", "2.5")),
        (("1", "2"), ("1.0", "2.0")),
        (("TRUE", "FALSE"), ("true", "false")),
    ],
)
def test_level_is_what_is_written(values: tuple[str, str], levels: tuple[str, str], tmp_path: Path) -> None:
    """Codes that look like numbers are not read as such; decimals are, and truths."""
    data = table(tmp_path, f"k,y\n{values[0]},0\n{values[1]},0\n")
    np.testing.assert_array_equal(dense(encoded(data, levels={"k": levels})), [[1, 0], [0, 1]])


def test_truths_of_a_parquet_file_are_levels_also_where_some_are_missing(tmp_path: Path) -> None:
    """They are not the numbers 0 and 1 then."""
    with duckdb.connect() as database:
        values = "(true, 9007199254740993), (false, NULL), (NULL, 2)"
        database.execute(f"COPY (SELECT *, 1 AS y FROM (VALUES {values}) AS t(k, c)) TO '{tmp_path}/t.parquet'")
    data = load(Source(data="t.parquet"), Reading(label="y"), tmp_path)
    levels = {"k": ("yes", "no"), "c": ("9007199254740993", "2")}
    rows = dense(encoded(data, levels=levels, unknown=Unknown.OTHER))
    np.testing.assert_array_equal(rows, [[1, 0, 0, 1, 0, 0], [0, 1, 0, 0, 0, 1], [0, 0, 1, 0, 1, 0]])


def test_category_of_which_no_level_is_listed_is_warned_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Where all of it counts as other: the levels may be misspelt."""
    encoded(table(tmp_path, "ward,y\na,0\nb,0\n"), levels=WARDS, unknown=Unknown.OTHER)
    assert "column 'ward' is never one of 'A', 'B': all rows count as 'other'" in caplog.text


@pytest.mark.parametrize("levels", [("yes", "no"), ("no", "yes"), ("true", "false"), ("True", "False"), ("t", "f")])
def test_yes_and_no_can_be_levels(levels: tuple[str, str], tmp_path: Path) -> None:
    """Though a file's columns of them are read as true and false."""
    data = table(tmp_path, f"k,y\n{levels[0]},0\n{levels[1]},0\n{levels[0]},1\n")
    np.testing.assert_array_equal(dense(encoded(data, levels={"k": levels})), [[1, 0], [0, 1], [1, 0]])


def test_unknown_level_is_refused_or_goes_to_other(tmp_path: Path) -> None:
    """A missing one, too."""
    text = "ward,y\nA,0\nZ,0\n,0\n"
    with pytest.raises(DataError, match=r"t.csv: row 2, column 'ward' is 'Z'; the federation lists 'A', 'B'"):
        encoded(table(tmp_path, text), levels=WARDS)
    rows = dense(encoded(table(tmp_path, text), levels=WARDS, unknown=Unknown.OTHER))
    np.testing.assert_array_equal(rows, [[1, 0, 0], [0, 0, 1], [0, 0, 1]])
    with pytest.raises(DataError, match=r"row 1, column 'ward' is missing"):
        encoded(table(tmp_path, "ward,y\n,0\nA,1\n"), levels=WARDS)


def test_missing_number_is_refused_or_filled_in(tmp_path: Path) -> None:
    """By a stated number; the federation's mean is filled in later, and until then it is NaN."""
    text = "a,b,y\n1,,0\n2,5,0\n"
    with pytest.raises(DataError, match=r"t.csv: row 1, column 'b' is missing; leave the row out, or let"):
        encoded(table(tmp_path, text))
    np.testing.assert_array_equal(dense(encoded(table(tmp_path, text), missing=-1.0)), [[1, -1], [2, 5]])
    np.testing.assert_array_equal(encoded(table(tmp_path, text), missing=Missing.MEAN).rows, [[1, np.nan], [2, 5]])


def test_order_of_columns_is_the_federation_s(tmp_path: Path) -> None:
    """Whatever the order in a client's own file."""
    first = agree(Recipe(), (A, B), "first")
    data = table(tmp_path, "b,y,a\n5,0,7\n")
    again = agree(first, data.schema, "second")
    np.testing.assert_array_equal(dense(data.encode(again)), [[7, 5]])
    assert [column.name for column in agree(Recipe(), (A, B), "first", ("b", "a")).features] == ["b", "a"]


def test_differences_are_told_in_a_table() -> None:
    """Columns that are missing, too many, or of another kind."""
    agreed = agree(Recipe(levels=WARDS), (A, B, W), "first")
    with pytest.raises(MismatchError) as told:
        agree(agreed, (Column("a", Kind.TIME), W, Column("extra", Kind.NUMBER)), "west")
    assert str(told.value) == (
        "the columns of 'west' differ from this federation's:\n"
        "  column  federation  west\n"
        "  a       number      time\n"
        "  b       number      -\n"
        "  extra   -           number"
    )


@pytest.mark.parametrize(
    ("recipe", "given", "order", "reason"),
    [
        (Recipe(), (W,), (), "ward .* text, its levels not listed"),
        (Recipe(levels=WARDS), (A,), (), "ward    category    -"),
        (Recipe(), (A,), ("a", "b"), "b       any         -"),
        (Recipe(), (), ("a",), "unnamed columns; this federation's columns are a"),
        (Recipe(features=(A,)), (), (), "unnamed columns"),
        (Recipe(levels=WARDS), (Column("ward", Kind.TIME),), (), "category    time"),
    ],
)
def test_columns_that_do_not_fit_are_refused(
    recipe: Recipe, given: tuple[Column, ...], order: tuple[str, ...], reason: str
) -> None:
    """Also the first client's, by what the configuration says."""
    with pytest.raises(MismatchError, match=reason):
        agree(recipe, given, "one", order)


@pytest.mark.parametrize("missing", [Missing.REFUSE, Missing.MEAN, 0.0, -2.5])
def test_recipe_travels_as_it_is(missing: Missing | float) -> None:
    """To the last word."""
    recipe = Recipe((A, W), WARDS, Unknown.OTHER, missing, intercept=True, standardise=Standardise.SCALE)
    terms = Terms(run_id="r", loss=Variant("hinge"), constraint=Variant("simplex"), recipe=recipe)
    assert read_terms(write_terms(terms)).recipe == recipe


def test_recipe_of_a_later_version_is_refused() -> None:
    """By name."""
    with pytest.raises(MismatchError, match="'whiten' is not a valid Standardise"):
        read_terms(pb.JoinReply(recipe=pb.Recipe(standardise="whiten")).SerializeToString())
