"""Connections that break, stall and lie."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ..federation.harness import assert_same_bytes, client, end, events, federation, rounds_done, server, until
from ..federation.tap import Tap
from .double import Double


@pytest.mark.parametrize(
    ("fault", "noticed"),
    [
        (Tap.cut, "lost"),
        (Tap.half_close, "lost"),
        pytest.param(Tap.swallow, "lost", marks=pytest.mark.long),
        pytest.param(lambda tap: tap.delay(0.005), None, marks=pytest.mark.long),
    ],
    ids=["cut", "half closed", "swallowed", "delayed"],
)
def test_faulty_connection_changes_no_byte(fault: Callable[[Tap], None], noticed: str | None, tmp_path: Path) -> None:
    """A client behind a proxy that fails in the middle of rounds: it comes back by itself where it has to."""
    given = federation(tmp_path, 2, rounds=100)
    out = tmp_path / "run"
    with server(given.config, out) as running:
        tap, other = Tap(running.address), Double(running.address, "c1", given.files[1])
        process = client(tap.address, "c0", given.files[0])
        other.open()
        order = other.answer_until(20)  # the run waits here until the fault is done
        fault(tap)
        if noticed:
            until(lambda: (noticed, "c0") in events(out))
        other.send(other.right_answer(order))
        assert other.finish().finished
        assert end(process)[0] == 0
        assert running.end() == 0
        other.close()
        tap.close()
    assert_same_bytes(out, given.solve())
    assert bool(events(out)) == bool(noticed)


@pytest.mark.long
def test_machine_that_went_down_without_a_word_gets_its_name_back(tmp_path: Path) -> None:
    """A new process has no token, and the old stream looks open: it tries until the server has seen that it is not."""
    given = federation(tmp_path, 2, rounds=100_000)
    out = tmp_path / "run"
    with server(given.config, out) as running:
        tap = Tap(running.address)
        old, other = client(tap.address, "c0", given.files[0]), client(running.address, "c1", given.files[1])
        until(lambda: rounds_done(out) > 20)
        tap.swallow()
        old.kill()
        old.communicate()
        before = rounds_done(out)
        new = client(running.address, "c0", given.files[0])
        until(lambda: rounds_done(out) > before + 50, seconds=40)
        for one in (new, other):
            one.kill()
        assert "'c0' is already connected" in new.communicate()[1]
        other.communicate()
        tap.close()
    assert [kind for kind, _ in events(out)][:3] == ["refused", "refused", "refused"]
