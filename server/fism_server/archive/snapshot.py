"""A run as its folder tells it, finished or under way, without a change to it."""

from __future__ import annotations

import json
import math
import sqlite3
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import numpy as np

from fism_common.errors import FismError, StoreError
from fism_common.model import Fitted
from fism_server.archive.presence import Presence
from fism_server.archive.reader import connect, features_of, newest_state, read_events, scaling_of
from fism_server.archive.timing import Times
from fism_server.archive.writer import FILE, is_running
from fism_server.problem.plan import built_in_objective, named
from fism_server.run.job import config_begun_with

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from fism_server.algorithm.rounds import State
    from fism_server.archive.events import Event
    from fism_server.problem.config import RunConfig
    from fism_server.problem.outer import OuterObjective

_MOST_TIMED = 4000
"""Rounds whose answers are read one by one; of more, an even choice."""
COLUMNS = ("round", "gamma", "lam", "inner", "outer", "change", "seconds")


class Stage(StrEnum):
    """Where a run is."""

    WAITING = "waiting"
    """For its clients, before the first round."""
    RUNNING = "running"
    FINISHED = "finished"
    BROKEN_OFF = "broken off"
    """No server runs in its folder, and it is not finished."""


@dataclass(frozen=True)
class ClientRow:
    """A client as it joined."""

    name: str
    rows: int
    columns: int
    shards: int
    left_out: int | None
    """The round in which the run went on without it."""


@dataclass(frozen=True)
class Quality:
    """The model of one round on the rows that clients hold out."""

    round: int
    rows: int
    right: int | None
    loss: float


@dataclass(frozen=True)
class Snapshot:
    """All that is known of a run at one moment."""

    folder: Path
    facts: dict[str, Any]
    stage: Stage
    config: RunConfig | None
    """What the run was begun with; None where that cannot be read."""
    trouble: str
    """Why it cannot."""
    objective: OuterObjective | None
    """H, if it is a built-in one: to look at a run runs no code that its folder names."""
    clients: list[ClientRow]
    rounds: dict[str, NDArray[np.float64]]
    """Every round's numbers, by the names in COLUMNS."""
    timed: NDArray[np.float64]
    """The rounds whose times are in ``split``."""
    split: NDArray[np.float64]
    """Seconds of the last client's computing, of its way, and of the server, a row for each of ``timed``."""
    answers: dict[str, NDArray[np.float64]]
    """By client: seconds that it computed and that it was waited for, a row for each timed round it took part in."""
    events: list[Event]
    qualities: list[Quality]
    state: State | None
    fitted: Fitted | None
    present: list[str]
    waiting: dict[str, float]
    """Who is waited for, and since when."""


@contextmanager
def reading(folder: Path) -> Iterator[sqlite3.Connection]:
    """Give a run's database as it is at one moment; raise ConfigError if there is none, StoreError if it is damaged."""
    with closing(connect(folder)) as database:
        try:
            database.execute("BEGIN")
            yield database
        except (sqlite3.Error, ValueError, TypeError, KeyError) as error:
            raise StoreError(f"cannot read {folder / FILE}: {error}") from error


class Reader:
    """Reads a run again and again: of the rounds, those that are new."""

    def __init__(self, folder: Path) -> None:
        """Take the run's folder; raise ConfigError if there is no run in it."""
        connect(folder).close()
        self._folder = folder
        self._begin(None)

    def _begin(self, run_id: object) -> None:
        """Forget what was read of another run in this folder."""
        self._id = run_id
        self._rows: list[NDArray[np.float64]] = []
        self._last = 0
        self._config: RunConfig | None = None
        self._place, self._trouble = self._folder, ""
        try:
            self._config, self._place = config_begun_with(self._folder)
        except FismError as error:
            self._trouble = str(error)

    def stamp(self) -> tuple[object, ...]:
        """Return something that changes when the run does, at no cost to it."""
        files = [self._folder / FILE, self._folder / f"{FILE}-wal"]
        found = [file.stat() for file in files if file.exists()]
        return (is_running(self._folder), *((one.st_mtime_ns, one.st_size) for one in found))

    def read(self) -> Snapshot:
        """Return the run as it is now; raise StoreError if its database cannot be read."""
        running = is_running(self._folder)
        with reading(self._folder) as database:
            return self._read(database, running=running)

    def _read(self, database: sqlite3.Connection, *, running: bool) -> Snapshot:
        facts, clients = _facts(database), _clients(database)
        if facts.get("id") != self._id:
            self._begin(facts.get("id"))
        stage = _stage(facts, running=running, begun=bool(clients))
        rounds = self._rounds(database)
        timed, split, answers = _times(database, clients, len(rounds["round"]))
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
            timed=timed,
            split=split,
            answers=answers,
            events=read_events(database),
            qualities=[Quality(*row) for row in qualities],
            state=state,
            fitted=self._fitted(database, facts, state),
            present=presence.get("present", []),
            waiting=presence.get("waiting", {}),
        )

    def _rounds(self, database: sqlite3.Connection) -> dict[str, NDArray[np.float64]]:
        query = f"SELECT {', '.join(COLUMNS)} FROM rounds WHERE round > ? ORDER BY round"  # noqa: S608  # ours
        new = database.execute(query, (self._last,)).fetchall()
        if new:
            self._rows.append(np.array(new, float))
            self._last = int(new[-1][0])
        rows = np.concatenate(self._rows) if self._rows else np.empty((0, len(COLUMNS)))
        self._rows = [rows]
        return dict(zip(COLUMNS, rows.T, strict=True))

    def _objective(self, n: int) -> OuterObjective | None:
        try:
            return None if self._config is None else built_in_objective(self._config, self._place, n)
        except (FismError, OSError):  # a file that it names has moved
            return None

    def _fitted(self, database: sqlite3.Connection, facts: dict[str, Any], state: State | None) -> Fitted | None:
        if state is None or self._config is None:
            return None
        recipe = replace(self._config.data.recipe(), features=features_of(facts))
        return Fitted(state.x, named(self._config.inner), recipe, scaling_of(database, facts))


def glance(folder: Path) -> dict[str, Any]:
    """Return a run's name, stage, clients, rounds, last F and H, and seconds, without reading all of it."""
    running = is_running(folder)
    with reading(folder) as database:
        facts = _facts(database)
        clients = database.execute("SELECT count(*) FROM clients WHERE left_out IS NULL").fetchone()[0]
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
    """Return the times of all answers of all rounds, as columns of one table."""
    with reading(folder) as database:
        clients = _clients(database)
        rows = database.execute("SELECT round, seconds, times FROM rounds ORDER BY round").fetchall()
    found: dict[str, list[NDArray[Any]]] = {name: [] for name in ("round", "client", "computed", "waited")}
    for rounds, times in _epochs(clients, rows):
        count = len(times.names)
        found["round"].append(np.repeat(rounds, count))
        found["client"].append(np.tile(np.array(times.names, object), len(rounds)))
        found["computed"].append(times.answers[:, :, 0].ravel())
        found["waited"].append(times.answers[:, :, 1].ravel())
    return {name: np.concatenate(parts) if parts else np.empty(0) for name, parts in found.items()}


def _facts(database: sqlite3.Connection) -> dict[str, Any]:
    return {key: json.loads(value) for key, value in database.execute("SELECT key, value FROM run")}


def _clients(database: sqlite3.Connection) -> list[ClientRow]:
    found = database.execute("SELECT name, rows, columns, shards, left_out FROM clients ORDER BY position")
    return [ClientRow(*row) for row in found]


def _stage(facts: dict[str, Any], *, running: bool, begun: bool) -> Stage:
    if "stopped" in facts:
        return Stage.FINISHED
    if running:
        return Stage.RUNNING if begun else Stage.WAITING
    return Stage.BROKEN_OFF


def _times(
    database: sqlite3.Connection, clients: list[ClientRow], count: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], dict[str, NDArray[np.float64]]]:
    """Return an even choice of rounds, what each one's seconds were spent on, and every client's answers in them."""
    stride = max(1, math.ceil(count / _MOST_TIMED))
    query = "SELECT round, seconds, times FROM rounds WHERE round % ? = 0 ORDER BY round"
    rows = database.execute(query, (stride,)).fetchall()
    splits, answers = [np.empty((0, 3))], {one.name: [np.empty((0, 2))] for one in clients}
    for _, times in _epochs(clients, rows):
        splits.append(times.split())
        for i, name in enumerate(times.names):
            answers[name].append(times.answers[:, i])
    timed = np.array([round_ for round_, _, _ in rows], float)
    return timed, np.concatenate(splits), {name: np.concatenate(parts) for name, parts in answers.items()}


def _epochs(
    clients: list[ClientRow], rows: list[tuple[int, float, bytes]]
) -> Iterator[tuple[NDArray[np.int64], Times]]:
    """Yield stretches of rounds that had the same clients, each with its times."""
    ends = sorted({one.left_out for one in clients if one.left_out is not None})
    for begin, end in zip([0, *ends], [*ends, math.inf], strict=True):
        part = [row for row in rows if begin <= row[0] < end]
        names = [one.name for one in clients if one.left_out is None or one.left_out > begin]
        if part and names:
            yield np.array([row[0] for row in part]), Times.of(names, [row[1:] for row in part])
