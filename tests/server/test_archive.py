"""What a run's database keeps, and what it notices."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fism_common.errors import ConfigError, StoreError
from fism_common.exchange import Evaluation
from fism_server.algorithm.record import Record
from fism_server.algorithm.state import State
from fism_server.archive import history, writer
from fism_server.archive.database import connect
from fism_server.archive.events import Event
from fism_server.archive.reader import Saved, event_counts, events, load
from fism_server.archive.schema import FILE, ROUND
from fism_server.archive.timing import answers_of, timings
from fism_server.archive.writer import Archive
from fism_server.federation.notices import EventKind
from fism_server.federation.roster import Member

MEMBERS = [Member("a", 3, 2, 1, digest=b"d"), Member("b", 4, 2, 1, digest=b"e")]


def record(k: int) -> Record:
    """Return a round's record."""
    return Record(k, 0.3, 0.1, 1.0 / k, 2.0, 0.7)


def state(k: int, *x: float) -> State:
    """Return a state in round k."""
    return State(k, {"sum": 0.1 * k, "count": k, "why": None}, {"x": np.array(x or (1.0 / 3, 2.0)), "y": np.ones(3)})


def add(archive: Archive, k: int, members: list[Member] = MEMBERS) -> None:
    """Add round k; the second client answers last."""
    times = [(0.001, 0.005), (0.002, 0.008)][-len(members) :]
    archive.add(record(k), 0.01, members, times, lambda: state(k + 1))


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    """Return the archive of a run of two clients after three rounds, saved after each."""
    archive = Archive.create(tmp_path, {"id": "run"})
    archive.begin(MEMBERS, state(1))
    for k in (1, 2, 3):
        add(archive, k)
        archive.save(state(k + 1))
    return archive


def reload(archive: Archive, folder: Path) -> Saved:
    """Return what a new process would read."""
    archive.close()
    again = Archive.open(folder)
    try:
        return load(again.database)
    finally:
        again.close()


def test_state_comes_back_as_it_was(archive: Archive, tmp_path: Path) -> None:
    """To the last bit, whatever numbers and vectors a method has."""
    given = State(9, {"sum": 0.1 + 0.2, "tiny": 5e-324, "none": None, "why": "rounds"}, {"x": np.array([0.1, -0.0])})
    archive.save(given)
    saved = reload(archive, tmp_path)
    assert saved.state is not None
    assert (saved.state.round, saved.state.numbers) == (9, given.numbers)
    assert {name: one.tobytes() for name, one in saved.state.vectors.items()} == {"x": given.x.tobytes()}
    assert [(m.name, m.rows, m.digest) for m in saved.members] == [("a", 3, b"d"), ("b", 4, b"e")]
    assert saved.facts == {"id": "run", "features": []}


def test_columns_of_rounds_are_those_of_a_record(archive: Archive) -> None:
    """With its times; a field that comes to Record comes to the table."""
    found = archive.database.connection.execute("SELECT * FROM rounds ORDER BY round")
    assert tuple(one[0] for one in found.description) == ROUND
    assert found.fetchone() == (1, 0.3, 0.1, 1.0, 2.0, 0.7, 0.01, 0.002, 0.008)
    archive.close()


def test_timings_are_of_the_clients_that_were_there(archive: Archive) -> None:
    """A client that is dropped is in the times of earlier rounds, and not of later ones."""
    connection = archive.database.connection
    assert timings(connection, 1).clients["a"] == pytest.approx({"compute_ms": 1.0, "network_ms": 4.0})
    assert timings(connection, 1).split_ms == pytest.approx({"client": 2.0, "network": 6.0, "server": 2.0})
    archive.drop([MEMBERS[0]], state(4), Event(4, EventKind.DROPPED, "a", "absent"))
    add(archive, 4, MEMBERS[1:])
    archive.save(state(5))
    assert {name: len(rows) for name, rows in answers_of(connection, 4).items()} == {"a": 0, "b": 1}
    assert timings(connection, 4).seconds == pytest.approx(0.04)
    archive.close()


def test_old_answers_are_summed_up_by_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that the table does not grow for ever; rounds and what they were spent on stay."""
    monkeypatch.setattr(history, "MOST_ROUNDS", 30)
    monkeypatch.setattr(history, "BLOCK", 10)
    archive = Archive.create(tmp_path, {"id": "run"})
    archive.begin(MEMBERS, state(1))
    for k in range(1, 96):
        add(archive, k)
        archive.save(state(k + 1))
    execute = archive.database.connection.execute
    assert execute("SELECT min(round), count(*) FROM answers").fetchone() == (60, 72)
    blocks = execute("SELECT first, client, rounds, waited FROM answer_blocks ORDER BY first, client").fetchall()
    assert [block[:3] for block in blocks[:4]] == [(0, 0, 9), (0, 1, 9), (10, 0, 10), (10, 1, 10)]
    assert blocks[3][3] == pytest.approx(0.08)
    assert (blocks[-1][0], execute("SELECT count(*) FROM rounds").fetchone()) == (50, (95,))
    archive.rewind(40)
    assert execute("SELECT max(round) FROM rounds").fetchone() == (39,)
    assert execute("SELECT max(first) FROM answer_blocks").fetchone() == (30,)
    archive.close()


def test_many_clients_keep_fewer_rounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of rows is bounded."""
    monkeypatch.setattr(history, "MOST_ROUNDS", 1000)
    monkeypatch.setattr(history, "BLOCK", 10)
    monkeypatch.setattr(history, "_MOST_ANSWERS", 60)
    archive = Archive.create(tmp_path, {"id": "run"})
    archive.begin(MEMBERS, state(1))
    for k in range(1, 201):
        add(archive, k)
        archive.save(state(k + 1))
    assert archive.database.connection.execute("SELECT count(*) FROM answers").fetchone()[0] <= 60 + 2 * 10
    archive.close()


def test_rewound_rounds_are_written_anew(archive: Archive) -> None:
    """With their evaluations and answers."""
    archive.evaluate(3, Evaluation(5, 4, 0.5))
    archive.save(state(4))
    archive.rewind(3)
    for table in ("rounds", "answers", "evaluations"):
        query = f"SELECT count(*) FROM {table} WHERE round >= 3"
        assert archive.database.connection.execute(query).fetchone() == (0,)
    add(archive, 3)
    archive.save(state(4))
    archive.close()


def test_run_of_another_format_is_refused(archive: Archive, tmp_path: Path) -> None:
    """As the first release wrote it: with what to do, to those who resume it and to those who look."""
    archive.database.connection.execute("PRAGMA user_version = 0")
    archive.close()
    for look in (Archive.open, connect):
        with pytest.raises(ConfigError, match="has format 1, and this version of fism reads format 2; use the version"):
            look(tmp_path)


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE vectors SET entries = x'00' || substr(entries, 2) WHERE name = 'y'",
        "UPDATE vectors SET name = 'z' WHERE name = 'y'",
        "UPDATE state SET numbers = replace(numbers, '0.', '1.')",
        "UPDATE state SET round = round + 1",
        "DELETE FROM vectors",
    ],
    ids=["vector", "name", "number", "round", "vectors"],
)
def test_changed_number_anywhere_in_the_states_is_noticed(damage: str, archive: Archive, tmp_path: Path) -> None:
    """Each state has a checksum of all that it needs."""
    archive.database.connection.execute(damage)
    with pytest.raises(StoreError, match="is damaged"):
        reload(archive, tmp_path)


def test_run_that_drops_a_client_keeps_no_state_from_before(archive: Archive, tmp_path: Path) -> None:
    """An older one would be of more clients."""
    archive.drop([MEMBERS[0]], state(4), Event(4, EventKind.DROPPED, "a", "absent"))
    assert archive.database.connection.execute("SELECT round FROM state").fetchall() == [(4,)]
    saved = reload(archive, tmp_path)
    assert ([member.name for member in saved.members], saved.dropped) == (["b"], {"a": 4})


def test_events_beyond_a_number_are_counted(archive: Archive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that nobody can fill the disk with them."""
    monkeypatch.setattr(writer, "_MOST_EVENTS", 3)
    for i in range(10):
        archive.note(Event(i, EventKind.REFUSED, f"x{i}", "no"))
    archive.note(Event(9, EventKind.REFUSED, "", "many more", count=500))
    archive.note(Event(5, EventKind.LOST, "a", "gone"))
    assert event_counts(archive.database.connection) == {"refused": 510, "lost": 1}
    archive.close()
    assert [(event.kind, event.count) for event in events(tmp_path)] == [
        (EventKind.REFUSED, 1),
        (EventKind.REFUSED, 1),
        (EventKind.REFUSED, 508),
        (EventKind.LOST, 1),
    ]


def test_folder_is_of_one_process_at_a_time(archive: Archive, tmp_path: Path) -> None:
    """And free again when its store is closed."""
    with pytest.raises(ConfigError, match="another server is running in"):
        Archive.open(tmp_path)
    archive.close()
    Archive.open(tmp_path).close()


def test_database_without_a_run_is_told(tmp_path: Path) -> None:
    """As a server leaves it that was killed in its first moment."""
    (tmp_path / FILE).write_bytes(b"")
    with pytest.raises(ConfigError, match="never began; remove the folder"):
        Archive.open(tmp_path)
