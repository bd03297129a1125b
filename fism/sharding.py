"""Splitting one file into shards, for experiments."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fism_client.data.loading import load
from fism_client.data.matrix import Matrix
from fism_client.data.readers.duck import connect, named, quoted, select_all
from fism_client.data.shard import SparseRows
from fism_common.errors import DataError
from fism_common.files import whole_file

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fism_client.data.shard import Shard
    from fism_common.data.source import Reading, Source

__all__ = ["shard"]

_FORMATS = {
    ".csv": "(FORMAT csv, HEADER)",
    ".tsv": "(FORMAT csv, HEADER, DELIMITER '\t')",
    ".parquet": "(FORMAT parquet)",
    ".jsonl": "(FORMAT json)",
    ".ndjson": "(FORMAT json)",
    ".json": "(FORMAT json, ARRAY true)",
}
_PART = "part_d9a4c1e07b"
"""A temporary column, with a name that no table uses."""
_MISSING = "(missing)"
"""Stands for a missing value; its file is named _missing_."""


def deal(  # noqa: PLR0913
    count: int,
    *,
    parts: int,
    sizes: Sequence[float] = (),
    classes: NDArray[Any] | None = None,
    alpha: float | None = None,
    seed: int = 0,
) -> NDArray[np.int64]:
    """Return the part that each row goes to.

    ``sizes`` are the parts' relative sizes, equal if empty. With ``alpha``, each of the ``classes`` is split
    separately, in proportions drawn from a Dirichlet distribution: the smaller alpha is, the more the parts differ.
    """
    rng = np.random.default_rng(seed)
    found = np.empty(count, np.int64)
    if alpha is None or classes is None:
        shares = np.full(parts, 1.0) if not sizes else np.array(sizes, float)
        found[rng.permutation(count)] = _blocks(count, shares)
    else:
        for one in np.unique(classes):
            of_class = np.flatnonzero(classes == one)
            found[rng.permutation(of_class)] = _blocks(of_class.size, rng.dirichlet(np.full(parts, alpha)))
    empty = np.setdiff1d(np.arange(parts), found)
    if empty.size:
        raise DataError(f"{count} rows in {parts} parts leave part {empty[0] + 1} empty; use fewer parts")
    return found


def _blocks(count: int, shares: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return ``count`` part numbers in order, each repeated according to its share."""
    ends = np.round(np.cumsum(shares) / shares.sum() * count).astype(int)
    return np.repeat(np.arange(shares.size), np.diff(ends, prepend=0))


def shard(  # noqa: PLR0913
    source: Source,
    reading: Reading,
    out: Path,
    *,
    parts: int,
    sizes: Sequence[float] = (),
    by: str | None = None,
    alpha: float | None = None,
    seed: int = 0,
) -> list[tuple[Path, int]]:
    """Split a file's rows into files in ``out``; return the files with their numbers of rows.

    A table is split into tables of the same format, any other file into .npz files. ``by`` names a column and makes
    one file per value; ``alpha`` splits each label separately.
    """
    if source.data is None:
        raise DataError("only a file can be split; save the query's rows to a file first")
    path = Path(source.data)
    try:
        out.mkdir(parents=True, exist_ok=True)
        if any(out.iterdir()):
            raise DataError(f"the folder {out} is not empty; choose another")
    except OSError as error:
        raise DataError(f"cannot create the folder {out}: {error.strerror}") from error
    selection = select_all(path)
    if selection is not None:
        return _tables(path, selection.verbatim, reading, out, parts=parts, sizes=sizes, by=by, alpha=alpha, seed=seed)
    if by is not None:
        raise DataError(f"{path} has no column names, so it cannot be split by {by!r}")
    data = load(source, reading, Path.cwd())
    assert isinstance(data, Matrix)  # noqa: S101  # it is not a table
    found = deal(data.count, parts=parts, sizes=sizes, classes=data.labels, alpha=alpha, seed=seed)
    return [_write_npz(out / f"part-{i + 1}.npz", data.shard.take(found == i)) for i in range(parts)]


def _tables(  # noqa: PLR0913
    path: Path,
    query: str,
    reading: Reading,
    out: Path,
    *,
    parts: int,
    sizes: Sequence[float],
    by: str | None,
    alpha: float | None,
    seed: int,
) -> list[tuple[Path, int]]:
    import duckdb  # noqa: PLC0415  # slow to load

    name = path.name.lower().removesuffix(".gz")
    kind = next(suffix for suffix in _FORMATS if name.endswith(suffix))
    with connect() as database:
        try:
            database.execute(f"CREATE TABLE whole AS {query}")
            ((count,),) = database.execute("SELECT count(*) FROM whole").fetchall()
            column = by if by is not None else reading.label if alpha is not None else None
            if alpha is not None and column is None:
                raise DataError("give the label column with --label: --dirichlet splits each label separately")
            values = None
            if column is not None:
                fetched = database.execute(f"SELECT CAST({named(column)} AS VARCHAR) FROM whole").fetchall()  # noqa: S608
                values = np.array([_MISSING if value is None else value for (value,) in fetched])
            if by is not None and values is not None:
                names, found = np.unique(values, return_inverse=True)
                stems = [re.sub(r"[^A-Za-z0-9._-]", "_", name) for name in names]
                if len(set(stems)) != len(stems):
                    raise DataError(
                        f"values of {by!r} differ only in characters that file names cannot have: {sorted(stems)}"
                    )
            else:
                found = deal(count, parts=parts, sizes=sizes, classes=values, alpha=alpha, seed=seed)
                stems = [f"part-{i + 1}" for i in range(parts)]
            database.register("parts", {_PART: found.astype(np.int64)})
            database.execute("CREATE TABLE split AS SELECT * FROM whole POSITIONAL JOIN parts")
            written = []
            for i, stem in enumerate(stems):
                file = out / f"{stem}{kind}"
                rows = f"SELECT * EXCLUDE ({_PART}) FROM split WHERE {_PART} = {i}"  # noqa: S608  # our own numbers
                database.execute(f"COPY ({rows}) TO {quoted(str(file))} {_FORMATS[kind]}")
                written.append((file, int((found == i).sum())))
        except duckdb.Error as error:
            raise DataError(f"{path} cannot be split: {str(error).splitlines()[0]}") from error
        return written


def _write_npz(file: Path, part: Shard) -> tuple[Path, int]:
    arrays: dict[str, Any] = {"b": part.labels, "scale": np.array(part.scale)}
    if isinstance(part.rows, SparseRows):
        rows = part.rows
        arrays |= {"data": rows.data, "indices": rows.indices, "indptr": rows.indptr}
        arrays["shape"] = np.array([part.count, rows.columns])
    else:
        arrays["A"] = part.rows
    with whole_file(file) as target:
        np.savez(target, **arrays)
    return file, part.count
