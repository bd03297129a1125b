"""A method's state in the database: two slots, written in turn, each with a checksum.

The state before the last one stays intact, whatever happens to the last.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from zlib import crc32

import numpy as np

from fism_common.wire.slices import as_entries
from fism_server.algorithm.state import State

if TYPE_CHECKING:
    import sqlite3

    from fism_common.vectors import Vector


class StateSlots:
    """Writes states."""

    def __init__(self, saved: int = 0) -> None:
        """Take how many states were written before."""
        self._saved = saved

    @classmethod
    def of(cls, connection: sqlite3.Connection) -> StateSlots:
        """Return the slots of a run that is resumed."""
        return cls(*connection.execute("SELECT coalesce(max(saved), 0) FROM state").fetchone())

    def write(self, connection: sqlite3.Connection, state: State) -> None:
        """Write a state, inside a transaction; call ``written`` once it is committed."""
        slot = self._saved % 2
        numbers = json.dumps(dict(state.numbers))
        connection.execute("DELETE FROM vectors WHERE slot = ?", (slot,))
        crc = crc32(f"{state.round} {numbers}".encode())
        for name, vector in state.vectors.items():  # one at a time: SQLite copies its arguments
            entries = as_entries(vector).data
            crc = crc32(entries, crc32(name.encode(), crc))
            connection.execute("INSERT INTO vectors VALUES (?, ?, ?)", (slot, name, entries))
        row = (slot, self._saved + 1, state.round, numbers, crc)
        connection.execute("INSERT OR REPLACE INTO state VALUES (?, ?, ?, ?, ?)", row)

    def forget_older(self, connection: sqlite3.Connection) -> None:
        """Delete all states except the one that was written last, inside the same transaction."""
        connection.execute("DELETE FROM state WHERE saved <= ?", (self._saved,))

    def written(self) -> None:
        """Write to the other slot from now on."""
        self._saved += 1


def newest_state(connection: sqlite3.Connection) -> State | None:
    """Return the newest state with a correct checksum; None if there is none."""
    for slot, round_, numbers, crc in connection.execute(
        "SELECT slot, round, numbers, crc FROM state ORDER BY saved DESC"
    ).fetchall():
        query = "SELECT name, entries FROM vectors WHERE slot = ? ORDER BY rowid"
        total = crc32(f"{round_} {numbers}".encode())
        vectors = {}
        for name, entries in connection.execute(query, (slot,)):  # one at a time: they may be long
            total = crc32(entries, crc32(name.encode(), total))
            vectors[name] = read_vector(entries[: len(entries) // 8 * 8])
        if total == crc:
            return State(round_, json.loads(numbers), vectors)
    return None


def read_vector(entries: bytes) -> Vector:
    """Return a vector in writable memory: a method adds to its state."""
    return np.frombuffer(entries, "<f8").astype(float)
