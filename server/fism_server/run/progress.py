"""The progress of a run: one live line on a terminal, else plain lines."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.live import Live
from rich.text import Text

from fism_server.archive.timing import duration

if TYPE_CHECKING:
    from fism_server.algorithm.record import Record

_SECONDS_BETWEEN_LINES = 5.0
_SECONDS_BETWEEN_WAITS = 30.0
_SHORTEST_WAIT = 1.0
_MOST_NAMES = 5
_SETTLING = 2
"""The first rounds, which do not count for the pace: clients may still load their kernels."""


class Progress:
    """Shows a run on standard error."""

    def __init__(self, rounds: int, *, quiet: bool = False) -> None:
        """Take the highest number of rounds; ``quiet`` shows nothing."""
        self._rounds, self._quiet = rounds, quiet
        self._console = Console(stderr=True, soft_wrap=True)
        self._live = Live(console=self._console, transient=True, refresh_per_second=8)
        self._text = Text()
        self._last_line = self._last_wait = 0.0
        self._awaited: set[str] = set()
        self._pace: float | None = None
        """Recent seconds per round."""

    def __enter__(self) -> Self:
        """Start showing."""
        if not self._quiet and self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop showing."""
        self.end()

    def end(self) -> None:
        """Restore the terminal."""
        if self._live.is_started:
            self._live.stop()

    def say(self, text: str) -> None:
        """Print a line that stays."""
        if not self._quiet:
            self._console.print(text, highlight=False, markup=False)

    def round(self, record: Record, present: int, expected: int, seconds: float) -> None:
        """Show a completed round."""
        now = time.monotonic()
        self._pace = (
            0.95 * self._pace + 0.05 * seconds if self._pace is not None and record.round > _SETTLING else seconds
        )
        if self._quiet or (not self._live.is_started and now - self._last_line < _SECONDS_BETWEEN_LINES):
            return
        self._last_line = now
        left = (self._rounds - record.round) * self._pace
        line = (
            f"round {record.round}  F {record.inner:.5g}  H {record.outer:.5g}  change {record.change:.1e}  "
            f"clients {present}/{expected}  {seconds * 1e3:.1f} ms  {duration(round(left))} left"
        )
        if self._live.is_started:
            self._live.update(Text(line), refresh=False)
        else:
            self.say(line)

    def waiting(self, awaited: list[tuple[str, float]]) -> None:
        """Show who the run waits for, each with the seconds so far; without a terminal, repeat it every 30 seconds."""
        awaited = [(name, seconds) for name, seconds in awaited if seconds >= _SHORTEST_WAIT]
        names, now = {name for name, _ in awaited}, time.monotonic()
        if not awaited:
            self._awaited = names
            return
        shown = [f"{name}, {seconds:.0f} s" for name, seconds in awaited[:_MOST_NAMES]]
        line = f"waiting for {'; '.join(shown)}{' and others' if len(awaited) > _MOST_NAMES else ''}"
        if self._live.is_started:
            self._live.update(Text(line), refresh=True)
        elif not names <= self._awaited or now - self._last_wait >= _SECONDS_BETWEEN_WAITS:
            self._awaited, self._last_wait = names, now
            self.say(line)

    def summary(self, rows: list[tuple[str, str]]) -> None:
        """End the live line, and print the result of the run as a short table."""
        self.end()
        width = max(len(name) for name, _ in rows)
        for name, value in rows:
            self.say(f"{name:{width}}  {value}")
