"""The tables of a run's database. The columns of a round derive from ``Record``."""

from __future__ import annotations

from dataclasses import fields

from fism_server.algorithm.record import Record

FILE = "run.sqlite"
FORMAT = 2
"""Kept in SQLite's user_version; it changes with every change of a table's meaning."""

RECORD = tuple(field.name for field in fields(Record))
TIMES = ("seconds", "computed", "waited")
"""The seconds of a round: in all, and for its last answer, how long the client computed and the server waited."""
ROUND = (*RECORD, *TIMES)
"""The columns of a round."""

ALWAYS = -1
"""The slot of vectors that belong to every state."""


def _column(name: str) -> str:
    if name == "round":
        return "round INTEGER PRIMARY KEY"
    return f"{name} {'INTEGER' if Record.__annotations__.get(name) == 'int' else 'REAL'} NOT NULL"


TABLES = (
    "run (key TEXT PRIMARY KEY, value TEXT NOT NULL)",
    """clients (position INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, rows INTEGER NOT NULL,
        columns INTEGER NOT NULL, virtual_clients INTEGER NOT NULL, digest BLOB NOT NULL, dropped INTEGER)""",
    f"rounds ({', '.join(map(_column, ROUND))})",
    """answers (round INTEGER, client INTEGER, computed REAL NOT NULL, waited REAL NOT NULL,
        PRIMARY KEY (round, client)) WITHOUT ROWID""",
    """answer_blocks (first INTEGER, client INTEGER, rounds INTEGER NOT NULL, computed REAL NOT NULL,
        waited REAL NOT NULL, PRIMARY KEY (first, client)) WITHOUT ROWID""",
    "evaluations (round INTEGER PRIMARY KEY, rows INTEGER NOT NULL, right INTEGER, loss REAL NOT NULL)",
    """state (slot INTEGER PRIMARY KEY, saved INTEGER NOT NULL, round INTEGER NOT NULL, numbers TEXT NOT NULL,
        crc INTEGER NOT NULL)""",
    "vectors (slot INTEGER, name TEXT, entries BLOB NOT NULL, PRIMARY KEY (slot, name))",
    """events (id INTEGER PRIMARY KEY, at REAL NOT NULL, round INTEGER NOT NULL, kind TEXT NOT NULL,
        client TEXT NOT NULL, text TEXT NOT NULL, count INTEGER NOT NULL)""",
)
