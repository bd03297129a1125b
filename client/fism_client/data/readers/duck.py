"""How we use DuckDB: connections, queries for files, and its errors as DataErrors."""

from __future__ import annotations

import contextlib
import re
from contextlib import chdir
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fism_client.data.readers.csv_lines import delimiter, fault, is_csv
from fism_common.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import duckdb

_CSV = (
    "read_csv({path}, delim={delimiter}, header=true, skip=0, quote='\"', escape='\"', comment='', null_padding=false, "
    "ignore_errors=false, hive_partitioning=false, auto_type_candidates={types}, sample_size={sample})"
)
"""Sets what DuckDB would guess from a sample and get wrong: it reads broken files without their first lines, or as one
column; rounds 1.5 in a column that starts with whole numbers; reads f as false, and 01/02 as either 1 Feb or 2 Jan."""
_JSON = (
    "read_json({path}, format='{form}', sample_size=-1, hive_partitioning=false, dateformat='iso', "
    "timestampformat='iso')"
)
_READERS = {
    ".csv": _CSV,
    ".tsv": _CSV,
    ".parquet": "read_parquet({path}, hive_partitioning=false)",
    ".json": _JSON.replace("{form}", "auto"),
    ".jsonl": _JSON.replace("{form}", "newline_delimited"),
    ".ndjson": _JSON.replace("{form}", "newline_delimited"),
}
"""The reader for a file, by its extension; .gz may follow it."""
SAMPLE = 20_480
"""The number of rows from which the kinds of a CSV file's columns are guessed at first."""


@dataclass(frozen=True)
class Selection:
    """A query for a table; for a CSV file, which has no types, also other ways to read it."""

    query: str
    thorough: str
    """Takes a column's kind from all its values; ``query`` may guess it from the first ones."""
    verbatim: str
    """Reads all columns as texts, exactly as written."""
    file: Path | None = None
    """None for a query from the site's configuration."""

    @classmethod
    def by(cls, query: str, file: Path | None = None) -> Selection:
        """Return the selection for a query whose columns have types."""
        return cls(query, query, query, file)


def select_all(path: Path) -> Selection | None:
    """Return the selection for a whole file; None if it is not a table."""
    name = path.name.lower().removesuffix(".gz")
    reader = next((reader for end, reader in _READERS.items() if name.endswith(end)), None)
    if reader is None:
        return None
    exact = quoted(re.sub(r"[*?[]", r"[\g<0>]", str(path.absolute())))  # otherwise DuckDB treats these as wildcards
    if not is_csv(path):
        return Selection.by(f"SELECT * FROM {reader.format(path=exact)}", path)  # noqa: S608  # quoted

    def reading(types: str, sample: int) -> str:
        given = reader.format(path=exact, delimiter=quoted(delimiter(path)), types=types, sample=sample)
        return f"SELECT * FROM {given}"  # noqa: S608  # quoted

    numbers = "['DOUBLE', 'VARCHAR']"
    return Selection(reading(numbers, SAMPLE), reading(numbers, -1), reading("['VARCHAR']", SAMPLE), path)


def quoted(text: str) -> str:
    """Return a text as an SQL string."""
    return "'" + text.replace("'", "''") + "'"


def named(name: str) -> str:
    """Return a column's name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def connect(*, threads: int | None = None) -> duckdb.DuckDBPyConnection:
    """Return an in-memory database that downloads no extensions and shows no progress bar."""
    import duckdb  # noqa: PLC0415  # slow to load, and not always needed

    database = duckdb.connect(config={"autoinstall_known_extensions": "false"})
    with contextlib.suppress(duckdb.Error):  # without its extension for time zones, DuckDB knows UTC only
        database.execute("SET TimeZone = 'UTC'")
    database.execute("SET enable_progress_bar = false")
    if threads is not None:
        database.execute(f"SET threads = {threads}")
    return database


@contextlib.contextmanager
def asking(
    folder: Path, where: str, *, file: Path | None = None, threads: int | None = None
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Provide a database where files are relative to ``folder``; raise its errors as DataErrors about ``where``.

    For a CSV file, we check its lines ourselves to find what is wrong.
    """
    import duckdb  # noqa: PLC0415  # slow to load, and not always needed

    with connect(threads=threads) as database, chdir(folder):
        try:
            yield database
        except duckdb.Error as error:
            raise (fault(file) if file is not None and is_csv(file) else None) or _data_error(error, where) from error
        except (UnicodeDecodeError, MemoryError, RuntimeError) as error:  # libraries below DuckDB raise RuntimeError
            raise DataError(f"{where} cannot be read: {error}") from error


_CSV_LINE = re.compile(r"CSV Error on Line: (\d+)")
_CSV_VALUE = re.compile(r'converting column "(.*?)"\. Could not convert string "(.*?)" to \'?(\w+)', re.DOTALL)


def is_of_a_value(error: duckdb.Error) -> bool:
    """Whether an error says that a value does not fit the kind guessed for its column."""
    return _CSV_VALUE.search(str(error)) is not None


def _data_error(error: duckdb.Error, where: str) -> DataError:
    """Return DuckDB's error as a DataError."""
    text = str(error)
    line, value = _CSV_LINE.search(text), _CSV_VALUE.search(text)
    if line and value:
        return DataError(f"{where}: line {line[1]}, column {value[1]!r} is {value[2]!r}, where {value[3]} is expected")
    if line:
        summary = text.partition("\n")[0].partition("CSV Error on Line")[0]
        reason = next(
            (part for part in text.splitlines() if part.startswith(("Expected", "Value", "Error", "Maximum"))), summary
        )
        return DataError(f"{where}: line {line[1]}: {reason}")
    return DataError(f"{where} cannot be read: {text.splitlines()[0]}")
