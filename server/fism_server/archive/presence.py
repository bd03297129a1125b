"""Which clients are present and which are awaited, in the archive for the live page."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from fism_common.errors import StoreError

if TYPE_CHECKING:
    from fism_server.archive.writer import Archive

_SHORTEST_WAIT = 1.0
_log = logging.getLogger(__name__)


class Presence:
    """Writes who is present and who is awaited, but only changes."""

    KEY = "presence"

    def __init__(self, archive: Archive) -> None:
        """Take the archive."""
        self._archive = archive
        self._written: tuple[list[str], list[str]] | None = None

    def update(self, present: list[str], waiting: list[tuple[str, float]]) -> None:
        """Take who has an open stream, and who is awaited, each with the seconds so far."""
        waiting = [(name, seconds) for name, seconds in waiting if seconds >= _SHORTEST_WAIT]
        new = present, [name for name, _ in waiting]
        if new == self._written:
            return
        now = time.time()
        since = {name: round(now - seconds, 1) for name, seconds in waiting}
        try:
            self._archive.describe({self.KEY: {"present": present, "waiting": since}})
        except StoreError as error:
            _log.info("presence not archived: %s", error)  # the next save of the state will end the run
        else:
            self._written = new
