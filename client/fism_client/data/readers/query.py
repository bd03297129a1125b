"""Tables read with DuckDB: CSV, Parquet and JSON files, or the result of a query."""

from __future__ import annotations

import logging
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fism_client.data.labels import is_number, positives
from fism_client.data.readers.csv_lines import is_csv
from fism_client.data.readers.csv_lines import names as names_written
from fism_client.data.readers.duck import SAMPLE, asking, is_of_a_value
from fism_client.data.readers.times import read_times
from fism_client.data.table import Table
from fism_common.data.columns import Kind
from fism_common.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import duckdb
    from numpy.typing import NDArray

    from fism_client.data.readers.duck import Selection
    from fism_common.data.source import Reading
    from fism_common.vectors import Vector

_NUMBERS = re.compile(r"(U?(TINY|SMALL|BIG|HUGE)INT|U?INTEGER|FLOAT|DOUBLE|BOOLEAN|DECIMAL.*|\"?NULL\"?)$")
_WIDE = re.compile(r"(U?HUGEINT|DECIMAL.*|\"?NULL\"?)$")
_TEXTS = re.compile(r"(VARCHAR|UUID|ENUM.*)$")
_TIMES = re.compile(r"(DATE|TIMESTAMP.*)$")
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Fetched:
    """The columns of a query: the features first, and the label last if there is one."""

    places: dict[str, int]
    """The positions of the features among the query's columns, by name."""
    kinds: dict[str, Kind]
    label: str | None
    arrays: list[NDArray[Any]]
    """Missing values are NaN, or None in texts."""


def read_table(selection: Selection, reading: Reading, folder: Path, where: str, *, labelled: bool = True) -> Table:
    """Return the result of a query; raise DataError that names the source, the row and the column.

    Files in the query are relative to ``folder``. Without ``labelled``, a label is neither needed nor used.
    """
    import duckdb  # noqa: PLC0415  # slow to load, and not always needed

    # On one thread, a site's query always returns its rows in the same order, whatever it joins and groups.
    threads = None if selection.file is not None else 1
    with asking(folder, where, file=selection.file, threads=threads) as database:
        file = selection.file
        written = names_written(file) if file is not None and is_csv(file) else []
        try:
            found: _Fetched | None = _fetch(database, selection.query, written, reading, where, labelled=labelled)
        except duckdb.Error as error:
            if selection.thorough == selection.query or not is_of_a_value(error):
                raise
            found = None
        if found is None or (selection.thorough != selection.query and any(map(_is_late, found.arrays))):
            found = _fetch(database, selection.thorough, written, reading, where, labelled=labelled)
    count, places = found.arrays[0].size, found.places
    if count == 0:
        raise DataError(f"{where} has no rows; leave this client out")
    labels = np.zeros(count)
    if found.label is not None:
        labels = _labels(found.arrays.pop(), found.label, reading.positive, where)

    def verbatim(names: Sequence[str]) -> list[NDArray[Any]]:
        """Return columns as texts."""
        with asking(folder, where, file=selection.file, threads=threads) as database:
            query, columns = _one_select(database, selection.verbatim, where)
            texts = _columns(database, query, columns, [places[name] for name in names], as_texts=True)
        if any(values.size != count for values in texts):
            raise DataError(f"{where} changed while it was being read; start again")
        return texts

    table = Table(where, dict(zip(places, found.arrays, strict=True)), found.kinds, labels, verbatim)
    _refine_kinds(table)
    return table


def _fetch(  # noqa: PLR0913
    database: duckdb.DuckDBPyConnection,
    query: str,
    written: Sequence[str],
    reading: Reading,
    where: str,
    *,
    labelled: bool,
) -> _Fetched:
    """Return the selected columns; ``written`` are the names in a CSV file's first line."""
    query, columns = _one_select(database, query, where)
    names, types = [name for name, _ in columns], [type_ for _, type_ in columns]
    if len(written) == len(names):  # DuckDB renames a second a, and names columns that have no name
        names = [name if as_written else "" for name, as_written in zip(names, written, strict=True)]
        _check_names([name for name in written if name], where)
    _check_names([name for name in names if name], where)
    chosen, label = _choose(names, reading, where, labelled=labelled)
    places = {name: names.index(name) for name in chosen}
    kinds = {name: _kind(name, types[place], where) for name, place in places.items()}
    wanted = list(places.values())
    if label is not None:
        wanted.append(names.index(label))
        if _kind(label, types[wanted[-1]], where) is Kind.TIME:
            raise DataError(
                f"{where}: column {label!r} is a time; a label must be a number, or a text with one that counts as 1"
            )
    return _Fetched(places, kinds, label, _columns(database, query, columns, wanted))


def _one_select(database: duckdb.DuckDBPyConnection, query: str, where: str) -> tuple[str, list[tuple[str, str]]]:
    """Return a query without a semicolon at its end, and the names and types of its columns."""
    import duckdb  # noqa: PLC0415  # slow to load, and not always needed

    statements = database.extract_statements(query)
    if [one.type for one in statements] != [duckdb.StatementType.SELECT]:
        raise DataError(f"{where} must be one SELECT")
    query = statements[0].query.strip().rstrip(";")
    relation = database.sql(query)
    return query, list(zip(relation.columns, map(str, relation.types), strict=True))


def _columns(
    database: duckdb.DuckDBPyConnection,
    query: str,
    columns: Sequence[tuple[str, str]],
    places: Sequence[int],
    *,
    as_texts: bool = False,
) -> list[NDArray[Any]]:
    """Return the columns at these positions. Not by name: DuckDB does not distinguish a from A."""
    names = ", ".join(f"c{i}" for i in range(len(columns)))
    selected = ", ".join(
        f"CAST(c{i} AS VARCHAR) AS c{i}" if as_texts else _selected(f"c{i}", columns[i][1]) for i in places
    )
    found = database.execute(f"SELECT {selected} FROM ({query}\n) AS t({names})").fetchnumpy()  # noqa: S608  # the site's own
    return [_plain(found.pop(f"c{i}")) for i in places]


def _is_late(values: NDArray[Any]) -> bool:
    """Whether a column was read as texts only because its first rows are empty."""
    return (
        values.dtype.kind == "O"
        and values.size > SAMPLE
        and all(value is None for value in values[:SAMPLE])
        and any(value is not None for value in values[SAMPLE:])
    )


def _check_names(names: Sequence[str], where: str) -> None:
    seen = Counter(name.lower() for name in names)
    twice = [name for name in names if seen[name.lower()] > 1]
    if twice:
        raise DataError(f"{where}: the column names {_list(twice)} are duplicates; upper and lower case count as equal")


def _refine_kinds(table: Table) -> None:
    """Refine the kinds of text columns: ISO 8601 texts become times, and empty columns become numbers."""
    for name, values in table.columns.items():
        if values.dtype.kind != "O":
            continue
        if all(value is None for value in values):
            table.columns[name], table.kinds[name] = np.full(values.size, np.nan), Kind.NUMBER
        elif (times := read_times(values)) is not None:
            table.columns[name], table.kinds[name] = times, Kind.TIME


def _choose(names: Sequence[str], reading: Reading, where: str, *, labelled: bool) -> tuple[list[str], str | None]:
    """Return the feature columns and the label column."""
    label = reading.label
    named = [name for name in names if name]
    if labelled and label is None:
        raise DataError(f"{where}: say which of its columns is the label: {_list(named)}")
    asked = [*([label] if labelled and label else []), *(reading.features or []), *reading.drop]
    for name in asked:
        if name not in named:
            raise DataError(f"{where} has no column {name!r}; it has {_list(named)}")
    chosen = reading.features or [name for name in named if name != label and name not in reading.drop]
    if not chosen:
        raise DataError(f"{where} has no column left to fit a model on; it has {_list(named)}")
    if len(named) < len(names) and reading.features is None:
        places = ", ".join(str(i) for i, name in enumerate(names, 1) if not name)
        _log.warning("%s: column %s has no name in the first line, and is not used", where, places)
    return list(chosen), label if labelled else None


def _list(names: Sequence[str]) -> str:
    most = 30
    return ", ".join(map(repr, names[:most])) + (f" and {len(names) - most} more" if len(names) > most else "")


def _kind(name: str, type_: str, where: str) -> Kind:
    for pattern, kind in ((_NUMBERS, Kind.NUMBER), (_TEXTS, Kind.TEXT), (_TIMES, Kind.TIME)):
        if pattern.match(type_):
            return kind
    raise DataError(
        f"{where}: column {name!r} is of type {type_}, which is not a number, text or time; drop it, or select a part "
        "of it with a query"
    )


def _selected(name: str, type_: str) -> str:
    if _TIMES.match(type_):
        return f"CASE WHEN isinf({name}) THEN 'inf'::DOUBLE ELSE epoch({name}) END AS {name}"
    if _WIDE.match(type_):
        return f"CAST({name} AS DOUBLE) AS {name}"
    if _TEXTS.match(type_) and type_ != "VARCHAR":
        return f"CAST({name} AS VARCHAR) AS {name}"
    return name


def _plain(values: NDArray[Any]) -> NDArray[Any]:
    """Return a column with missing values as NaN, or None in texts."""
    if not isinstance(values, np.ma.MaskedArray):
        return values
    mask = np.ma.getmaskarray(values)
    if values.dtype.kind == "O":
        plain = values.data.copy()
        plain[mask] = None
        return plain
    return values.data if not mask.any() else np.where(mask, np.nan, values.data)


def _labels(values: NDArray[Any], name: str, positive: object, where: str) -> Vector:
    missing = np.array([value is None for value in values]) if values.dtype.kind == "O" else np.isnan(values)
    if missing.any():
        raise DataError(f"{where}: row {int(np.argmax(missing)) + 1}, column {name!r} is missing, and it is the label")
    if positive is not None:
        return positives(values, positive, f"{where}: column {name!r}")
    if values.dtype.kind == "O":
        row = next((i for i, text in enumerate(values) if not is_number(text)), 0)
        raise DataError(
            f"{where}: row {row + 1}, column {name!r} is {values[row]!r}, where a number is expected for the label; "
            "or say which text counts as 1 (positive)"
        )
    return values.astype(np.float64)
