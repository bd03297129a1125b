"""Reads the lines of a CSV file: its delimiter, its column names, and what is wrong with it."""

from __future__ import annotations

import csv
import gzip
import re
import zlib
from typing import TYPE_CHECKING, BinaryIO, cast

from fism_common.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_DELIMITERS = ",;\t|"
_QUOTED = re.compile(r'"[^"]*"')
_LONGEST_LINE = 2**20
_UNREADABLE = (OSError, EOFError, zlib.error)


def is_csv(path: Path) -> bool:
    """Whether a file is CSV or TSV, by its name."""
    return _plain_name(path).endswith((".csv", ".tsv"))


def delimiter(path: Path) -> str:
    """Return the delimiter of the names in a file's first line."""
    if _plain_name(path).endswith(".tsv"):
        return "\t"
    try:
        with _open(path) as file:
            line = file.readline(_LONGEST_LINE).decode("utf-8", "replace")
    except _UNREADABLE:
        return ","  # DuckDB will report what is wrong
    return max(_DELIMITERS, key=_QUOTED.sub("", line).count)


def names(path: Path) -> list[str]:
    """Return the names in the first line, exactly as written; an empty list if it cannot be read."""
    try:
        with _open(path) as file:
            lines = (line.decode("utf-8-sig") for line in file)
            return [name.strip() for name in next(csv.reader(lines, delimiter=delimiter(path)), [])]
    except (*_UNREADABLE, UnicodeDecodeError, csv.Error):
        return []


def fault(path: Path) -> DataError | None:
    """Return the error for the first line that is not valid CSV; None if there is none."""
    try:
        with _open(path) as file:
            return _fault(file, path)
    except _UNREADABLE:
        return None


def _fault(file: BinaryIO, path: Path) -> DataError | None:
    number, ends = 0, set[bytes]()

    def decoded() -> Iterator[str]:
        nonlocal number
        for number, line in enumerate(file, 1):  # reported below
            if line.endswith(b"\n"):
                ends.add(line[-2:] if line.endswith(b"\r\n") else b"\n")
            yield line.decode("utf-8-sig" if number == 1 else "utf-8")

    lines = csv.reader(decoded(), delimiter=delimiter(path), strict=True)
    try:
        expected = len(next(lines, []))
        for fields in lines:
            if fields and len(fields) != expected:
                return DataError(
                    f"{path}: line {lines.line_num} has {len(fields)} fields, but the first line has {expected}"
                )
    except UnicodeDecodeError:
        return DataError(f"{path}: line {number} is not in UTF-8; save the file in that encoding")
    except csv.Error as error:
        return DataError(f'{path}: line {number}: {error}; a " inside quotes is written twice')
    if len(ends) > 1:
        return DataError(f"{path} mixes Windows and Unix line endings; save it with one of them")
    return None


def _open(path: Path) -> BinaryIO:
    return cast("BinaryIO", gzip.open(path)) if path.name.lower().endswith(".gz") else path.open("rb")


def _plain_name(path: Path) -> str:
    return path.name.lower().removesuffix(".gz")
