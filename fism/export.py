"""Export a run's numbers as CSV, Parquet or JSON tables."""

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
_INTEGERS = ("round", "rows", "columns", "virtual_clients", "dropped", "right", "count")
_TYPES = dict.fromkeys(_INTEGERS, "BIGINT") | dict.fromkeys(("name", "kind", "client", "text", "column"), "VARCHAR")
Columns = dict[str, Any]
"""A table: NumPy arrays of equal length, by column name."""


def export(folder: Path, out: Path, form: str) -> list[Path]:
    """Write all tables of a run, finished or in progress, one file each; return the files."""
    found = tables(folder)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"cannot create the folder {out}: {error.strerror}") from error
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
    """Return the select list, which fixes each column's type whatever its values are."""
    return ", ".join(f'CAST("{name}" AS {_TYPES.get(name, "DOUBLE")}) AS "{name}"' for name in columns)


def tables(folder: Path) -> dict[str, Columns]:
    """Return a run's tables."""
    run = Reader(folder).read()
    rounds: Columns = dict(run.rounds)
    rounds["round"] = rounds["round"].astype(np.int64)
    # Elapsed until the round starts: F and H are the values before it.
    rounds["elapsed"] = rounds["seconds"].cumsum() - rounds["seconds"]
    answers = every_answer(folder)  # a run in progress may have advanced since
    known = answers["round"] <= rounds["round"].max(initial=0)
    found = {
        "rounds": rounds,
        "answers": {name: column[known] for name, column in answers.items()},
        "clients": _columns(ClientRow, run.clients),
        "events": _columns(Event, run.events),
        "evaluations": _columns(Quality, run.qualities),
    }
    coefficients = _coefficients(run)
    return found if coefficients is None else found | {"coefficients": coefficients}


def _coefficients(run: Snapshot) -> Columns | None:
    state, fitted = run.state, run.fitted
    if state is None or not run.means:
        return None
    entries = [] if fitted is None else fitted.recipe.entries()
    names = [entry.name for entry in entries] or [str(i) for i in range(state.x.size)]
    found: Columns = {
        "column": np.array(names, object),
        "x": state.x,
        **run.means,
    }
    if fitted is None:
        return found
    slopes, constant = fitted.in_original_units()
    if not fitted.recipe.intercept and fitted.scaling is not None:  # standardising adds one in original units
        found = {name: np.append(column, "constant" if name == "column" else 0.0) for name, column in found.items()}
    with_constant = fitted.recipe.intercept or fitted.scaling is not None
    return found | {"coefficient": np.append(slopes, constant) if with_constant else slopes}


def _columns(kind: type, rows: list[Any]) -> Columns:
    """Return dataclass objects as columns."""
    names = [field.name for field in fields(kind)]
    cells = [asdict(row) for row in rows]
    return {name: _array([row[name] for row in cells]) for name in names}


def _array(values: list[Any]) -> np.ndarray[Any, Any]:
    if any(isinstance(value, str) for value in values):
        return np.array([str(value) for value in values], object)
    return np.array(values, object if None in values else None)
