"""The run's database: one SQLite file, the state to resume from and the records in one transaction."""

from __future__ import annotations

import json
import sqlite3
import time
from typing import TYPE_CHECKING

from fism_common.errors import ConfigError
from fism_common.wire import as_entries

if TYPE_CHECKING:
    from pathlib import Path

    from fism_common.exchange import Evaluation
    from fism_server.members import Member
    from fism_server.rounds import Record, State

_SCHEMA = """
CREATE TABLE run (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE clients (position INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, rows INTEGER NOT NULL,
    columns INTEGER NOT NULL, shards INTEGER NOT NULL, digest BLOB NOT NULL);
CREATE TABLE rounds (round INTEGER PRIMARY KEY, gamma REAL NOT NULL, lam REAL NOT NULL, inner REAL NOT NULL,
    outer REAL NOT NULL, change REAL NOT NULL, seconds REAL NOT NULL);
CREATE TABLE evaluations (round INTEGER PRIMARY KEY, rows INTEGER NOT NULL, right INTEGER, loss REAL NOT NULL);
CREATE TABLE state (only_one INTEGER PRIMARY KEY CHECK (only_one = 1), round INTEGER NOT NULL,
    gamma_sum REAL NOT NULL, k_sum INTEGER NOT NULL);
CREATE TABLE vectors (name TEXT PRIMARY KEY, entries BLOB NOT NULL);
"""
_SHARE = 0.01
_LONGEST_PAUSE = 5.0


class Store:
    """Writes one run: often enough to lose little, seldom enough to cost about one percent of the time.

    Losing the last rounds is harmless: they are recomputed to the same bits.
    """

    def __init__(self, file: Path) -> None:
        """Make the database."""
        try:
            # Autocommit: transactions are begun by hand. One thread at a time, but not always the same one.
            self._database = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.execute("PRAGMA synchronous = NORMAL")
            self._database.executescript(_SCHEMA)
        except sqlite3.Error as error:
            raise ConfigError(f"cannot make the run's database {file}: {error}") from error
        self._records: list[tuple[float, ...]] = []
        self._evaluations: list[tuple[int, int, int | None, float]] = []
        self._due = time.monotonic()

    def describe(self, description: dict[str, object], members: list[Member]) -> None:
        """Write what the run is, and who takes part."""
        facts = [(key, json.dumps(value)) for key, value in description.items()]
        clients = [(i, m.name, m.rows, m.columns, m.shards, m.digest) for i, m in enumerate(members)]
        with self._database:
            self._database.execute("BEGIN")
            self._database.executemany("INSERT OR REPLACE INTO run VALUES (?, ?)", facts)
            self._database.executemany("INSERT OR REPLACE INTO clients VALUES (?, ?, ?, ?, ?, ?)", clients)

    def add(self, record: Record, seconds: float, state: State) -> None:
        """Take a round's record; write it, with the state and those before it, when it is time to."""
        r = record
        self._records.append((r.round, r.gamma, r.lam, r.inner, r.outer, r.change, seconds))
        began = time.monotonic()
        if began >= self._due:
            self.save(state)
            now = time.monotonic()
            self._due = now + min((now - began) / _SHARE, _LONGEST_PAUSE)

    def evaluate(self, round_: int, evaluation: Evaluation) -> None:
        """Take an evaluation at x_k; it is written with the round's record."""
        self._evaluations.append((round_, evaluation.rows, evaluation.right, evaluation.loss))

    def save(self, state: State) -> None:
        """Write the state and the records that led to it, in one transaction."""
        row = (1, state.round, state.gamma_sum, state.k_sum)
        with self._database:
            self._database.execute("BEGIN")
            self._database.executemany("INSERT INTO rounds VALUES (?, ?, ?, ?, ?, ?, ?)", self._records)
            self._database.executemany("INSERT OR REPLACE INTO evaluations VALUES (?, ?, ?, ?)", self._evaluations)
            self._database.execute("INSERT OR REPLACE INTO state VALUES (?, ?, ?, ?)", row)
            for name in ("x", "gamma_sum_x", "k_sum_x"):  # one at a time: SQLite copies what it is given
                entries = as_entries(getattr(state, name)).data
                self._database.execute("INSERT OR REPLACE INTO vectors VALUES (?, ?)", (name, entries))
        self._records.clear()
        self._evaluations.clear()

    def close(self) -> None:
        """Close the file; what was added and not saved is not written."""
        self._database.close()
