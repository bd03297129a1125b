"""Reading a run's database, to resume the run or to look at it."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from zlib import crc32

from fism_common.data.columns import Column
from fism_common.data.columns import Kind as ColumnKind
from fism_common.data.moments import SCALING, Scaling
from fism_common.errors import StoreError
from fism_server.archive.database import connect, damaged
from fism_server.archive.events import Event
from fism_server.archive.schema import ALWAYS, FILE
from fism_server.archive.states import newest_state, read_vector
from fism_server.federation.notices import EventKind
from fism_server.federation.roster import Member

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from fism_server.algorithm.state import State
    from fism_server.archive.database import Database


@dataclass(frozen=True)
class Saved:
    """A run as it was saved."""

    facts: dict[str, Any]
    members: list[Member]
    """The members that take part, in federation order; none if the rounds had not begun."""
    dropped: dict[str, int]
    """The clients that were dropped, and from which round on."""
    state: State | None
    """Where to continue; None if the rounds had not begun."""
    features: tuple[Column, ...] = ()
    scaling: Scaling | None = None


def load(database: Database) -> Saved:
    """Return the newest intact state, with everything that belongs to it; raise StoreError if there is none."""
    connection, file = database.connection, database.file
    try:
        (sound,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        facts = read_facts(connection)
        rows = connection.execute(
            "SELECT name, rows, columns, virtual_clients, digest, dropped FROM clients ORDER BY position"
        ).fetchall()
        state = newest_state(connection) if rows else None
        features, scaling = features_of(facts), scaling_of(connection, facts)
    except (sqlite3.Error, ValueError, TypeError) as error:
        raise damaged(file, error) from error
    if rows and state is None:
        raise damaged(file, "it has no intact state")
    if sound != "ok":
        raise damaged(file, sound)
    members = [Member(row[0], row[1], row[2], row[3], digest=row[4]) for row in rows if row[5] is None]
    dropped = {row[0]: row[5] for row in rows if row[5] is not None}
    return Saved(facts, members, dropped, state, features, scaling)


def read_facts(connection: sqlite3.Connection) -> dict[str, Any]:
    """Return the facts about a run."""
    return {key: json.loads(value) for key, value in connection.execute("SELECT key, value FROM run")}


def features_of(facts: dict[str, Any]) -> tuple[Column, ...]:
    """Return the columns that the clients agreed on; none if they have no names."""
    return tuple(Column(name, ColumnKind(kind)) for name, kind in facts.get("features", []))


def scaling_of(connection: sqlite3.Connection, facts: dict[str, Any]) -> Scaling | None:
    """Return the scaling of the columns, if there is one; raise ValueError if it is damaged."""
    if "scaling" not in facts:
        return None
    found: dict[str, bytes] = dict(connection.execute("SELECT name, entries FROM vectors WHERE slot = ?", (ALWAYS,)))
    entries = [found.get(name, b"") for name in SCALING]
    if crc32(b"".join(entries)) != facts["scaling"]:
        raise ValueError("the scaling of its columns has a wrong checksum")
    return Scaling(*map(read_vector, entries))


def read_events(connection: sqlite3.Connection) -> list[Event]:
    """Return the events in a database."""
    rows = connection.execute("SELECT round, kind, client, text, at, count FROM events ORDER BY id")
    return [Event(row[0], EventKind(row[1]), *row[2:]) for row in rows]


def event_counts(connection: sqlite3.Connection) -> dict[str, int]:
    """Return how many events of each kind there were."""
    rows = connection.execute("SELECT kind, sum(count) FROM events GROUP BY kind ORDER BY min(id)")
    return dict(rows.fetchall())


def events(folder: Path) -> list[Event]:
    """Return the events of a run, which may still be running."""
    with reading(folder) as connection:
        return read_events(connection)


def is_finished(folder: Path) -> bool:
    """Whether a run is finished, not just interrupted."""
    with reading(folder) as connection:
        return connection.execute("SELECT 1 FROM run WHERE key = 'stopped'").fetchone() is not None


@contextmanager
def reading(folder: Path) -> Iterator[sqlite3.Connection]:
    """Yield a run's database at one moment; raise ConfigError if there is none, StoreError if it is damaged."""
    with closing(connect(folder)) as connection:
        try:
            connection.execute("BEGIN")
            yield connection
        except (sqlite3.Error, ValueError, TypeError, KeyError) as error:
            raise StoreError(f"cannot read {folder / FILE}: {error}") from error
