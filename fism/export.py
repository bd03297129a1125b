"""A run's numbers as tables, for whatever else reads CSV, Parquet or JSON."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np

from fism_common.errors import ConfigError
from fism_server.archive.events import Event
from fism_server.archive.snapshot import ClientRow, Quality, Reader, every_answer

if TYPE_CHECKING:
    from pathlib import Path

    from fism_server.archive.snapshot import Snapshot

_OPTIONS = {"csv": "FORMAT csv, HEADER", "parquet": "FORMAT parquet", "json": "FORMAT json, ARRAY true"}
_TYPES = dict.fromkeys(("round", "rows", "columns", "shards", "left_out", "right", "count"), "BIGINT") | dict.fromkeys(
    ("name", "kind", "client", "text", "column"), "VARCHAR"
)
Columns = dict[str, Any]
"""A table: NumPy arrays of one length by their names."""


def export(folder: Path, out: Path, form: str) -> list[Path]:
    """Write all tables of a run, finished or under way, one file each; return the files."""
    found = tables(folder)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"cannot make the folder {out}: {error.strerror}") from error
    files = []
    with duckdb.connect() as database:
        database.execute("SET enable_progress_bar = false")
        for name, columns in found.items():
            file = out / f"{name}.{form}"
            database.register("source", columns)
            target = str(file).replace("'", "''")
            try:
                database.execute(f"COPY (SELECT {_typed(columns)} FROM source) TO '{target}' ({_OPTIONS[form]})")  # noqa: S608
            except duckdb.Error as error:
                raise ConfigError(f"cannot write {file}: {error}") from error
            database.unregister("source")
            files.append(file)
    return files


def _typed(columns: Columns) -> str:
    """Return the columns with their types, which are the same whatever is in them."""
    return ", ".join(f'CAST("{name}" AS {_TYPES.get(name, "DOUBLE")}) AS "{name}"' for name in columns)


def tables(folder: Path) -> dict[str, Columns]:
    """Return a run's tables."""
    run = Reader(folder).read()
    rounds: Columns = dict(run.rounds)
    rounds["round"] = rounds["round"].astype(np.int64)
    rounds["elapsed"] = rounds["seconds"].cumsum() - rounds["seconds"]  # when it began: F and H are those before it
    answers = every_answer(folder)  # a run under way may have gone on
    known = answers["round"] <= rounds["round"].max(initial=0)
    found = {
        "rounds": rounds,
        "times": {name: column[known] for name, column in answers.items()},
        "clients": _columns(ClientRow, run.clients),
        "events": _columns(Event, run.events),
        "evaluations": _columns(Quality, run.qualities),
    }
    coefficients = _coefficients(run)
    return found if coefficients is None else found | {"coefficients": coefficients}


def _coefficients(run: Snapshot) -> Columns | None:
    state, fitted = run.state, run.fitted
    if state is None or not state.k_sum:
        return None
    entries = [] if fitted is None else fitted.recipe.entries()
    names = [entry.name for entry in entries] or [str(i) for i in range(state.x.size)]
    found: Columns = {
        "column": np.array(names, object),
        "x": state.x,
        "weighted": state.weighted,
        "average": state.average,
    }
    if fitted is None:
        return found
    slopes, constant = fitted.in_original_units()
    if not fitted.recipe.intercept and fitted.scaling is not None:  # standardising makes one, in original units
        found = {name: np.append(column, "constant" if name == "column" else 0.0) for name, column in found.items()}
    with_constant = fitted.recipe.intercept or fitted.scaling is not None
    return found | {"coefficient": np.append(slopes, constant) if with_constant else slopes}


def _columns(kind: type, rows: list[Any]) -> Columns:
    """Return objects as columns."""
    names = [field.name for field in fields(kind)]
    cells = [asdict(row) for row in rows]
    return {name: _array([row[name] for row in cells]) for name in names}


def _array(values: list[Any]) -> np.ndarray[Any, Any]:
    if any(isinstance(value, str) for value in values):
        return np.array([str(value) for value in values], object)
    return np.array(values, object if None in values else None)
