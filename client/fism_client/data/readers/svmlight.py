"""Files in the svmlight and LIBSVM format: one row per line, a label, then column:value pairs; gzipped or not."""

from __future__ import annotations

import gzip
import zlib
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, cast

import numpy as np

from fism_client.compute import kernel_cache
from fism_client.data.shard import Shard, SparseRows, narrow
from fism_common.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from fism_client.data.shard import Entries
    from fism_client.kernels.svmlight import Room
    from fism_common.data.source import Reading
    from fism_common.vectors import Vector

_BLOCK = 2**20
"""Bytes parsed at once."""
_GZIP = b"\x1f\x8b"
_REASONS = (
    "",
    "a row begins with its label, a finite number",
    "column:value is expected",
    "a column is a whole number",
    "columns must ascend, each at most once in a row",
    "a column's number must be below 2147483647",
    "a number has at most 40 characters",
    "columns are numbered from 1 (set zero_based if these start at 0)",
    "a finite number is expected after the colon",
)
"""Indexed by the parser's error codes."""


class _Lines(NamedTuple):
    """The contents of a block of lines."""

    labels: Vector
    lengths: NDArray[np.int64]
    data: Entries
    indices: NDArray[np.int32]


def read_svmlight(path: Path, reading: Reading) -> Shard:
    """Return the rows and labels of a file; raise DataError that names the line and what was expected there."""
    parts, line = [], 1
    try:
        with path.open("rb") as raw, _plain(raw) as file:
            for block in _blocks(file):
                parts.append(_parse(block, str(path), line, first=0 if reading.zero_based else 1))
                line += block.count(b"\n")
    except FileNotFoundError:
        raise DataError(f"there is no file {path}") from None
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"cannot read {path}: {error}") from error
    labels = np.concatenate([part.labels for part in parts]) if parts else np.zeros(0)
    if labels.size == 0:
        raise DataError(f"{path} has no rows; leave this client out")
    rows = _together(parts, reading.columns, path)
    return Shard(rows, labels, reading.scale)


def _plain(raw: BinaryIO) -> BinaryIO:
    compressed = raw.read(2) == _GZIP
    raw.seek(0)
    return cast("BinaryIO", gzip.GzipFile(fileobj=raw)) if compressed else raw


def _blocks(file: BinaryIO) -> Iterator[bytes]:
    """Yield the file in blocks of whole lines."""
    rest = b""
    while more := file.read(_BLOCK):
        end = more.rfind(b"\n") + 1
        if end:
            yield rest + more[:end]
            rest = more[end:]
        else:
            rest += more
    if rest:
        yield rest


def _parse(block: bytes, path: str, line: int, first: int) -> _Lines:
    from fism_client.kernels import parse  # noqa: PLC0415  # slow to load, and not always needed

    room = _room(block.count(b"\n") + 1, block.count(b":"))
    with kernel_cache.first_call():
        error, at, rows, entries, hard = parse(np.frombuffer(block, np.uint8), room, first)

    def fault(at: int, reason: str) -> DataError:
        text = block[at : at + 40].split(maxsplit=1)
        shown = repr(text[0].decode("utf-8", "replace")) if text else "nothing"
        here = line + block.count(b"\n", 0, at)
        return DataError(f"{path}: line {here}: {reason}, not {shown}")

    if error:
        raise fault(at, _REASONS[error])
    values = room.hard_texts[:hard].view(f"S{room.hard_texts.shape[1]}").ravel().astype(np.float64)
    places = room.hard_places[:hard]
    is_label = places < 0
    room.values[places[~is_label]] = values[~is_label]
    room.labels[-1 - places[is_label]] = values[is_label]
    lengths, labels, data = room.lengths[:rows].copy(), room.labels[:rows].copy(), room.values[:entries]
    if not (np.isfinite(data).all() and np.isfinite(labels).all()):
        text = room.hard_texts[int(np.argmin(np.isfinite(values)))].tobytes().rstrip(b"\0")
        raise fault(block.index(text), "a number must fit in a double")
    return _Lines(labels, lengths, narrow(data.copy()), room.indices[:entries].copy())


def _room(rows: int, entries: int) -> Room:
    """Return buffers for this many rows and entries."""
    from fism_client.kernels import WIDTH, Room  # noqa: PLC0415  # slow to load, and not always needed

    numbers = rows + entries
    return Room(
        labels=np.empty(rows),
        lengths=np.empty(rows, np.int64),
        values=np.empty(entries),
        indices=np.empty(entries, np.int32),
        hard_texts=np.empty((numbers, WIDTH), np.uint8),
        hard_places=np.empty(numbers, np.int64),
    )


def _together(parts: list[_Lines], columns: int | None, path: Path) -> SparseRows:
    """Return the rows of all blocks together; each block is freed once it is copied."""
    lengths = np.concatenate([part.lengths for part in parts])
    used = 1 + max((int(part.indices.max()) for part in parts if part.indices.size), default=0)
    if columns is not None and columns < used:
        raise DataError(f"{path} has {used} columns, but the setting columns is {columns}")
    total = int(lengths.sum())
    data = np.empty(total, np.result_type(*(part.data for part in parts)))
    indices = np.empty(total, np.int32)
    at = 0
    while parts:
        part = parts.pop(0)
        place = slice(at, at + part.data.size)
        data[place], indices[place] = part.data, part.indices
        at = place.stop
    return SparseRows(data, indices, np.concatenate([[0], np.cumsum(lengths)]), columns or used)
