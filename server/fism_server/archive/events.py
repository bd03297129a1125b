"""What went wrong in a run, and what was done about it: said at once, and kept in the run's database."""

from __future__ import annotations

import logging
import time
from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from fism_common.errors import StoreError

if TYPE_CHECKING:
    from fism_server.archive.writer import Store

_MOST_REFUSALS = 100
_REFUSALS_A_SECOND = 10.0
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
        self.counts: Counter[Kind] = Counter()
        """Of all events since this process began."""
        self.round = 0
        """The round under way; 0 before the first."""
        self._room, self._held_back, self._since = float(_MOST_REFUSALS), 0, time.monotonic()

    def note(self, kind: Kind, client: str, text: str, count: int = 1) -> None:
        """Say an event, or ``count`` of them told as one, and keep it."""
        if kind is Kind.REFUSED and not self._has_room():
            self._held_back += count
            return
        self._take(Event(self.round, kind, client, text, count=count))

    def flush(self) -> None:
        """Say and keep, as one, the refusals that were too many to be told one by one."""
        if self._held_back:
            count, self._held_back = self._held_back, 0
            self._take(Event(self.round, Kind.REFUSED, "", f"{count} more calls, too many to tell", count=count))

    def _take(self, event: Event) -> None:
        self.say(event)
        self.counts[event.kind] += event.count
        try:
            self._store.note(event)
        except StoreError as error:
            _log.error("not kept: %s", error)  # the next save of the state ends the run for it

    def _has_room(self) -> bool:
        """Whether a refusal may be told by itself: at most so many at once, and as many a second as can be read."""
        now = time.monotonic()
        self._room = min(self._room + (now - self._since) * _REFUSALS_A_SECOND, _MOST_REFUSALS)
        self._since = now
        if self._room < 1:
            return False
        self._room -= 1
        return True

    def event(self, kind: Kind, client: str, text: str) -> Event:
        """Return an event of the current round, for whoever keeps it together with what it belongs to."""
        return Event(self.round, kind, client, text)

    @staticmethod
    def say(event: Event) -> None:
        """Say an event."""
        _log.warning("%s: %s client=%s round=%d", event.kind, event.text, event.client or "-", event.round)
