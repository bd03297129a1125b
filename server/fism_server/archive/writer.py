"""The archive of a run in progress: its state and records, written in one transaction."""

from __future__ import annotations

import json
import time
from collections import Counter
from typing import TYPE_CHECKING, Any, Self
from zlib import crc32

from fism_common.wire.slices import as_entries
from fism_server.archive.database import Database
from fism_server.archive.history import History, rewind
from fism_server.archive.schema import ALWAYS
from fism_server.archive.states import StateSlots

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from fism_common.data.columns import Column
    from fism_common.data.moments import Scaling
    from fism_common.exchange import Evaluation
    from fism_server.algorithm.record import Record
    from fism_server.algorithm.state import State
    from fism_server.archive.events import Event
    from fism_server.federation.gathering import Timing
    from fism_server.federation.roster import Member

_SHARE = 0.01
_LONGEST_PAUSE = 5.0
_MOST_EVENTS = 10_000
"""Rows for events of one kind; those beyond are counted in the last one."""


class Archive:
    """Writes one run: often enough to lose little, rarely enough to cost about one percent of the time.

    Losing the last rounds is harmless: they are computed again, to the same bits. It has more than twelve methods, one
    for each thing that a run keeps.
    """

    def __init__(self, database: Database) -> None:
        """Take the database; see ``create`` and ``open``."""
        self.database = database
        self._history, self._slots = History(), StateSlots.of(database.connection)
        self._due = time.monotonic()
        self._events: Counter[str] = Counter(
            dict(database.connection.execute("SELECT kind, count(*) FROM events GROUP BY kind").fetchall())
        )
        found = database.connection.execute("SELECT name, position FROM clients")
        self._positions: dict[str, int] = dict(found.fetchall())

    @classmethod
    def create(cls, folder: Path, description: dict[str, Any]) -> Self:
        """Create the archive of a new run."""
        archive = cls(Database.create(folder))
        archive.describe(description)
        return archive

    @classmethod
    def open(cls, folder: Path) -> Self:
        """Open the archive of a run to resume."""
        database = Database.open(folder)
        try:
            with database.reporting("read"):
                return cls(database)
        except BaseException:
            database.close()
            raise

    def begin(self, members: Sequence[Member], state: State, features: Sequence[Column] = ()) -> None:
        """Write who takes part, with which columns, and where the run begins."""
        clients = [(i, m.name, m.rows, m.columns, m.virtual_clients, m.digest, None) for i, m in enumerate(members)]
        self._positions = {member.name: i for i, member in enumerate(members)}
        with self.database.transaction():
            self.database.insert("clients", clients, 7)
            self._describe({"features": [[column.name, str(column.kind)] for column in features]})
            self._write(state)
        self._written()

    def scale(self, scaling: Scaling) -> None:
        """Write the scaling of the columns."""
        vectors = {name: as_entries(vector).data for name, vector in vars(scaling).items()}
        with self.database.transaction():
            self.database.insert("vectors", [(ALWAYS, name, entries) for name, entries in vectors.items()], 3)
            self._describe({"scaling": crc32(b"".join(vectors.values()))})

    def rewind(self, round_: int) -> None:
        """Delete a round and those after it: they are computed again."""
        with self.database.transaction():
            rewind(self.database, round_)

    def add(
        self,
        record: Record,
        seconds: float,
        members: Sequence[Member],
        timings: Sequence[Timing],
        state: Callable[[], State],
    ) -> None:
        """Add a round; write it, with the state and the rounds before it, when a save is due."""
        self._history.add(record, seconds, [self._positions[member.name] for member in members], timings)
        began = time.monotonic()
        if began >= self._due:
            self.save(state())
            now = time.monotonic()
            self._due = now + min((now - began) / _SHARE, _LONGEST_PAUSE)

    def evaluate(self, round_: int, evaluation: Evaluation) -> None:
        """Add an evaluation at x_k; it is written with the round."""
        self._history.evaluate(round_, evaluation)

    def save(self, state: State) -> None:
        """Write the state and the rounds that led to it, in one transaction."""
        with self.database.transaction():
            self._write(state)
        self._written()

    def drop(self, members: Sequence[Member], state: State, event: Event) -> None:
        """Write, and sync to the disk, that the run continues without some clients, from this state."""
        with self.database.synced():
            with self.database.transaction():
                dropped = [(state.round, member.name) for member in members]
                self.database.connection.executemany("UPDATE clients SET dropped = ? WHERE name = ?", dropped)
                self._note(event)
                self._write(state)
                self._slots.forget_older(self.database.connection)
            self._written()

    def note(self, event: Event) -> None:
        """Write an event."""
        with self.database.transaction():
            self._note(event)

    def describe(self, facts: dict[str, Any]) -> None:
        """Write facts about the run."""
        with self.database.transaction():
            self._describe(facts)

    def close(self) -> None:
        """Close the file; what was added but not saved is lost."""
        self.database.close()

    def _describe(self, facts: dict[str, Any]) -> None:
        self.database.insert("run", [(key, json.dumps(value)) for key, value in facts.items()], 2)

    def _write(self, state: State) -> None:
        self._history.write(self.database)
        self._slots.write(self.database.connection, state)

    def _written(self) -> None:
        self._slots.written()
        self._history.written()

    def _note(self, event: Event) -> None:
        self._events[event.kind] += 1
        if self._events[event.kind] > _MOST_EVENTS:
            last = "SELECT max(id) FROM events WHERE kind = ?"
            self.database.connection.execute(
                f"UPDATE events SET at = ?, text = ?, count = count + ? WHERE id = ({last})",  # noqa: S608  # ours
                (event.at, f"{event.text} (and others)", event.count, event.kind),
            )
        else:
            row = (None, event.at, event.round, event.kind, event.client, event.text, event.count)
            self.database.insert("events", [row], 7)
