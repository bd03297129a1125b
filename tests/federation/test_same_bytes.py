"""A federation gives the bytes that one process does."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import numpy as np
import pytest

from fism_client.compute.answerer import Answerer
from fism_client.data.matrix import Matrix
from fism_client.data.shard import Shard
from fism_client.session.participant import Participant
from fism_client.session.session import Session
from fism_common.data.moments import Scaling
from fism_common.exchange import Answer, Question, Solution
from fism_common.problem.registry import Variant
from fism_common.problem.sets import ConstraintSet
from fism_common.vectors import Vector

from .harness import assert_same_bytes, client, end, federation, fism_command, rounds_done, server, until
from .tap import Tap


@pytest.mark.parametrize("count", [1, 2, 5, 8])
def test_run_gives_the_bytes_of_solve(count: int, tmp_path: Path) -> None:
    """x, both means, F and H of every round and at the answer; sparse shards where there are five."""
    given = federation(tmp_path, count, sparse=count == 5)
    done = fism_command("run", given.config, "--out", tmp_path / "run", "--json")
    assert done.returncode == 0, done.stderr
    assert_same_bytes(tmp_path / "run", given.solve())
    summary = json.loads(done.stdout)
    assert summary == json.loads((tmp_path / "run/summary.json").read_text())
    assert (summary["rounds"], summary["stopped"], len(summary["clients"])) == (12, "rounds", count)
    assert {"seconds", "round_ms", "files"} <= set(summary)
    assert summary["split_ms"].keys() == {"client", "network", "server"}
    assert all(client["compute_ms"] > 0 and client["network_ms"] > 0 for client in summary["clients"])


def test_order_is_of_the_list_and_not_of_coming(tmp_path: Path) -> None:
    """Clients come in another order than an unsorted list of names has them."""
    names = ["zeta", "alpha", "mid"]
    given = federation(tmp_path, 3, names=names)
    with server(given.config, tmp_path / "run") as running:
        clients = [client(running.address, names[i], given.files[i]) for i in (1, 2, 0)]
        assert [end(one)[0] for one in clients] == [0, 0, 0]
        assert running.end() == 0
    assert_same_bytes(tmp_path / "run", given.solve())


def test_order_without_a_list_is_by_the_bytes_of_names(tmp_path: Path) -> None:
    """Capitals come before small letters, and those before letters with accents."""
    given = federation(tmp_path, 3)
    names = ["\u00e9clair", "beta", "Zeta"]
    with server(given.config, tmp_path / "run") as running:
        clients = [client(running.address, name, file) for name, file in zip(names, given.files, strict=True)]
        assert [end(one)[0] for one in clients] == [0, 0, 0]
        assert running.end() == 0
    assert_same_bytes(tmp_path / "run", given.solve(order=[2, 1, 0]))


class Queued:
    """An answerer that answers only when the one before it in a given queue has."""

    def __init__(self, inside: Answerer, before: threading.Semaphore | None, after: threading.Semaphore) -> None:
        """Take what answers, and the places in the queue."""
        self._inside, self._before, self._after = inside, before, after

    def answer(self, question: Question) -> Answer:
        """Wait for its turn, but at the end."""
        if isinstance(question, Solution):
            return self._inside.answer(question)
        if self._before is not None:
            assert self._before.acquire(timeout=60)
        answer = self._inside.answer(question)
        self._after.release()
        return answer


def test_answers_are_added_in_federation_order_whenever_they_arrive(tmp_path: Path) -> None:
    """Three clients answer in the reverse of their order, every round."""
    given = federation(tmp_path, 3)
    turns = [threading.Semaphore(0) for _ in range(4)]
    with server(given.config, tmp_path / "run") as running:

        def take_part(i: int) -> None:
            class Late(Participant):
                """Answers in its turn."""

                def answerer(self, loss: Variant, constraint: ConstraintSet, scaling: Scaling | None) -> Queued:
                    inside = super().answerer(loss, constraint, scaling)
                    return Queued(inside, turns[i + 1] if i < 2 else None, turns[i])

            late = Late(f"c{i}", Matrix("rows", Shard.of(*given.pairs[i])))
            results[i] = Session(running.address, late).run()

        results: dict[int, Vector] = {}
        threads = [threading.Thread(target=take_part, args=(i,)) for i in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=60)
        assert running.end() == 0
    assert_same_bytes(tmp_path / "run", given.solve())
    assert all(solution.tobytes() == given.solve().x.tobytes() for solution in results.values())


def test_virtual_clients_count_as_clients(tmp_path: Path) -> None:
    """One client with three of them gives the bytes of three clients with a third of the rows each."""
    given = federation(tmp_path, 1)
    rows, labels = given.pairs[0]
    rows, labels = np.tile(rows, (3, 1)) + np.arange(9)[:, None], np.tile(labels, 3)
    np.savez(given.files[0], A=rows, b=labels)
    with server(given.config, tmp_path / "one") as running:
        assert end(client(running.address, "all", given.files[0], "--virtual-clients", 3))[0] == 0
        assert running.end() == 0
    given.pairs[:] = list(zip(np.array_split(rows, 3), np.array_split(labels, 3), strict=True))
    assert_same_bytes(tmp_path / "one", given.solve())


def test_client_whose_connection_breaks_comes_back(tmp_path: Path) -> None:
    """Cut off several times in the middle of rounds, it joins again by itself, and the bytes are the same."""
    given = federation(tmp_path, 2, rounds=3000)
    with server(given.config, tmp_path / "run") as running:
        tap = Tap(running.address)
        clients = [client(tap.address, "a", given.files[0]), client(running.address, "b", given.files[1])]
        for goal in (50, 400, 800):
            until(lambda goal=goal: rounds_done(tmp_path / "run") > goal)  # type: ignore[misc]
            tap.cut()
        assert [end(one)[0] for one in clients] == [0, 0]
        assert running.end() == 0
        tap.close()
    assert len(tap.received) >= 4
    assert_same_bytes(tmp_path / "run", given.solve())
