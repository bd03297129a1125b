"""What `limits.on_absence` decides when a client stays away."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import numpy as np
import pytest

import fism
from fism_common.wire.pb import federation_pb2 as pb

from ..federation.harness import (
    Federation,
    assert_same_bytes,
    children,
    client,
    clients,
    end,
    events,
    facts,
    federation,
    fism_command,
    popen,
    resumed,
    rounds_done,
    server,
    until,
)
from .double import Double

CONTINUE = ("--set", 'limits.on_absence="continue"', "--set", "limits.absence_seconds=0.5")
STOP = ("--set", 'limits.on_absence="stop"', "--set", "limits.absence_seconds=0.5")


def without(given: Federation, left_out: dict[int, int]) -> fism.Result:
    """Return what `fism.solve` makes of it, when shards are left out from some rounds on; the last part's result."""
    shards, k = list(range(len(given.pairs))), 1
    x: np.ndarray | None = None
    for gone, since in left_out.items():
        if since > k:
            x = given.solve(shards, rounds=since - k, first_round=k, start=x).x
            k = since
        shards.remove(gone)
    return given.solve(shards, rounds=given.rounds - k + 1, first_round=k, start=x)


def dropped(out: Path) -> dict[str, int]:
    """Return whom a run went on without, and from which round on."""
    return dict(facts(out, "SELECT name, dropped FROM clients WHERE dropped IS NOT NULL ORDER BY dropped"))


def assert_ends_as(out: Path, expected: fism.Result) -> None:
    """Compare the model and the rounds that led to it, to the last bit."""
    with np.load(out / "model.npz") as model:
        for name in ("x", "weighted", "average"):
            assert model[name].tobytes() == getattr(expected, name).tobytes(), name
    inner = [row[0] for row in facts(out, "SELECT inner FROM rounds ORDER BY round")]
    assert np.array(inner[-expected.rounds :]).tobytes() == expected.history["inner"].tobytes()
    summary = json.loads((out / "summary.json").read_text())
    assert (summary["inner"], summary["outer"]) == (expected.inner, expected.outer)


def test_run_goes_on_without_clients_that_stay_away(tmp_path: Path) -> None:
    """Two of four, one after the other; who returns later is refused; the bytes are those of solve on what is left."""
    given, out = federation(tmp_path, 4, rounds=3000), tmp_path / "run"
    with server(given.config, out, *CONTINUE) as running, clients(running.address, given) as running_clients:
        for name in ("c1", "c3"):
            before = rounds_done(out)
            until(lambda before=before: rounds_done(out) > before + 20)  # type: ignore[misc]
            running_clients[name].kill()
            running.wait_for(rf"dropped: absent for over 0.5 s; . clients and \d+ rows are left client={name}")
        code, _, said = end(client(running.address, "c1", given.files[1]))
        assert code == 3
        assert f"'c1' was absent for too long: it was dropped in round {dropped(out)['c1']}" in said
        assert [end(running_clients[name])[0] for name in ("c0", "c2")] == [0, 0]
        assert running.end() == 0
    rounds = dropped(out)
    assert list(rounds) == ["c1", "c3"]
    assert_ends_as(out, without(given, {1: rounds["c1"], 3: rounds["c3"]}))
    assert [one["name"] for one in json.loads((out / "summary.json").read_text())["clients"]] == ["c0", "c2"]


def test_client_that_is_back_in_time_stays_in(tmp_path: Path) -> None:
    """Nothing is left out, and no byte changes."""
    given, out = federation(tmp_path, 2, rounds=2500), tmp_path / "run"
    patient = ("--set", 'limits.on_absence="continue"', "--set", "limits.absence_seconds=30")
    with server(given.config, out, *patient) as running, clients(running.address, given) as running_clients:
        until(lambda: rounds_done(out) > 20)
        running_clients["c1"].kill()
        end(running_clients["c1"])
        running_clients["c1"] = client(running.address, "c1", given.files[1])
        assert [end(one)[0] for one in running_clients.values()] == [0, 0]
        assert running.end() == 0
    assert_same_bytes(out, given.solve())


@pytest.mark.long
@pytest.mark.parametrize("policy", ["wait", "continue"])
def test_local_run_goes_on_without_a_dead_client_if_it_is_told_to(policy: str, tmp_path: Path) -> None:
    """Else it ends, and says how to go on: nobody would start the client again."""
    given, out = federation(tmp_path, 2, rounds=20_000), tmp_path / "run"
    limits = ("--set", f'limits.on_absence="{policy}"', "--set", "limits.absence_seconds=0.5")
    process = popen("run", given.config, "--out", out, *limits)
    until(lambda: rounds_done(out) > 20)
    os.kill(children(process.pid)[1], signal.SIGKILL)
    code, _, said = end(process)
    assert "client-0002 was killed by SIGKILL" in said
    if policy == "continue":
        assert (code, list(dropped(out))) == (0, ["client-0002"])
    else:
        assert (code, f"resume with fism run --resume {out}" in said) == (4, True)


def test_change_of_clients_survives_the_server(tmp_path: Path) -> None:
    """Killed after the run went on without one, it is resumed without it, to the same bytes."""
    given, out = federation(tmp_path, 3, rounds=3000), tmp_path / "run"
    with server(given.config, out, *CONTINUE) as running:
        address = running.address
        with clients(address, given) as running_clients:
            until(lambda: rounds_done(out) > 20)
            running_clients["c0"].kill()
            running.wait_for("dropped: absent")
            running.process.kill()
            with resumed(out, "--set", "limits.absence_seconds=30", listen=address) as again:
                code, _, said = end(client(address, "c0", given.files[0]))
                assert code == 3
                assert "it was dropped" in said
                assert [end(running_clients[name])[0] for name in ("c1", "c2")] == [0, 0]
                assert again.end() == 0
    assert_ends_as(out, without(given, {0: dropped(out)["c0"]}))


def test_run_whose_clients_never_come_stops_after_its_start_limit(tmp_path: Path) -> None:
    """With who is missing, and what to do; nothing of the run has begun."""
    given, out = federation(tmp_path, 3), tmp_path / "run"
    with server(given.config, out, "--set", "limits.start_seconds=5") as running:
        one = Double(running.address, "c0", given.files[0])
        one.open()
        assert not one.finish().finished
        assert running.end() == 4
        running.wait_for(r"not all clients joined in 5 s \(limits.start_seconds\), missing: 2 more; start a new run")
        one.close()
    assert not (out / "model.npz").exists()


def test_run_without_anybody_left_stops(tmp_path: Path) -> None:
    """There is nothing to go on with; the state is saved."""
    given, out = federation(tmp_path, 1, rounds=100_000), tmp_path / "run"
    with server(given.config, out, *CONTINUE) as running, clients(running.address, given) as running_clients:
        until(lambda: rounds_done(out) > 20)
        running_clients["c0"].kill()
        assert running.end() == 4
        running.wait_for("error: c0 absent for over 0.5 s, and no client is left; continue with fism server --resume")
    assert dropped(out) == {}


def test_stopped_run_is_resumed_to_the_same_bytes(tmp_path: Path) -> None:
    """Exit code 4 at both ends, the state saved; with its clients back it goes on."""
    given, out = federation(tmp_path, 2, rounds=2500), tmp_path / "run"
    with server(given.config, out, *STOP) as running, clients(running.address, given) as running_clients:
        until(lambda: rounds_done(out) > 20)
        running_clients["c1"].kill()
        assert running.end() == 4
        running.wait_for("error: c1 absent for over 0.5 s, and limits.on_absence is stop; continue with")
        code, _, said = end(running_clients["c0"])
        assert code == 4
        assert "the server stopped the run: other clients are absent; ask its coordinator for details" in said
        assert "c1" not in said
    with (
        resumed(out, "--set", 'limits.on_absence="wait"') as running,
        clients(running.address, given) as running_clients,
    ):
        assert [end(one)[0] for one in running_clients.values()] == [0, 0]
        assert running.end() == 0
    assert_same_bytes(out, given.solve())
    assert [kind for kind, _ in events(out)] == ["lost", "stopped", "resumed", "returned", "returned"]


def test_client_that_is_put_out_is_not_waited_for(tmp_path: Path) -> None:
    """With "continue" the run goes on at once, however long an absence may be."""
    given, out = federation(tmp_path, 2), tmp_path / "run"
    patient = ("--set", 'limits.on_absence="continue"', "--set", "limits.absence_seconds=1000")
    with server(given.config, out, *patient) as running:
        honest, double = client(running.address, "c0", given.files[0]), Double(running.address, "c1", given.files[1])
        double.open()
        double.answer_until(5)
        for _ in range(3):
            double.send(b"\xff")
        assert (end(honest)[0], running.end()) == (0, 0)
        double.close()
    assert_ends_as(out, without(given, {1: 5}))


def test_client_lost_in_the_closing_exchange_leaves_the_model_as_it_is(tmp_path: Path) -> None:
    """F at the answer is then of those who are left."""
    given, out = federation(tmp_path, 2), tmp_path / "run"
    with server(given.config, out, *CONTINUE) as running:
        honest, double = client(running.address, "c0", given.files[0]), Double(running.address, "c1", given.files[1])
        double.open()
        while (asked := double.receive().question).kind == pb.Question.PASS:
            double.send(double.right_answer(asked))
        double.close()
        assert (end(honest)[0], running.end()) == (0, 0)
    expected = given.solve()
    with np.load(out / "model.npz") as model:
        for name in ("x", "weighted", "average"):
            assert model[name].tobytes() == getattr(expected, name).tobytes(), name
    assert json.loads((out / "summary.json").read_text())["inner"] < expected.inner


def test_model_that_had_settled_stays_when_the_closing_exchange_is_resumed(tmp_path: Path) -> None:
    """The stop rule is not asked again: F may be of fewer clients by then."""
    given, out = federation(tmp_path, 2, rounds=500), tmp_path / "run"
    with server(given.config, out, *CONTINUE, "--set", "stop.tolerance=0.01") as running:
        doubles = [Double(running.address, f"c{i}", given.files[i]) for i in range(2)]
        for one in doubles:
            one.open()
        while (asked := doubles[0].receive().question).kind == pb.Question.PASS:
            for question, one in zip((asked, doubles[1].receive().question), doubles, strict=True):
                one.send(one.right_answer(question))
        doubles[1].close()
        running.wait_for("dropped: absent")
        running.process.kill()
        doubles[0].close()
    rounds = rounds_done(out) - 1
    assert rounds < 400
    with resumed(out, "--set", "limits.absence_seconds=30") as running:
        assert end(client(running.address, "c0", given.files[0]))[0] == 0
        assert running.end() == 0
    expected = given.solve(rounds=rounds)
    with np.load(out / "model.npz") as model:
        for name in ("x", "weighted", "average"):
            assert model[name].tobytes() == getattr(expected, name).tobytes(), name


def test_answer_to_an_abandoned_attempt_is_not_used(tmp_path: Path) -> None:
    """It is late, and no offence: the client could not know."""
    given, out = federation(tmp_path, 2), tmp_path / "run"
    with server(given.config, out, *CONTINUE) as running:
        double, other = (Double(running.address, f"c{i}", given.files[i]) for i in range(2))
        for one in (double, other):
            one.open()
        for _ in range(3):
            for one in (double, other):
                one.send(one.right_answer(one.receive().question))
        first = double.receive().question
        other.close()
        second = double.receive().question
        assert (second.round, second.attempt, second.x, second.h) == (4, 2, first.x, first.h)
        assert second.weight == first.weight * 10 / 3
        double.send(double.right_answer(first))
        double.send(double.right_answer(second))
        assert double.finish().finished
        assert running.end() == 0
        double.close()
    assert_ends_as(out, without(given, {1: 4}))
    assert [kind for kind, _ in events(out)] == ["lost", "dropped", "late"]


@pytest.mark.long
def test_waiting_is_said_every_thirty_seconds(tmp_path: Path) -> None:
    """The default: the run waits, long after `absence`, and says for whom and for how long."""
    given, out = federation(tmp_path, 2, rounds=100_000), tmp_path / "run"
    with (
        server(given.config, out, "--set", "limits.absence_seconds=0.5") as running,
        clients(running.address, given) as running_clients,
    ):
        until(lambda: rounds_done(out) > 20)
        running_clients["c0"].kill()
        running.wait_for(r"^waiting for c0, [12] s$")
        running.wait_for(r"^waiting for c0, 3\d s$", seconds=40)
        running.wait_for(r"^waiting for c0, 6\d s$", seconds=40)
        assert running.process.poll() is None
        assert events(out) == [("lost", "c0")]  # and c1 has waited for the others, pinging, without being sent away


def test_events_are_told(tmp_path: Path) -> None:
    """By `fism events`, as text and as JSON, and counted in the summary."""
    given, out = federation(tmp_path, 2, rounds=2500), tmp_path / "run"
    with server(given.config, out) as running, clients(running.address, given) as running_clients:
        until(lambda: rounds_done(out) > 20)
        running_clients["c1"].kill()  # from here on the run waits, however long the others take
        end(running_clients["c1"])
        assert end(client(running.address, "x", given.files[0]))[0] == 3
        running_clients["c1"] = client(running.address, "c1", given.files[1])
        assert [end(one)[0] for one in running_clients.values()] == [0, 0]
        assert running.end() == 0
    told = json.loads(fism_command("events", out, "--json").stdout)
    assert [(one["kind"], one["client"]) for one in told] == [("lost", "c1"), ("refused", "x"), ("returned", "c1")]
    assert all(20 <= one["round"] <= 2500 for one in told)
    text = fism_command("events", out).stdout
    assert "refused   x: the run has its 2 clients, and 'x' is not one of them" in text
    assert json.loads((out / "summary.json").read_text())["events"] == {"lost": 1, "refused": 1, "returned": 1}
    done = fism_command("events", tmp_path)
    assert (done.returncode, "there is no run in" in done.stderr) == (2, True)


@pytest.mark.parametrize("policy", ["wait", "continue", "stop"])
def test_every_policy_can_be_configured(policy: str, tmp_path: Path) -> None:
    """And none of them disturbs a run in which nothing happens."""
    given = federation(tmp_path, 1)
    done = fism_command("run", given.config, "--out", tmp_path / "run", "--set", f'limits.on_absence="{policy}"')
    assert done.returncode == 0, done.stderr
