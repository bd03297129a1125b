"""A run's metrics for Prometheus, on a separate address."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Self

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server

from fism_common.errors import ConfigError
from fism_server.federation.notices import EventKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from fism_server.algorithm.record import Record

_BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 300, 600)


class Gauges:
    """The Prometheus metrics of a run."""

    def __init__(self) -> None:
        """Start with no rounds done."""
        registry = self.registry = CollectorRegistry()
        self._rounds = Counter("fism_rounds", "Rounds completed by this process.", registry=registry)
        self._round = Gauge("fism_round", "The last completed round.", registry=registry)
        self._inner = Gauge("fism_inner_value", "F before the last round.", registry=registry)
        self._outer = Gauge("fism_outer_value", "H before the last round.", registry=registry)
        self._change = Gauge("fism_change", "|x_k+1 - x_k| / (|x_k| + 1) in the last round.", registry=registry)
        self._seconds = Histogram("fism_round_seconds", "Time of a round.", registry=registry, buckets=_BUCKETS)
        self._present = Gauge("fism_clients_present", "Clients with an open stream.", registry=registry)
        self._expected = Gauge("fism_clients_expected", "Clients that a round waits for.", registry=registry)
        self._rejected = Counter("fism_answers_rejected", "Client messages that were not used.", registry=registry)
        self._events = Counter("fism_events", "Events, as fism events lists them.", ["kind"], registry=registry)
        self._counts: dict[str, int] = {}

    @classmethod
    @contextmanager
    def served(cls, address: str) -> Iterator[tuple[Self, str]]:
        """Yield gauges, and the HOST:PORT that serves them; raise ConfigError if it cannot listen there."""
        gauges = cls()
        host, _, port = address.rpartition(":")
        try:
            server, thread = start_http_server(int(port), host.strip("[]"), gauges.registry)
        except (OSError, ValueError, OverflowError) as error:
            raise ConfigError(
                f"cannot serve metrics on {address}: {error}; give --metrics another HOST:PORT"
            ) from error
        try:
            yield gauges, f"{host}:{server.server_port}"
        finally:
            server.shutdown()
            server.server_close()
            thread.join()

    def round(self, record: Record, seconds: float) -> None:
        """Record a completed round."""
        self._rounds.inc()
        self._round.set(record.round)
        self._inner.set(record.inner)
        self._outer.set(record.outer)
        self._change.set(record.change)
        self._seconds.observe(seconds)

    def clients(self, present: int, expected: int) -> None:
        """Record how many clients are present, and how many a round waits for."""
        self._present.set(present)
        self._expected.set(expected)

    def events(self, counts: Mapping[EventKind, int]) -> None:
        """Record how many events of each kind there have been so far."""
        for kind, count in counts.items():
            new = count - self._counts.get(kind, 0)
            self._counts[kind] = count
            self._events.labels(str(kind)).inc(new)
            if kind in {EventKind.REJECTED, EventKind.LATE}:
                self._rejected.inc(new)
