"""The sections about clients, and about what went wrong."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from fism_server.archive.snapshot import Stage
from fism_server.report.numbers import numbers
from fism_server.report.view import Kind, Plot, Section, Series, Table

if TYPE_CHECKING:
    from fism_server.archive.snapshot import Snapshot

_MOST_EVENTS = 200
_MOST_BARS = 60


def clients_section(run: Snapshot) -> Section | None:
    """Return who takes part, and how long each takes."""
    names = [one.name for one in run.clients] or [*run.present, *run.waiting]
    if not names:
        return None
    spent = dict.fromkeys(names, (0.0, 0.0))
    for name, answers in run.answers.items():
        if len(answers):
            computed, waited = 1e3 * np.median(answers, axis=0)
            spent[name] = float(computed), float(max(0.0, waited - computed))
    rows = {one.name: one for one in run.clients}
    happened: Counter[str] = Counter()
    for event in run.events:
        for name in event.client.split(", "):
            happened[name] += event.count
    cells = []
    for name in names:
        one = rows.get(name)
        shape = [f"{one.rows:,}", str(one.virtual_clients)] if one else ["", ""]
        cells.append([name, _where(run, name), *shape, *(f"{ms:.3g}" for ms in spent[name]), str(happened[name])])
    plots = []
    if len(run.timed):
        shown = names if len(names) <= _MOST_BARS else sorted(names, key=lambda name: -sum(spent[name]))[:_MOST_BARS]
        title = "Milliseconds per round, by client" if len(shown) == len(names) else f"The slowest {_MOST_BARS} clients"
        parts = [Series(part, numbers([spent[n][i] for n in shown])) for i, part in enumerate(("computing", "network"))]
        plots.append(Plot("clients", title, Kind.BARS, "time per round (ms, medians)", parts, categories=shown))
    columns = ["client", "status", "rows", "virtual clients", "computing (ms)", "network (ms)", "events"]
    return Section("clients", "Clients", [], plots, [Table("Clients", columns, cells)])


def _where(run: Snapshot, name: str) -> str:
    dropped = next((one.dropped for one in run.clients if one.name == name), None)
    if dropped is not None:
        return f"dropped in round {dropped:,}"
    if name in run.waiting:
        return f"awaited since {time.strftime('%H:%M:%S', time.localtime(run.waiting[name]))}"
    if run.stage in {Stage.RUNNING, Stage.WAITING}:
        return "present" if name in run.present else "absent"
    return "took part"


def events_section(run: Snapshot) -> Section:
    """Return what went wrong, newest first."""
    count = sum(event.count for event in run.events)
    if not count:
        return Section("events", "Events", ["Nothing went wrong."])
    newest = run.events[: -_MOST_EVENTS - 1 : -1]
    cells = [
        [
            time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(event.at)),
            f"{event.round:,}",
            str(event.kind),
            event.client or "-",
            event.text + (f" ({event.count:,} times)" if event.count > 1 else ""),
        ]
        for event in newest
    ]
    text = (
        f"{count:,} event{'' if count == 1 else 's'}, newest first."
        if len(newest) == len(run.events)
        else (f"{count:,} events, of which the newest {len(newest)} are shown; fism events {run.folder} lists all.")
    )
    table = Table("Events", ["when", "round", "kind", "client", "what"], cells)
    return Section("events", "Events", [text], tables=[table])
