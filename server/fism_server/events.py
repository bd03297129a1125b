"""What went wrong in a run, and what was done about it: said at once, and kept in the run's database."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from fism_common.errors import StoreError

if TYPE_CHECKING:
    from fism_server.store import Store

_log = logging.getLogger(__name__)


class Kind(StrEnum):
    """The kinds of events."""

    LOST = "lost"
    """A client's connection ended without a word, or its reply did not come in time."""
    LEFT = "left"
    """A client went on purpose."""
    RETURNED = "returned"
    """A client that was away has a new stream."""
    LATE = "late"
    """An answer to an attempt that was abandoned in the meantime: not used, and no fault of the client's."""
    BAD = "bad"
    """A message that was not used."""
    PUT_OUT = "put out"
    """A client offended too often."""
    WITHOUT = "without"
    """The run went on without a client."""
    REFUSED = "refused"
    """A call of somebody who was not let in."""
    STOPPED = "stopped"
    """The run ended before it was finished."""
    RESUMED = "resumed"
    """The run went on from its database."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event; ``count`` is above 1 where several are told as one."""

    round: int
    kind: Kind
    client: str
    text: str
    at: float = field(default_factory=time.time)
    count: int = 1


class Journal:
    """Takes events as they happen."""

    def __init__(self, store: Store) -> None:
        """Take where events are kept."""
        self._store = store
        self.round = 0
        """The round under way; 0 before the first."""

    def note(self, kind: Kind, client: str, text: str) -> None:
        """Say an event and keep it."""
        event = self.event(kind, client, text)
        self.say(event)
        try:
            self._store.note(event)
        except StoreError as error:
            _log.error("not kept: %s", error)  # the next save of the state ends the run for it

    def event(self, kind: Kind, client: str, text: str) -> Event:
        """Return an event of the current round, for whoever keeps it together with what it belongs to."""
        return Event(self.round, kind, client, text)

    @staticmethod
    def say(event: Event) -> None:
        """Say an event."""
        _log.warning("%s: %s client=%s round=%d", event.kind, event.text, event.client or "-", event.round)
