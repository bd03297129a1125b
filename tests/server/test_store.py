"""What a run's database keeps, and what it notices."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fism_common.errors import ConfigError, StoreError
from fism_server.algorithm.rounds import Record, State, Stop
from fism_server.archive import writer as store_module
from fism_server.archive.events import Event, Kind
from fism_server.archive.reader import Saved, events, load
from fism_server.archive.writer import FILE, Store
from fism_server.federation.roster import Member

MEMBERS = [Member("a", 3, 2, 1, digest=b"d"), Member("b", 4, 2, 1, digest=b"e")]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Return the store of a run of two clients after three rounds, saved after each."""
    store = Store.create(tmp_path, {"id": "run"})
    state = State.at(1, np.array([0.5, -0.0]))
    store.begin(MEMBERS, state)
    for k in (1, 2, 3):
        record = Record(k, 0.3, 0.1, 1.0 / k, 2.0, 0.7)
        state.advance(record, np.array([1.0 / 3 * k, 2.0]))
        store.add(record, 0.01, [(0.001, 0.005), (0.002, 0.008)], state)
        store.save(state)
    return store


def reload(store: Store, folder: Path) -> Saved:
    """Return what a new process would read."""
    store.close()
    again = Store.open(folder)
    try:
        return load(again.database, folder / FILE)
    finally:
        again.close()


def test_state_comes_back_as_it_was(store: Store, tmp_path: Path) -> None:
    """To the last bit, with the record that the stop rule compares with."""
    state = State.at(9, np.array([0.1, 5e-324]))
    state.last, state.stopped = Record(8, 0.3, 0.1, 0.1, 0.2, 0.3), Stop.TOLERANCE
    store.add(state.last, 0.01, [(0.0, 0.0)] * 2, state)
    store.save(state)
    saved = reload(store, tmp_path)
    assert saved.state is not None
    assert saved.state.x.tobytes() == state.x.tobytes()
    assert (saved.state.last, saved.state.stopped, saved.state.since) == (state.last, Stop.TOLERANCE, 9)
    assert [(m.name, m.rows, m.digest) for m in saved.members] == [("a", 3, b"d"), ("b", 4, b"e")]
    assert saved.facts == {"id": "run", "features": []}


def test_times_are_of_the_clients_that_were_there(store: Store) -> None:
    """Who is left out after some rounds is in their times, and not in those of later rounds."""
    assert store.times(1).medians_of("a") == pytest.approx({"compute_ms": 1.0, "network_ms": 4.0})
    state = State.at(4, np.zeros(2))
    store.leave_out([MEMBERS[0]], state, Event(4, Kind.WITHOUT, "a", "away"))
    assert store.times(1).names == ["a", "b"]
    record = Record(4, 0.3, 0.1, 0.25, 2.0, 0.7)
    state.advance(record, np.ones(2))
    store.add(record, 0.01, [(0.003, 0.004)], state)
    store.save(state)
    since = store.times(4)
    store.close()
    assert since.names == ["b"]
    assert since.median_split() == pytest.approx({"client": 3.0, "network": 1.0, "server": 6.0})


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE vectors SET entries = x'00' || substr(entries, 2) WHERE name = 'k_sum_x'",
        "UPDATE state SET gamma_sum = gamma_sum * (1 + 1e-15)",
        "UPDATE state SET round = round + 1",
        "UPDATE rounds SET inner = inner * (1 + 1e-15)",
        "DELETE FROM rounds",
    ],
    ids=["vector", "sum", "round", "record", "records"],
)
def test_changed_number_anywhere_in_the_states_is_noticed(damage: str, store: Store, tmp_path: Path) -> None:
    """Each state has a checksum of all that it needs."""
    store.database.execute(damage)
    with pytest.raises(StoreError, match="is damaged"):
        reload(store, tmp_path)


def test_run_that_goes_on_without_a_client_keeps_no_state_from_before(store: Store, tmp_path: Path) -> None:
    """An older one would be of more clients."""
    state = State.at(4, np.ones(2))
    store.leave_out([MEMBERS[0]], state, Event(4, Kind.WITHOUT, "a", "away"))
    assert store.database.execute("SELECT round FROM state").fetchall() == [(4,)]
    saved = reload(store, tmp_path)
    assert ([member.name for member in saved.members], saved.left_out) == (["b"], {"a": 4})


def test_events_beyond_a_number_are_counted(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that nobody can fill the disk with them."""
    monkeypatch.setattr(store_module, "_MOST_EVENTS", 3)
    for i in range(10):
        store.note(Event(i, Kind.REFUSED, f"x{i}", "no"))
    store.note(Event(9, Kind.REFUSED, "", "many more", count=500))
    store.note(Event(5, Kind.LOST, "a", "gone"))
    assert store.event_counts() == {"refused": 510, "lost": 1}
    store.close()
    assert [(event.kind, event.count) for event in events(tmp_path)] == [
        (Kind.REFUSED, 1),
        (Kind.REFUSED, 1),
        (Kind.REFUSED, 508),
        (Kind.LOST, 1),
    ]


def test_folder_is_of_one_process_at_a_time(store: Store, tmp_path: Path) -> None:
    """And free again when its store is closed."""
    with pytest.raises(ConfigError, match="another server runs in"):
        Store.open(tmp_path)
    store.close()
    Store.open(tmp_path).close()


def test_database_without_a_run_is_told(tmp_path: Path) -> None:
    """As a server leaves it that was killed in its first moment."""
    (tmp_path / FILE).write_bytes(b"")
    with pytest.raises(ConfigError, match="was never begun; remove the folder"):
        Store.open(tmp_path)
