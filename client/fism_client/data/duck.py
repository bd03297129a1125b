"""Tables through DuckDB: CSV, Parquet and JSON lines by their path, or whatever a query selects."""

from __future__ import annotations

import contextlib
import csv
import gzip
import re
import warnings
import zlib
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fism_client.data.labels import positives
from fism_client.data.table import Table, seconds_since_1970
from fism_common.columns import Kind
from fism_common.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import duckdb
    from numpy.typing import NDArray

    from fism_common.source import Reading
    from fism_common.vectors import Vector

_STRICT = (
    "header=true, skip=0, quote='\"', escape='\"', comment='', null_padding=false, ignore_errors=false, "
    "hive_partitioning=false, auto_type_candidates=['DOUBLE', 'VARCHAR']"
)
"""What DuckDB would guess from a sample, and get wrong: it reads broken files without their first lines, or as one
column; rounds 1.5 in a column that began with whole numbers; takes f for false, and 01/02 for a day of either month."""
_READERS = {
    ".csv": f"read_csv({{path}}, delim={{delimiter}}, {_STRICT})",
    ".tsv": f"read_csv({{path}}, delim='\t', {_STRICT})",
    ".parquet": "read_parquet({path}, hive_partitioning=false)",
    ".json": "read_json({path}, format='auto', sample_size=-1, hive_partitioning=false)",
    ".jsonl": "read_json({path}, format='newline_delimited', sample_size=-1, hive_partitioning=false)",
    ".ndjson": "read_json({path}, format='newline_delimited', sample_size=-1, hive_partitioning=false)",
}
"""What reads a file, by the end of its name; .gz may come after it."""
_DELIMITERS = ",;\t|"
_NUMBERS = re.compile(r"(U?(TINY|SMALL|BIG|HUGE)INT|U?INTEGER|FLOAT|DOUBLE|BOOLEAN|DECIMAL.*|\"?NULL\"?)$")
_WIDE = re.compile(r"(U?HUGEINT|DECIMAL.*|\"?NULL\"?)$")
_TEXTS = re.compile(r"(VARCHAR|UUID|ENUM.*)$")
_TIMES = re.compile(r"(DATE|TIMESTAMP.*)$")
_ISO = re.compile(r"\d{4}-\d\d-\d\d")


def connect() -> duckdb.DuckDBPyConnection:
    """Return a database in memory that fetches nothing from elsewhere, and shows no progress in our output."""
    import duckdb  # noqa: PLC0415  # slow to load, and not always needed

    database = duckdb.connect(config={"autoinstall_known_extensions": "false", "TimeZone": "UTC"})
    database.execute("SET enable_progress_bar = false")
    return database


def read_table(query: str, reading: Reading, folder: Path, where: str, *, labelled: bool = True) -> Table:
    """Return what a query selects; raise DataError that says where it is from, and which row and column it is about.

    Files in the query are relative to ``folder``. Without ``labelled`` a label is neither needed nor used.
    """
    import duckdb  # noqa: PLC0415  # slow to load, and not always needed

    with connect() as database, contextlib.chdir(folder):
        try:
            statements = database.extract_statements(query)
            if [one.type for one in statements] != [duckdb.StatementType.SELECT]:
                raise DataError(f"{where} must be one SELECT")
            query = statements[0].query.strip().rstrip(";")
            relation = database.sql(query)
            names, types = list(relation.columns), [str(one) for one in relation.types]
            _check_names(names, where)
            chosen, label = _choose(names, reading, where, labelled=labelled)
            wanted = [names.index(name) for name in [*chosen, *([label] if label else [])]]
            kinds = {name: _kind(name, types[names.index(name)], where) for name in chosen}
            # By their places: DuckDB does not tell a from A.
            places = ", ".join(f"c{i}" for i in range(len(names)))
            selected = ", ".join(_selected(f"c{i}", types[i]) for i in wanted)
            found = database.execute(f"SELECT {selected} FROM ({query}\n) AS t({places})").fetchnumpy()  # noqa: S608  # the site's own
        except duckdb.Error as error:
            raise _ragged(where) or _told(error, where) from error
        except (UnicodeDecodeError, MemoryError, RuntimeError) as error:  # what is below DuckDB raises the last
            raise DataError(f"{where} cannot be read: {error}") from error
    arrays = [_plain(found.pop(f"c{i}")) for i in wanted]
    count = arrays[0].size
    if count == 0:
        raise DataError(f"{where} has no rows; leave this client out")
    labels = _labels(arrays.pop(), label, reading.positive, where) if label else np.zeros(count)
    table = Table(where, dict(zip(chosen, arrays, strict=True)), kinds, labels)
    _look_closer(table)
    return table


def _check_names(names: Sequence[str], where: str) -> None:
    seen = Counter(name.lower() for name in names)
    twice = [name for name in names if seen[name.lower()] > 1]
    if twice:
        raise DataError(
            f"{where}: the columns {_list(twice)} have names that differ in their case alone, or not at all"
        )


def _look_closer(table: Table) -> None:
    """Find the kinds that a file's texts have: times as ISO 8601 has them; and what is empty is of no kind."""
    for name, values in table.columns.items():
        if values.dtype.kind != "O":
            continue
        first = next((value for value in values if value is not None), None)
        if first is None:
            table.columns[name], table.kinds[name] = np.full(values.size, np.nan), Kind.NUMBER
        elif _ISO.match(first):
            with contextlib.suppress(ValueError), warnings.catch_warnings():
                warnings.simplefilter("error")  # of time zones, which it would not take into account
                table.columns[name] = seconds_since_1970(values.astype("datetime64[us]"))
                table.kinds[name] = Kind.TIME


def select_all(path: Path, *, verbatim: bool = False) -> str | None:
    """Return the query for all of a file; None if it is not a table.

    With ``verbatim`` the columns of a CSV file are texts, as they are written.
    """
    name = path.name.lower().removesuffix(".gz")
    reader = next((reader for end, reader in _READERS.items() if name.endswith(end)), None)
    if reader is None:
        return None
    delimiter = _delimiter(path) if "{delimiter}" in reader else ","
    if verbatim:
        reader = reader.replace("['DOUBLE', 'VARCHAR']", "['VARCHAR']")
    exact = re.sub(r"[*?[]", r"[\g<0>]", str(path.absolute()))  # these would stand for other names
    return f"SELECT * FROM {reader.format(path=quoted(exact), delimiter=quoted(delimiter))}"  # noqa: S608  # quoted


def _delimiter(path: Path) -> str:
    """Return what separates the names in a CSV file's first line."""
    try:
        with gzip.open(path) if path.name.lower().endswith(".gz") else path.open("rb") as file:
            line = file.readline(2**20).decode("utf-8", "replace")
    except (OSError, EOFError, zlib.error):
        return ","  # DuckDB will tell what is wrong
    return max(_DELIMITERS, key=line.count)


def quoted(text: str) -> str:
    """Return text as SQL has it."""
    return "'" + text.replace("'", "''") + "'"


def named(name: str) -> str:
    """Return a column's name as SQL has it."""
    return '"' + name.replace('"', '""') + '"'


def _choose(names: Sequence[str], reading: Reading, where: str, *, labelled: bool) -> tuple[list[str], str | None]:
    """Return the columns that are features, and the one that is the label."""
    label = reading.label
    if labelled and label is None:
        raise DataError(f"{where}: say which of its columns is the label: {_list(names)}")
    asked = [*([label] if labelled and label else []), *(reading.features or []), *reading.drop]
    for name in asked:
        if name not in names:
            raise DataError(f"{where} has no column {name!r}; it has {_list(names)}")
    chosen = reading.features or [name for name in names if name != label and name not in reading.drop]
    if not chosen:
        raise DataError(f"{where} has no column left to fit a model on; it has {_list(names)}")
    return list(chosen), label if labelled else None


def _list(names: Sequence[str]) -> str:
    most = 30
    return ", ".join(map(repr, names[:most])) + (f" and {len(names) - most} more" if len(names) > most else "")


def _kind(name: str, type_: str, where: str) -> Kind:
    for pattern, kind in ((_NUMBERS, Kind.NUMBER), (_TEXTS, Kind.TEXT), (_TIMES, Kind.TIME)):
        if pattern.match(type_):
            return kind
    raise DataError(
        f"{where}: column {name!r} is of type {type_}, which is no number, text or time; drop it, or select a part of "
        "it with a query"
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
    """Return a column with what is missing as NaN, or None in texts."""
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
        raise DataError(
            f"{where}: row 1, column {name!r} is {values[0]!r}, where a number is expected, as it is the label; or say "
            "which of its texts counts as 1 (positive)"
        )
    return values.astype(np.float64)


_CSV_LINE = re.compile(r"CSV Error on Line: (\d+)")
_CSV_COLUMN = re.compile(r'converting column "(.*?)"\. Could not convert string "(.*?)" to \'?(\w+)', re.DOTALL)


def _ragged(where: str) -> DataError | None:
    """Return the error for the first line of a CSV file that has not as many fields as the first has names."""
    path = Path(where)
    if not path.name.lower().removesuffix(".gz").endswith((".csv", ".tsv")):
        return None
    delimiter = "\t" if ".tsv" in path.name.lower() else _delimiter(path)
    try:
        with gzip.open(path, "rt") if path.name.lower().endswith(".gz") else path.open() as file:
            lines = csv.reader(file, delimiter=delimiter)
            expected = len(next(lines, []))
            for line in lines:
                if line and len(line) != expected:
                    return DataError(
                        f"{where}: line {lines.line_num} has {len(line)} fields, where {expected} are expected, as in "
                        "the first line"
                    )
    except (OSError, EOFError, zlib.error, UnicodeDecodeError, csv.Error):
        pass
    return None


def _told(error: duckdb.Error, where: str) -> DataError:
    """Return DuckDB's error in our form."""
    text = str(error)
    line, cell = _CSV_LINE.search(text), _CSV_COLUMN.search(text)
    if "utf-8" in text.lower() or "unicode" in text.lower():
        return DataError(
            f"{where}{f': line {line[1]}' if line else ''} is not in UTF-8; save the file in that encoding"
        )
    if line and cell:
        kind = "a number" if _NUMBERS.match(cell[3]) else f"a value of type {cell[3]}"
        return DataError(f"{where}: line {line[1]}, column {cell[1]!r} is {cell[2]!r}, where {kind} is expected")
    if line:
        said = text.partition("\n")[0].partition("CSV Error on Line")[0]
        reason = next(
            (part for part in text.splitlines() if part.startswith(("Expected", "Value", "Error", "Maximum"))), said
        )
        return DataError(f"{where}: line {line[1]}: {reason}")
    return DataError(f"{where} cannot be read: {text.splitlines()[0]}")
