"""Who is there and who is waited for, kept in the run's database for those who watch."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from fism_common.errors import StoreError

if TYPE_CHECKING:
    from fism_server.archive.writer import Store

_SHORTEST_WAIT = 1.0
_log = logging.getLogger(__name__)


class Presence:
    """Writes a change of who is there, and nothing while nothing changes."""

    KEY = "presence"

    def __init__(self, store: Store) -> None:
        """Take where it is kept."""
        self._store = store
        self._told: tuple[list[str], list[str]] | None = None

    def tell(self, present: list[str], waiting: list[tuple[str, float]]) -> None:
        """Take who has an open stream, and who is waited for, each with the seconds so far."""
        waiting = [(name, seconds) for name, seconds in waiting if seconds >= _SHORTEST_WAIT]
        told = present, [name for name, _ in waiting]
        if told == self._told:
            return
        now = time.time()
        since = {name: round(now - seconds, 1) for name, seconds in waiting}
        try:
            self._store.tell({self.KEY: {"present": present, "waiting": since}})
        except StoreError as error:
            _log.info("who is there is not kept: %s", error)  # the next save of the state ends the run for it
        else:
            self._told = told
