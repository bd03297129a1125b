"""Events: what went wrong in a run and what was done about it, logged at once and archived."""

from __future__ import annotations

import logging
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fism_common.errors import StoreError
from fism_server.federation.notices import EventKind

if TYPE_CHECKING:
    from collections.abc import Callable

    from fism_server.archive.writer import Archive

_MOST_REFUSALS = 100
_REFUSALS_A_SECOND = 10.0
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Event:
    """One event; ``count`` is above 1 if it stands for several."""

    round: int
    kind: EventKind
    client: str
    text: str
    at: float = field(default_factory=time.time)
    count: int = 1


class Journal:
    """Logs and archives events as they happen."""

    def __init__(self, archive: Archive, current_round: Callable[[], int]) -> None:
        """Take the archive, and a function that returns the current round."""
        self._archive, self._current_round = archive, current_round
        self.counts: Counter[EventKind] = Counter()
        """How many events of each kind there have been since this process began."""
        self._budget, self._held_back, self._since = float(_MOST_REFUSALS), 0, time.monotonic()

    def note(self, kind: EventKind, client: str, text: str, count: int = 1) -> None:
        """Log and keep an event, or ``count`` of them as one."""
        if kind is EventKind.REFUSED and not self._within_budget():
            self._held_back += count
            return
        self._take(self.event(kind, client, text, count))

    def flush(self) -> None:
        """Log and keep, as one event, the refusals that were too many to list one by one."""
        if self._held_back:
            count, self._held_back = self._held_back, 0
            self._take(self.event(EventKind.REFUSED, "", f"{count} more calls, too many to list", count))

    def event(self, kind: EventKind, client: str, text: str, count: int = 1) -> Event:
        """Return an event of the current round, for callers that store it in their own transaction."""
        return Event(self._current_round(), kind, client, text, count=count)

    @staticmethod
    def log(event: Event) -> None:
        """Log an event."""
        _log.warning("%s: %s client=%s round=%d", event.kind, event.text, event.client or "-", event.round)

    def _take(self, event: Event) -> None:
        self.log(event)
        self.counts[event.kind] += event.count
        try:
            self._archive.note(event)
        except StoreError as error:
            _log.error("event not archived: %s", error)  # the next save of the state will end the run

    def _within_budget(self) -> bool:
        """Whether to list a refusal by itself: first a burst, then as many per second as a person can read."""
        now = time.monotonic()
        self._budget = min(self._budget + (now - self._since) * _REFUSALS_A_SECOND, _MOST_REFUSALS)
        self._since = now
        if self._budget < 1:
            return False
        self._budget -= 1
        return True
