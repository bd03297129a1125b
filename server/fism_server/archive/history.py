"""The history of a run's rounds: records, evaluations, and how long every answer took, thinned out with age."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fism_server.archive.schema import RECORD, ROUND

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fism_common.exchange import Evaluation
    from fism_server.algorithm.record import Record
    from fism_server.archive.database import Database
    from fism_server.federation.gathering import Timing

MOST_ROUNDS = 10_000
"""Rounds whose answers are kept one by one; fewer if there are over 100 clients."""
BLOCK = 1_000
"""Rounds whose answers are summed up together after that."""
_MOST_ANSWERS = 1_000_000


class History:
    """Rounds that are not written yet, and the thinning of those that are."""

    def __init__(self) -> None:
        """Start with nothing to write."""
        self._records: list[tuple[Any, ...]] = []
        self._answers: list[tuple[int, int, float, float]] = []
        self._evaluations: list[tuple[int, int, int | None, float]] = []
        self._thinned: int | None = None

    def add(self, record: Record, seconds: float, positions: Sequence[int], timings: Sequence[Timing]) -> None:
        """Add a round; ``positions`` are those of the clients that answered, in the order of ``timings``."""
        last = max(timings, key=lambda timing: timing[1], default=(0.0, 0.0))
        self._records.append((*(getattr(record, name) for name in RECORD), seconds, *last))
        self._answers += [(record.round, at, *timing) for at, timing in zip(positions, timings, strict=True)]

    def evaluate(self, round_: int, evaluation: Evaluation) -> None:
        """Add an evaluation at x_k."""
        self._evaluations.append((round_, evaluation.rows, evaluation.right, evaluation.loss))

    def write(self, database: Database) -> None:
        """Write what was added, inside a transaction; call ``written`` once it is committed."""
        database.insert("rounds", self._records, len(ROUND))
        database.insert("answers", self._answers, 4)
        database.insert("evaluations", self._evaluations, 4)
        if self._records:
            clients = max(1, len(self._answers) // len(self._records))
            self._thin(database, self._records[-1][0], clients)

    def written(self) -> None:
        """Discard what has been written."""
        for rows in (self._records, self._answers, self._evaluations):
            rows.clear()

    def _thin(self, database: Database, round_: int, clients: int) -> None:
        """Sum up whole blocks of answers that are older than the rounds to keep."""
        kept = max(BLOCK, min(MOST_ROUNDS, _MOST_ANSWERS // clients))
        end = (round_ - kept) // BLOCK * BLOCK
        if end <= 0 or end == self._thinned:
            return
        execute = database.connection.execute
        execute(
            "INSERT OR REPLACE INTO answer_blocks SELECT round / ? * ?, client, count(*), sum(computed), sum(waited) "
            "FROM answers WHERE round < ? GROUP BY 1, 2",
            (BLOCK, BLOCK, end),
        )
        execute("DELETE FROM answers WHERE round < ?", (end,))
        self._thinned = end


def rewind(database: Database, round_: int) -> None:
    """Delete a round and those after it, inside a transaction: they are computed again."""
    for table in ("rounds", "answers", "evaluations"):
        database.connection.execute(f"DELETE FROM {table} WHERE round >= ?", (round_,))  # noqa: S608  # ours
    database.connection.execute("DELETE FROM answer_blocks WHERE first + ? > ?", (BLOCK, round_))
