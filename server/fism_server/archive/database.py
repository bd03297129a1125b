"""Access to a run's database: one writer, any number of readers, errors that say what to do."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

from fism_common.errors import ConfigError, StoreError
from fism_server.archive.lock import lock
from fism_server.archive.schema import FILE, FORMAT, TABLES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

_SECONDS_FOR_A_LOCK = 10.0


class Database:
    """The writer's connection, with the lock on the run's folder."""

    def __init__(self, folder: Path) -> None:
        """Take a run's folder, which no other process may write to; see ``create`` and ``open``."""
        self.file = folder / FILE
        self._lock = lock(folder)
        with self.reporting("open"):
            # Autocommit: transactions are begun by hand. One thread at a time, but not always the same one.
            self.connection = sqlite3.connect(
                self.file, isolation_level=None, check_same_thread=False, timeout=_SECONDS_FOR_A_LOCK
            )
            self.connection.execute("PRAGMA synchronous = NORMAL")

    @classmethod
    def create(cls, folder: Path) -> Self:
        """Create the database of a new run; the caller writes the first rows in a transaction."""
        database = cls(folder)
        try:
            with database.reporting("create"):
                database.connection.execute("PRAGMA journal_mode = WAL")
            with database.transaction():
                for table in TABLES:
                    database.connection.execute(f"CREATE TABLE {table}")
                database.connection.execute(f"PRAGMA user_version = {FORMAT}")
        except BaseException:
            database.close()
            raise
        return database

    @classmethod
    def open(cls, folder: Path) -> Self:
        """Open the database of a run to resume."""
        if not (folder / FILE).is_file():
            raise ConfigError(f"there is no run to resume in {folder}: it has no {FILE}")
        database = cls(folder)
        try:
            with database.reporting("read"):
                check_format(database.connection, folder)
        except BaseException:
            database.close()
            raise
        return database

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run the block in one transaction."""
        with self.reporting("write"), self.connection:
            self.connection.execute("BEGIN IMMEDIATE")
            yield

    @contextmanager
    def synced(self) -> Iterator[None]:
        """Sync the transactions in the block to the disk."""
        with self.reporting("write"):
            self.connection.execute("PRAGMA synchronous = FULL")
        yield
        with self.reporting("write"):
            self.connection.execute("PRAGMA synchronous = NORMAL")

    @contextmanager
    def reporting(self, what: str) -> Iterator[None]:
        """Turn SQLite's errors into ours, with what to do."""
        try:
            yield
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}:
                raise damaged(self.file, error) from error
            raise StoreError(
                f"cannot {what} {self.file}: {error}; what was saved before is still in it: check that the disk has "
                "space and that no other process writes there, then use --resume"
            ) from error

    def insert(self, table: str, rows: Iterable[tuple[Any, ...]], width: int) -> None:
        """Add rows of ``width`` values to a table, replacing those with the same key."""
        marks = ", ".join("?" * width)
        self.connection.executemany(f"INSERT OR REPLACE INTO {table} VALUES ({marks})", rows)  # noqa: S608  # ours

    def close(self) -> None:
        """Close the file, and release the folder."""
        with contextlib.suppress(sqlite3.Error):  # if another process is reading, SQLite does it later
            self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self.connection.close()
        os.close(self._lock)


def connect(folder: Path) -> sqlite3.Connection:
    """Return a run's database, read-only; raise ConfigError if there is none, or if it has another format."""
    file = folder / FILE
    if not file.is_file():
        raise ConfigError(f"there is no run in {folder}: it has no {FILE}")
    # Without a write-ahead log there is no writer; "immutable" keeps SQLite from creating files in another
    # user's folder.
    how = "mode=ro" if file.with_name(f"{FILE}-wal").exists() else "immutable=1"
    connection = sqlite3.connect(f"{file.absolute().as_uri()}?{how}", uri=True)
    try:
        check_format(connection, folder)
    except sqlite3.Error as error:
        connection.close()
        raise StoreError(f"cannot read {file}: {error}") from error
    except BaseException:
        connection.close()
        raise
    return connection


def has_run(connection: sqlite3.Connection) -> bool:
    """Whether the database was created completely: a server may die before that."""
    return connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'run'").fetchone() is not None


def is_begun(file: Path) -> bool:
    """Whether the database in a file was created completely."""
    with contextlib.closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        return has_run(connection)


def check_format(connection: sqlite3.Connection, folder: Path) -> None:
    """Refuse a database without a run in it, and that of an earlier or later version of fism."""
    (found,) = connection.execute("PRAGMA user_version").fetchone()
    if not has_run(connection):
        raise ConfigError(f"the run in {folder} never began; remove the folder and start again")
    if found != FORMAT:
        raise ConfigError(
            f"the run in {folder} has format {max(found, 1)}, and this version of fism reads format {FORMAT}; use the "
            "version that began the run"
        )


def damaged(file: Path, reason: object) -> StoreError:
    """Return the error for a damaged database."""
    return StoreError(f"{file} is damaged ({reason}); restore it from a backup, or start a new run")
