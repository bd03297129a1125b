"""Where the time of a round goes: to the client that answers last, to the network, to the server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import sqlite3

    from numpy.typing import NDArray


def duration(seconds: float) -> str:
    """Return a duration as text: three digits below a minute."""
    minutes, rest = divmod(round(seconds), 60)
    if not minutes:
        return f"{seconds:.3g} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def split(rounds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return where the time of rounds went, a row each: the last client's computing, the network, the server.

    ``rounds`` has a row for each round: its seconds, and how long the last client computed and was awaited.
    """
    seconds, computed, waited = rounds.T
    spent: NDArray[np.float64] = np.column_stack([computed, waited - computed, seconds - waited])
    return spent.clip(0.0)


@dataclass(frozen=True)
class Timings:
    """How long the rounds of a run took."""

    seconds: float
    """All rounds together."""
    round_ms: float
    """The median of a round."""
    split_ms: dict[str, float]
    """The medians of the parts of a round."""
    clients: dict[str, dict[str, float]]
    """Per client the medians of its computing and of the network, over the rounds whose answers are kept."""


def timings(connection: sqlite3.Connection, since: int) -> Timings:
    """Return how long the rounds took; all medians are over those from ``since`` on."""
    (total,) = connection.execute("SELECT total(seconds) FROM rounds").fetchone()
    query = "SELECT seconds, computed, waited FROM rounds WHERE round >= ?"
    rounds = np.array(connection.execute(query, (since,)).fetchall()).reshape(-1, 3)
    parts = 1e3 * np.median(split(rounds), axis=0)
    return Timings(
        seconds=float(total),
        round_ms=1e3 * float(np.median(rounds[:, 0])),
        split_ms=dict(zip(("client", "network", "server"), map(float, parts), strict=True)),
        clients={name: _medians(answers) for name, answers in answers_of(connection, since).items()},
    )


def answers_of(connection: sqlite3.Connection, since: int = 0, stride: int = 1) -> dict[str, NDArray[np.float64]]:
    """Return per client the seconds that it computed and was awaited, a row for each answer that is kept."""
    names = dict(connection.execute("SELECT position, name FROM clients ORDER BY position").fetchall())
    query = "SELECT client, computed, waited FROM answers WHERE round >= ? AND round % ? = 0 ORDER BY client, round"
    rows = np.array(connection.execute(query, (since, stride)).fetchall()).reshape(-1, 3)
    begin, end = (np.searchsorted(rows[:, 0], list(names), side) for side in ("left", "right"))
    return {name: rows[a:b, 1:] for name, a, b in zip(names.values(), begin, end, strict=True)}


def _medians(answers: NDArray[np.float64]) -> dict[str, float]:
    if not len(answers):
        return {"compute_ms": 0.0, "network_ms": 0.0}
    computed, waited = answers.T
    return {"compute_ms": 1e3 * float(np.median(computed)), "network_ms": 1e3 * float(np.median(waited - computed))}
