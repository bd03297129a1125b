"""What a run's database says, for those who go on from it or look at it."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np

from fism_common.data.columns import Column
from fism_common.data.columns import Kind as ColumnKind
from fism_common.data.moments import SCALING, Scaling
from fism_common.errors import ConfigError, StoreError
from fism_server.algorithm.rounds import Record, State, Stop
from fism_server.archive.events import Event, Kind
from fism_server.archive.writer import ALWAYS, FILE, VECTORS, checksum, damaged
from fism_server.federation.roster import Member

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from fism_common.vectors import Vector


@dataclass(frozen=True)
class Saved:
    """A run as it was saved."""

    facts: dict[str, Any]
    members: list[Member]
    """Those who take part, in federation order; none if the rounds had not begun."""
    left_out: dict[str, int]
    """Those whom the run went on without, and from which round."""
    state: State | None
    """Where to go on; None if the rounds had not begun."""
    features: tuple[Column, ...] = ()
    scaling: Scaling | None = None


def load(database: sqlite3.Connection, file: Path) -> Saved:
    """Return the newest state that is whole, with all that belongs to it; raise StoreError if there is none."""
    try:
        (sound,) = database.execute("PRAGMA quick_check(1)").fetchone()
        facts = {key: json.loads(value) for key, value in database.execute("SELECT key, value FROM run")}
        rows = database.execute(
            "SELECT name, rows, columns, shards, digest, left_out FROM clients ORDER BY position"
        ).fetchall()
        state = newest_state(database) if rows else None
        features, scaling = features_of(facts), scaling_of(database, facts)
    except (sqlite3.Error, ValueError, TypeError) as error:
        raise damaged(file, error) from error
    if rows and state is None:
        raise damaged(file, "no state in it is whole")
    if sound != "ok":
        raise damaged(file, sound)
    members = [Member(row[0], row[1], row[2], row[3], digest=row[4]) for row in rows if row[5] is None]
    left_out = {row[0]: row[5] for row in rows if row[5] is not None}
    return Saved(facts, members, left_out, state, features, scaling)


def features_of(facts: dict[str, Any]) -> tuple[Column, ...]:
    """Return the columns that the clients agreed on; none where they have no names."""
    return tuple(Column(name, ColumnKind(kind)) for name, kind in facts.get("features", []))


def newest_state(database: sqlite3.Connection) -> State | None:
    """Return the newest state whose vectors are as they were written."""
    slots = database.execute(
        "SELECT slot, round, since, compares, gamma_sum, k_sum, stopped, crc FROM state ORDER BY saved DESC"
    ).fetchall()
    for slot, round_, since, compares, gamma_sum, k_sum, stopped, crc in slots:
        found: dict[str, bytes] = dict(database.execute("SELECT name, entries FROM vectors WHERE slot = ?", (slot,)))
        x, gamma_sum_x, k_sum_x = (_vector(found.get(name, b"")) for name in VECTORS)
        last = _record(database, round_ - 1) if compares else None
        why = None if stopped is None else Stop(stopped)
        state = State(round_, x, last, gamma_sum_x, gamma_sum, k_sum_x, k_sum, since, why)
        if checksum(state) == crc:
            return state
    return None


def scaling_of(database: sqlite3.Connection, facts: dict[str, Any]) -> Scaling | None:
    """Return the scaling of the columns, if there is one; raise ValueError if it is not as it was written."""
    if "scaling" not in facts:
        return None
    found: dict[str, bytes] = dict(database.execute("SELECT name, entries FROM vectors WHERE slot = ?", (ALWAYS,)))
    entries = [found.get(name, b"") for name in SCALING]
    if crc32(b"".join(entries)) != facts["scaling"]:
        raise ValueError("the scaling of its columns is not as it was written")
    return Scaling(*map(_vector, entries))


def _record(database: sqlite3.Connection, round_: int) -> Record | None:
    columns = "round, gamma, lam, inner, outer, change"
    row = database.execute(f"SELECT {columns} FROM rounds WHERE round = ?", (round_,)).fetchone()  # noqa: S608  # ours
    return None if row is None else Record(*row)


def _vector(entries: bytes) -> Vector:
    return np.frombuffer(entries, "<f8").astype(float)  # a copy: the state is added to


def events(folder: Path) -> list[Event]:
    """Return the events of a run, also of one that is under way."""
    with _asking(folder) as database:
        return read_events(database)


def read_events(database: sqlite3.Connection) -> list[Event]:
    """Return the events in a database."""
    rows = database.execute("SELECT round, kind, client, text, at, count FROM events ORDER BY id")
    return [Event(row[0], Kind(row[1]), *row[2:]) for row in rows]


def is_begun(folder: Path) -> bool:
    """Whether a run's database was made to its end, before whatever happened to the server."""
    with _asking(folder) as database:
        return database.execute("SELECT 1 FROM sqlite_master WHERE name = 'run'").fetchone() is not None


def is_finished(folder: Path) -> bool:
    """Whether a run has come to its end, and not just been broken off."""
    with _asking(folder) as database:
        return database.execute("SELECT 1 FROM run WHERE key = 'stopped'").fetchone() is not None


def connect(folder: Path) -> sqlite3.Connection:
    """Return a run's database, to read from; raise ConfigError if there is none."""
    file = folder / FILE
    if not file.is_file():
        raise ConfigError(f"there is no run in {folder}: it has no {FILE}")
    # Without a journal nobody writes. To be told so spares SQLite files of its own in a folder of maybe another user.
    how = "mode=ro" if file.with_name(f"{FILE}-wal").exists() else "immutable=1"
    return sqlite3.connect(f"{file.absolute().as_uri()}?{how}", uri=True)


@contextmanager
def _asking(folder: Path) -> Iterator[sqlite3.Connection]:
    try:
        with closing(connect(folder)) as database:
            yield database
    except sqlite3.Error as error:
        raise StoreError(f"cannot read {folder / FILE}: {error}") from error
