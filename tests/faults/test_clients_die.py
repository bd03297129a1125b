"""Clients that are killed: whatever the moment, the model has the bytes of an undisturbed run."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from ..federation.harness import assert_same_bytes, client, clients, end, events, federation, rounds_done, server, until

KILLS = 20


def returned(out: Path) -> int:
    """Return how often a client has come back."""
    return sum(kind == "returned" for kind, _ in events(out))


@pytest.mark.long
def test_killed_clients_change_no_byte(tmp_path: Path) -> None:
    """One of three, then all of them, twenty times in the middle of rounds; each is started again."""
    given = federation(tmp_path, 3, rounds=6000)
    rng = random.Random(4)  # noqa: S311  # moments, not secrets
    with server(given.config, tmp_path / "run") as running, clients(running.address, given) as running_clients:
        killed = 0
        for i in range(KILLS):
            until(lambda killed=killed: returned(tmp_path / "run") == killed)  # type: ignore[misc]
            moment = rounds_done(tmp_path / "run") + rng.randrange(5, 250)
            until(lambda moment=moment: rounds_done(tmp_path / "run") >= moment)  # type: ignore[misc]
            dying = [rng.choice(given.names)] if i % 2 == 0 else given.names
            for name in dying:
                running_clients[name].kill()
                end(running_clients[name])
            killed += len(dying)
            for name in dying:
                running_clients[name] = client(running.address, name, given.file(name))
        assert [end(one)[0] for one in running_clients.values()] == [0, 0, 0]
        assert running.end() == 0
    assert_same_bytes(tmp_path / "run", given.solve())
    kinds = [kind for kind, _ in events(tmp_path / "run")]
    assert kinds.count("lost") == kinds.count("returned") == killed == KILLS // 2 * (1 + 3)
