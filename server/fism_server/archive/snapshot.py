"""A run as its folder shows it, finished or still running; nothing in the folder is changed."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import numpy as np

from fism_common.errors import FismError
from fism_common.model import Fitted
from fism_server.algorithm.methods.fism import FismState
from fism_server.archive.configuration import read_beginning
from fism_server.archive.database import connect
from fism_server.archive.lock import is_running
from fism_server.archive.presence import Presence
from fism_server.archive.reader import features_of, read_events, read_facts, reading, scaling_of
from fism_server.archive.schema import FILE, ROUND, TIMES
from fism_server.archive.states import newest_state
from fism_server.archive.timing import answers_of, split
from fism_server.problem.plan import built_in_objective, loss_of

if TYPE_CHECKING:
    import sqlite3
    from pathlib import Path

    from numpy.typing import NDArray

    from fism_common.vectors import Vector
    from fism_server.algorithm.state import State
    from fism_server.archive.events import Event
    from fism_server.problem.config import RunConfig
    from fism_server.problem.outer import OuterObjective

_MOST_TIMED = 4000
"""The most rounds whose answers are read; if there are more, evenly spaced ones."""


class Stage(StrEnum):
    """Where a run is."""

    WAITING = "waiting"
    """Waiting for its clients, before the first round."""
    RUNNING = "running"
    FINISHED = "finished"
    INTERRUPTED = "interrupted"
    """No server runs in its folder, and it is not finished."""


@dataclass(frozen=True)
class ClientRow:
    """A client as it joined."""

    name: str
    rows: int
    columns: int
    virtual_clients: int
    dropped: int | None
    """The round in which the run dropped it."""


@dataclass(frozen=True)
class Quality:
    """How the model of one round does on held-out rows."""

    round: int
    rows: int
    right: int | None
    loss: float


@dataclass(frozen=True)
class Snapshot:
    """Everything known about a run at one moment."""

    folder: Path
    facts: dict[str, Any]
    stage: Stage
    config: RunConfig | None
    """The configuration that the run began with; None if it cannot be read."""
    trouble: str
    """Why the configuration cannot be read."""
    objective: OuterObjective | None
    """H, if it is built in: looking at a run must not run code that its folder names."""
    clients: list[ClientRow]
    rounds: dict[str, NDArray[np.float64]]
    """The numbers of every round, by the names in ROUND."""
    timed: NDArray[np.float64]
    """The rounds whose times are in ``split``."""
    split: NDArray[np.float64]
    """Seconds of the last client's computing, of the network, and of the server; a row for each of ``timed``."""
    answers: dict[str, NDArray[np.float64]]
    """By client: the seconds that it computed and that the server waited; a row for each of its timed rounds."""
    events: list[Event]
    qualities: list[Quality]
    state: State | None
    means: dict[str, Vector]
    """The averaged iterates that the method keeps, by name."""
    fitted: Fitted | None
    present: list[str]
    waiting: dict[str, float]
    """Who the run waits for, and since when."""


class Reader:
    """Reads a run repeatedly; of the rounds, only the new ones."""

    def __init__(self, folder: Path) -> None:
        """Take the run's folder; raise ConfigError if there is no run in it."""
        connect(folder).close()
        self._folder = folder
        self._begin(None)

    def _begin(self, run_id: object) -> None:
        """Forget what was read from another run in this folder."""
        self._id = run_id
        self._rows: list[NDArray[np.float64]] = []
        self._last = 0
        self._config: RunConfig | None = None
        self._place, self._trouble = self._folder, ""
        try:
            beginning = read_beginning(self._folder)
            self._config, self._place = beginning.config, beginning.folder
        except FismError as error:
            self._trouble = str(error)

    def stamp(self) -> tuple[object, ...]:
        """Return a value that changes when the run does, at no cost to the run."""
        files = [self._folder / FILE, self._folder / f"{FILE}-wal"]
        found = [file.stat() for file in files if file.exists()]
        return (is_running(self._folder), *((one.st_mtime_ns, one.st_size) for one in found))

    def read(self) -> Snapshot:
        """Return the run as it is now; raise StoreError if its database cannot be read."""
        running = is_running(self._folder)
        with reading(self._folder) as database:
            return self._read(database, running=running)

    def _read(self, database: sqlite3.Connection, *, running: bool) -> Snapshot:
        facts, clients = read_facts(database), _clients(database)
        if facts.get("id") != self._id:
            self._begin(facts.get("id"))
        stage = _stage(facts, running=running, begun=bool(clients))
        rounds = self._rounds(database)
        stride = max(1, math.ceil(len(rounds["round"]) / _MOST_TIMED))
        chosen = rounds["round"] % stride == 0
        qualities = database.execute("SELECT round, rows, right, loss FROM evaluations ORDER BY round")
        state = newest_state(database) if clients else None
        presence = facts.get(Presence.KEY, {}) if stage in {Stage.RUNNING, Stage.WAITING} else {}
        return Snapshot(
            folder=self._folder,
            facts=facts,
            stage=stage,
            config=self._config,
            trouble=self._trouble,
            objective=None if state is None else self._objective(state.x.size),
            clients=clients,
            rounds=rounds,
            timed=rounds["round"][chosen],
            split=split(np.column_stack([rounds[name][chosen] for name in TIMES])),
            answers=answers_of(database, stride=stride),
            events=read_events(database),
            qualities=[Quality(*row) for row in qualities],
            state=state,
            means={} if state is None else FismState.restored(state).means(),
            fitted=self._fitted(database, facts, state),
            present=presence.get("present", []),
            waiting=presence.get("waiting", {}),
        )

    def _rounds(self, database: sqlite3.Connection) -> dict[str, NDArray[np.float64]]:
        query = f"SELECT {', '.join(ROUND)} FROM rounds WHERE round > ? ORDER BY round"  # noqa: S608  # ours
        new = database.execute(query, (self._last,)).fetchall()
        if new:
            self._rows.append(np.array(new, float))
            self._last = int(new[-1][0])
        rows = np.concatenate(self._rows) if self._rows else np.empty((0, len(ROUND)))
        self._rows = [rows]
        return dict(zip(ROUND, rows.T, strict=True))

    def _objective(self, n: int) -> OuterObjective | None:
        try:
            return None if self._config is None else built_in_objective(self._config, self._place, n)
        except (FismError, OSError):  # a file that it names has moved
            return None

    def _fitted(self, database: sqlite3.Connection, facts: dict[str, Any], state: State | None) -> Fitted | None:
        if state is None or self._config is None:
            return None
        recipe = replace(self._config.data.recipe(), features=features_of(facts))
        return Fitted(state.x, loss_of(self._config.inner), recipe, scaling_of(database, facts))


def glance(folder: Path) -> dict[str, Any]:
    """Return a run's name, stage, clients, rounds, last F and H, and seconds, without reading all of it."""
    running = is_running(folder)
    with reading(folder) as database:
        facts = read_facts(database)
        clients = database.execute("SELECT count(*) FROM clients WHERE dropped IS NULL").fetchone()[0]
        rounds, seconds = database.execute("SELECT count(*), total(seconds) FROM rounds").fetchone()
        last = database.execute("SELECT inner, outer FROM rounds ORDER BY round DESC LIMIT 1").fetchone()
    inner, outer = (facts.get("inner"), facts.get("outer")) if "stopped" in facts else last or (None, None)
    return {
        "name": facts.get("name", ""),
        "stage": str(_stage(facts, running=running, begun=clients > 0)),
        "clients": clients,
        "rounds": rounds,
        "inner": inner,
        "outer": outer,
        "seconds": seconds,
    }


def every_answer(folder: Path) -> dict[str, NDArray[Any]]:
    """Return the times of all answers that are kept, as columns of one table."""
    query = (
        "SELECT round, name, computed, waited FROM answers JOIN clients ON client = position ORDER BY round, position"
    )
    with reading(folder) as database:
        rows = database.execute(query).fetchall()
    kinds = {"round": np.int64, "client": object, "computed": float, "waited": float}
    return {name: np.array([row[i] for row in rows], kind) for i, (name, kind) in enumerate(kinds.items())}


def _clients(database: sqlite3.Connection) -> list[ClientRow]:
    found = database.execute("SELECT name, rows, columns, virtual_clients, dropped FROM clients ORDER BY position")
    return [ClientRow(*row) for row in found]


def _stage(facts: dict[str, Any], *, running: bool, begun: bool) -> Stage:
    if "stopped" in facts:
        return Stage.FINISHED
    if running:
        return Stage.RUNNING if begun else Stage.WAITING
    return Stage.INTERRUPTED
