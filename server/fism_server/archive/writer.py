"""The run's database: one SQLite file, the state to resume from and the records in one transaction."""

from __future__ import annotations

import contextlib
import fcntl
import json
import logging
import os
import sqlite3
import time
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self
from zlib import crc32

from fism_common.data.moments import SCALING
from fism_common.errors import ConfigError, StoreError
from fism_common.wire.codec import as_entries
from fism_server.archive.timing import Times, pack_times

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from fism_common.data.columns import Column
    from fism_common.data.moments import Scaling
    from fism_common.exchange import Evaluation
    from fism_server.algorithm.rounds import Record, State
    from fism_server.archive.events import Event
    from fism_server.archive.timing import Took
    from fism_server.federation.roster import Member

_log = logging.getLogger(__name__)
FILE = "run.sqlite"
VECTORS = ("x", "gamma_sum_x", "k_sum_x")
ALWAYS = -1
"""The slot of vectors that belong to every state."""
_SCHEMA = """
CREATE TABLE run (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE clients (position INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, rows INTEGER NOT NULL,
    columns INTEGER NOT NULL, shards INTEGER NOT NULL, digest BLOB NOT NULL, left_out INTEGER);
CREATE TABLE rounds (round INTEGER PRIMARY KEY, gamma REAL NOT NULL, lam REAL NOT NULL, inner REAL NOT NULL,
    outer REAL NOT NULL, change REAL NOT NULL, seconds REAL NOT NULL, times BLOB NOT NULL);
CREATE TABLE evaluations (round INTEGER PRIMARY KEY, rows INTEGER NOT NULL, right INTEGER, loss REAL NOT NULL);
CREATE TABLE state (slot INTEGER PRIMARY KEY, saved INTEGER NOT NULL, round INTEGER NOT NULL, since INTEGER NOT NULL,
    compares INTEGER NOT NULL, gamma_sum REAL NOT NULL, k_sum INTEGER NOT NULL, stopped TEXT, crc INTEGER NOT NULL);
CREATE TABLE vectors (slot INTEGER, name TEXT, entries BLOB NOT NULL, PRIMARY KEY (slot, name));
CREATE TABLE events (id INTEGER PRIMARY KEY, at REAL NOT NULL, round INTEGER NOT NULL, kind TEXT NOT NULL,
    client TEXT NOT NULL, text TEXT NOT NULL, count INTEGER NOT NULL);
"""
_SHARE = 0.01
_LONGEST_PAUSE = 5.0
_SECONDS_FOR_A_LOCK = 10.0
_MOST_EVENTS = 10_000
"""Rows for events of one kind; those beyond are counted in the last one."""


class Store:
    """Writes one run: often enough to lose little, seldom enough to cost about one percent of the time.

    Losing the last rounds is harmless: they are recomputed to the same bits. The state is written to two slots in
    turn, each with a checksum, so that the one before the last stays whole whatever happens to the last.
    """

    def __init__(self, folder: Path) -> None:
        """Take a run's folder, which no other process may write to; see ``create`` and ``open``."""
        self._file = folder / FILE
        self._lock = _locked(folder)
        self._records: list[tuple[float | bytes, ...]] = []
        self._evaluations: list[tuple[int, int, int | None, float]] = []
        self._due = time.monotonic()
        self._saved = 0
        self._events: Counter[str] = Counter()
        with self._telling("open"):
            # Autocommit: transactions are begun by hand. One thread at a time, but not always the same one.
            self.database = sqlite3.connect(
                self._file, isolation_level=None, check_same_thread=False, timeout=_SECONDS_FOR_A_LOCK
            )
            self.database.execute("PRAGMA synchronous = NORMAL")

    @classmethod
    def create(cls, folder: Path, description: dict[str, Any]) -> Self:
        """Make the database of a new run."""
        store = cls(folder)
        try:
            with store._telling("make"):
                store.database.execute("PRAGMA journal_mode = WAL")
            with store._transaction():
                for statement in _SCHEMA.split(";"):  # executescript would commit
                    store.database.execute(statement)
                store._describe(description)
        except BaseException:
            store.close()
            raise
        return store

    @classmethod
    def open(cls, folder: Path) -> Self:
        """Open the database of a run that is to be resumed."""
        if not (folder / FILE).is_file():
            raise ConfigError(f"there is no run to resume in {folder}: it has no {FILE}")
        store = cls(folder)
        try:
            with store._telling("read"):
                store._find()
        except BaseException:
            store.close()
            raise
        return store

    def _find(self) -> None:
        """Find out how far the run was written."""
        if self.database.execute("SELECT count(*) FROM sqlite_master WHERE name = 'run'").fetchone() == (0,):
            raise ConfigError(f"the run in {self._file.parent} was never begun; remove the folder and start anew")
        (self._saved,) = self.database.execute("SELECT coalesce(max(saved), 0) FROM state").fetchone()
        self._events.update(dict(self.database.execute("SELECT kind, count(*) FROM events GROUP BY kind")))

    def begin(self, members: Sequence[Member], state: State, features: Sequence[Column] = ()) -> None:
        """Write who takes part, with which columns, and where the run begins."""
        clients = [(i, m.name, m.rows, m.columns, m.shards, m.digest) for i, m in enumerate(members)]
        with self._transaction():
            self.database.executemany("INSERT INTO clients VALUES (?, ?, ?, ?, ?, ?, NULL)", clients)
            self._describe({"features": [[column.name, str(column.kind)] for column in features]})
            self._write(state)
        self._written()

    def scale(self, scaling: Scaling) -> None:
        """Write the scaling of the columns."""
        vectors = {name: as_entries(getattr(scaling, name)) for name in SCALING}
        with self._transaction():
            for name, vector in vectors.items():
                row = (ALWAYS, name, vector.data)
                self.database.execute("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", row)
            self._describe({"scaling": crc32(b"".join(vector.data for vector in vectors.values()))})

    def rewind(self, round_: int) -> None:
        """Forget the records of a round and those after it: they are computed anew."""
        with self._transaction():
            for table in ("rounds", "evaluations"):
                self.database.execute(f"DELETE FROM {table} WHERE round >= ?", (round_,))  # noqa: S608  # ours

    def add(self, record: Record, seconds: float, times: Sequence[Took], state: State) -> None:
        """Take a round's record; write it, with the state and those before it, when it is time to."""
        r = record
        self._records.append((r.round, r.gamma, r.lam, r.inner, r.outer, r.change, seconds, pack_times(times)))
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
        with self._transaction():
            self._write(state)
        self._written()

    def leave_out(self, members: Sequence[Member], state: State, event: Event) -> None:
        """Write, to the disk, that the run goes on without some clients, from this state."""
        with self._telling("write"):
            self.database.execute("PRAGMA synchronous = FULL")
        with self._transaction():
            left = [(state.round, member.name) for member in members]
            self.database.executemany("UPDATE clients SET left_out = ? WHERE name = ?", left)
            self._note(event)
            self._write(state)
            self.database.execute("DELETE FROM state WHERE saved <= ?", (self._saved,))
        self._written()
        with self._telling("write"):
            self.database.execute("PRAGMA synchronous = NORMAL")

    def note(self, event: Event) -> None:
        """Write an event."""
        with self._transaction():
            self._note(event)

    def tell(self, facts: dict[str, Any]) -> None:
        """Write facts of the run, those of its end among them."""
        with self._transaction():
            self._describe(facts)

    def event_counts(self) -> dict[str, int]:
        """Return how many events of each kind there were."""
        with self._telling("read"):
            rows = self.database.execute("SELECT kind, sum(count) FROM events GROUP BY kind ORDER BY min(id)")
            return dict(rows.fetchall())

    def times(self, since: int) -> Times:
        """Return how long the rounds took, from one on since which no client was left out."""
        with self._telling("read"):
            who = "SELECT name FROM clients WHERE left_out IS NULL OR left_out > ? ORDER BY position"
            names = [name for (name,) in self.database.execute(who, (since,))]
            query = "SELECT seconds, times FROM rounds WHERE round >= ? ORDER BY round"
            return Times.of(names, self.database.execute(query, (since,)).fetchall())

    def seconds(self) -> float:
        """Return how long all rounds took together."""
        with self._telling("read"):
            (total,) = self.database.execute("SELECT total(seconds) FROM rounds").fetchone()
            return float(total)

    def close(self) -> None:
        """Close the file; what was added and not saved is not written."""
        with contextlib.suppress(sqlite3.Error):  # where somebody reads at this moment, SQLite does it later
            self.database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self.database.close()
        os.close(self._lock)

    def _describe(self, facts: dict[str, Any]) -> None:
        rows = [(key, json.dumps(value)) for key, value in facts.items()]
        self.database.executemany("INSERT OR REPLACE INTO run VALUES (?, ?)", rows)

    def _write(self, state: State) -> None:
        slot = self._saved % 2
        self.database.executemany("INSERT INTO rounds VALUES (?, ?, ?, ?, ?, ?, ?, ?)", self._records)
        self.database.executemany("INSERT OR REPLACE INTO evaluations VALUES (?, ?, ?, ?)", self._evaluations)
        vectors = [as_entries(getattr(state, name)) for name in VECTORS]
        for name, vector in zip(VECTORS, vectors, strict=True):  # one at a time: SQLite copies what it is given
            self.database.execute("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", (slot, name, vector.data))
        numbers = (state.round, state.since, int(state.last is not None), state.gamma_sum, state.k_sum, state.stopped)
        row = (slot, self._saved + 1, *numbers, checksum(state))
        self.database.execute("INSERT OR REPLACE INTO state VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)

    def _written(self) -> None:
        self._saved += 1
        self._records.clear()
        self._evaluations.clear()

    def _note(self, event: Event) -> None:
        self._events[event.kind] += 1
        if self._events[event.kind] > _MOST_EVENTS:
            last = "SELECT max(id) FROM events WHERE kind = ?"
            self.database.execute(
                f"UPDATE events SET at = ?, text = ?, count = count + ? WHERE id = ({last})",  # noqa: S608  # ours
                (event.at, f"{event.text} (and others)", event.count, event.kind),
            )
        else:
            row = (event.at, event.round, event.kind, event.client, event.text, event.count)
            self.database.execute("INSERT INTO events VALUES (NULL, ?, ?, ?, ?, ?, ?)", row)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._telling("write"), self.database:
            self.database.execute("BEGIN IMMEDIATE")
            yield

    @contextmanager
    def _telling(self, what: str) -> Iterator[None]:
        """Turn SQLite's errors into ours, with what to do."""
        try:
            yield
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}:
                raise damaged(self._file, error) from error
            raise StoreError(
                f"cannot {what} {self._file}: {error}; what was saved before is still in it: see that the disk has "
                "space and that nobody else writes there, then go on with --resume"
            ) from error


def damaged(file: Path, reason: object) -> StoreError:
    """Return the error for a database that is not as it was written."""
    return StoreError(f"{file} is damaged ({reason}); restore it from a copy, or begin a new run")


def checksum(state: State) -> int:
    """Return a checksum of all that is in a state."""
    numbers = (state.round, state.last, state.gamma_sum, state.k_sum, state.since, state.stopped)
    total = crc32(repr(numbers).encode())
    for name in VECTORS:
        total = crc32(as_entries(getattr(state, name)).data, total)
    return total


def _locked(folder: Path) -> int:
    """Take the folder for this process; the lock goes with it, however it ends."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise ConfigError(f"cannot open the run folder {folder}: {error.strerror}") from error
    for last in (False, False, True):
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            if last:
                os.close(handle)
                raise ConfigError(f"another server runs in {folder}; end it first") from None
            time.sleep(0.05)  # is_running takes it for a moment
        except OSError as error:
            _log.warning("cannot lock %s (%s): see that no other server runs there", folder, error.strerror)
            break
    return handle


def is_running(folder: Path) -> bool:
    """Whether a server runs in this folder, on this machine."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False  # a file system without locks
    else:
        return False
    finally:
        os.close(handle)
