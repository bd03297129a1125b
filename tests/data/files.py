"""One small table in every form that is read, and how to load it."""

from __future__ import annotations

import gzip
import json
import struct
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from fism_client.data.loading import Data, load
from fism_client.data.shard import Shard
from fism_common.data.columns import Recipe, agree
from fism_common.data.source import Reading, Source

ROWS = np.array([[1.0, 0.5], [0.0, -2.0], [3.0, 0.25]])
LABELS = np.array([1.0, -1.0, 1.0])


def write(folder: Path) -> dict[str, Path]:
    """Write the table in all forms; return the files by their form."""
    csv = "a,b,y\n" + "".join(f"{a:g},{b:g},{y:g}\n" for (a, b), y in zip(ROWS, LABELS, strict=True))
    svm = "1 1:1 2:0.5\n-1 2:-2 # a comment\n\n1 1:3 2:0.25\n"
    files = {form: folder / f"table.{form}" for form in ("csv", "tsv", "csv.gz", "svm", "svm.gz", "jsonl", "parquet")}
    files["csv"].write_text(csv)
    files["tsv"].write_text(csv.replace(",", "\t"))
    files["csv.gz"].write_bytes(gzip.compress(csv.encode(), mtime=0))
    files["svm"].write_text(svm)
    files["svm.gz"].write_bytes(gzip.compress(svm.encode(), mtime=0))
    lines: list[str] = []
    with duckdb.connect() as database:
        database.read_csv(str(files["csv"])).to_parquet(str(files["parquet"]))
        lines += [
            json.dumps(dict(zip("aby", row, strict=True))) for row in database.read_csv(str(files["csv"])).fetchall()
        ]
    files["jsonl"].write_text("\n".join(lines) + "\n")
    files["npz"], files["sparse.npz"], files["npy"] = (
        folder / f"table.{form}" for form in ("npz", "sparse.npz", "npy")
    )
    np.savez(files["npz"], A=ROWS, b=LABELS)
    kept = ROWS != 0
    np.savez(
        files["sparse.npz"],
        data=ROWS[kept],
        indices=np.nonzero(kept)[1],
        indptr=np.concatenate([[0], np.cumsum(kept.sum(axis=1))]),
        shape=ROWS.shape,
        b=LABELS,
    )
    np.save(files["npy"], ROWS)
    np.save(folder / "labels.npy", LABELS)
    return files


def idx(array: np.ndarray) -> bytes:
    """Return an array of bytes in the IDX format."""
    head = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    return head + array.astype(np.uint8).tobytes()


def options(file: Path) -> tuple[Source, Reading]:
    """Return how a file of ``write`` is read."""
    table = file.name.removesuffix(".gz").endswith((".csv", ".tsv", ".jsonl", ".parquet"))
    labels = str(file.with_name("labels.npy")) if file.suffix == ".npy" else None
    return Source(data=str(file), labels=labels), Reading(label="y") if table else Reading()


def read(file: Path, **changes: object) -> Data:
    """Load a file of ``write``."""
    source, reading = options(file)
    return load(source, reading.model_copy(update=changes), file.parent)


def table(folder: Path, text: str, name: str = "t.csv", **reading: object) -> Data:
    """Load a text as a file."""
    (folder / name).write_text(text)
    return load(Source(data=name), Reading.model_validate({"label": "y", **reading}), folder)


def encoded(data: Data, **recipe: Any) -> Shard:  # noqa: ANN401
    """Return the rows of one client's data, by a recipe for its own columns, given by its fields."""
    return data.encode(agree(Recipe(**recipe), data.schema, "one"))


def dense(shard: Shard) -> np.ndarray:
    """Return a shard's rows as they count."""
    return np.array([shard.scores(column) for column in np.eye(shard.columns)]).T
