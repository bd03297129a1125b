"""The commands as a person uses them."""

from __future__ import annotations

import json
import re
import socket
import sqlite3
from pathlib import Path

import grpc
import numpy as np
import pytest

import fism
from fism_common.wire.pb import federation_pb2 as pb
from fism_common.wire.pb import federation_pb2_grpc as rpc

from .harness import STEPS, client, end, federation, fism_command, popen, server


def test_any_key_can_be_overridden(tmp_path: Path) -> None:
    """--set puts a value over the file's."""
    given = federation(tmp_path, 1)
    done = fism_command("run", given.config, "--out", tmp_path / "run", "--json", "--set", "stop.rounds=4")
    assert json.loads(done.stdout)["rounds"] == 4


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("steps.gamma=fast", r"run.toml: steps: the step gamma must be a number, not 'fast'"),
        ("steps.gamma=-1", r"run.toml: steps: the step gamma must be above 0"),
        (
            "steps.delta=1",
            r"run.toml: steps: the step rule 'power' has no parameter 'delta'; it takes gamma, a, lambda, b",
        ),
        ("federation.clients=0", r"run.toml: federation.clients.*greater than 0"),
        ('federation.clients=["a","a"]', r"must not name the same client twice"),
        ('federation.start="middle"', r'federation.start: must be "zero", "random" or the path of an .npy file'),
        ('inner.constraint={kind="box",lo=2,hi=-2}', r"inner.constraint: the box is empty"),
        ("inner.constraint={}", r"inner.constraint.kind: is missing"),
        ('inner.constraint="cone"', r"inner.constraint: there is no constraint 'cone'; there are box, ball, simplex"),
        ('inner.constraint={kind="box",lo=0}', r"inner.constraint: the constraint 'box' needs the parameter 'hi'"),
        ('method="ir-ig"', r"method: a server cannot run 'ir-ig': it evaluates H where the rows are; use fism.solve"),
        ('method="sgd"', r"method: there is no method 'sgd'; there are fism"),
        ('participation="sample"', r"participation: there is no participation 'sample'; there are all"),
        ('aggregation={kind="open",least=3}', r"aggregation: the aggregation 'open' has no parameter least"),
        ('pass.order="shuffled"', r"pass.order: .*'fixed'"),
        (
            'inner.constraint={kind="ball",radius=1,center="none.npy"}',
            r"inner.constraint: center: cannot read .*none.npy",
        ),
        ('inner.loss="logit"', r"inner.loss: there is no loss 'logit'; there are logistic"),
        ('inner.loss={kind="huber",tau=1}', r"inner.loss: the loss 'huber' has no parameter 'tau'"),
        ('outer.kind="l2"', r"outer: there is no objective 'l2'; there are squared-norm"),
        ("outer.l3=1", r"outer: the objective 'elastic-net' has no parameter 'l3'; it takes l1, l2"),
        ("outer.l2=0", r"outer: l2 .*strongly convex.* must be above 0"),
        ("stop.rounds=0", r"run.toml: stop.rounds: .*greater than 0"),
        ('limits.on_absence="never"', r"limits.on_absence: .*'wait'.*'never'"),
        ("local.shards=[]", r"local.shards: .*at least 1"),
        ('local.shards=["none.npz"]', r"local.shards: there is no file .*none.npz"),
        ("steps", r"--set needs KEY=VALUE"),
    ],
)
def test_wrong_configuration_is_refused_with_file_key_and_what_is_allowed(
    override: str, message: str, tmp_path: Path
) -> None:
    """Exit code 2, before anything is started."""
    given = federation(tmp_path, 1)
    done = fism_command("run", given.config, "--out", tmp_path / "run", "--set", override)
    assert done.returncode == 2, done.stderr
    assert re.search(message, done.stderr), done.stderr
    assert "Traceback" not in done.stderr


def test_file_that_is_not_toml_is_refused(tmp_path: Path) -> None:
    """With the place of the mistake."""
    config = tmp_path / "run.toml"
    config.write_text("[federation\n")
    done = fism_command("server", config)
    assert done.returncode == 2
    assert "is not valid TOML" in done.stderr
    assert "line 1" in done.stderr


def test_start_and_bounds_come_from_files_beside_the_configuration(tmp_path: Path) -> None:
    """Relative paths are relative to the file; vectors of X reach the clients in slices."""
    given = federation(tmp_path, 2, n=5)
    lo, hi, start = -np.linspace(1, 2, 5), np.linspace(0.5, 3, 5), np.full(5, 0.25)
    for name, vector in (("lo", lo), ("hi", hi), ("start", start)):
        np.save(tmp_path / f"{name}.npy", vector)
    box = 'inner.constraint={kind="box",lo="lo.npy",hi="hi.npy"}'
    done = fism_command(
        "run", given.config, "--out", tmp_path / "run", "--set", box, "--set", 'federation.start="start.npy"', "-q"
    )
    assert (done.returncode, done.stderr) == (0, "")
    problem = fism.Problem("logistic", fism.Box(lo, hi), fism.ElasticNet(0.25, 1.5))
    expected = fism.solve(problem, given.pairs, steps=STEPS, rounds=given.rounds, start=start)
    with np.load(tmp_path / "run/model.npz") as model:
        assert model["x"].tobytes() == expected.x.tobytes()


OWN = """
import numpy as np
import fism
smooth_absolute = fism.CustomLoss(
    "smooth-absolute", lambda z, b: (1 + (z - b) ** 2) ** 0.5, lambda z, b: (z - b) / (1 + (z - b) ** 2) ** 0.5
)
class Scaled(fism.OuterObjective):
    smooth = True
    def __init__(self, scale):
        self.modulus = float(scale)
    modulus = 1.0
    def value(self, x):
        return self.modulus * float(np.sum(x * x)) / 2
    def subgradient(self, x):
        return self.modulus * x
"""


def test_own_loss_and_outer_objective_come_from_a_local_file(tmp_path: Path) -> None:
    """The loss's name travels, its code does not; of the objective not even the name does."""
    given = federation(tmp_path, 2)
    (tmp_path / "mine.py").write_text(OWN)
    text = given.config.read_text().replace('"logistic"', '"mine:smooth_absolute"')
    text = text.replace('kind = "elastic-net"\nl1 = 0.25\nl2 = 1.5', 'kind = "mine:Scaled"\nscale = 2.0')
    given.config.write_text(text)
    done = fism_command("run", given.config, "--out", tmp_path / "run", "--json")
    assert done.returncode == 0, done.stderr

    with server(given.config, tmp_path / "other") as running:
        code, _, said = end(client(running.address, "a", given.files[0]))
    assert code == 3
    assert "'mine:smooth_absolute' is not built in" in said


def test_client_can_be_configured_by_a_file_and_keep_the_solution(tmp_path: Path) -> None:
    """Options are put over the file; paths in it are relative to it."""
    given = federation(tmp_path, 1)
    with server(given.config, tmp_path / "run") as running:
        settings = tmp_path / "client.toml"
        settings.write_text('server = "127.0.0.1:1"\nname = "a"\ndata = "shard-0.npz"\nsave = "mine.npz"\n')
        assert end(popen("client", settings, "--server", running.address))[0] == 0
        assert running.end() == 0
    with np.load(tmp_path / "mine.npz") as mine:
        assert mine["x"].tobytes() == given.solve().x.tobytes()


def test_client_without_what_it_needs_is_told_so() -> None:
    """Each missing option by name."""
    done = fism_command("client", "--server", "127.0.0.1:1")
    assert done.returncode == 2
    assert "name: is missing" in done.stderr
    done = fism_command("client", "--server", "127.0.0.1:1", "--name", "a")
    assert done.returncode == 2
    assert "give either data (a file) or query (SQL)" in done.stderr


def test_rows_held_out_are_not_trained_on_and_are_counted(tmp_path: Path) -> None:
    """M counts training rows; right and wrong of all clients are added up."""
    given = federation(tmp_path, 3)
    held = ("--set", "local.holdout=0.34", "--set", "evaluation.every=5")
    done = fism_command("run", given.config, "--out", tmp_path / "run", "--json", *held)
    summary = json.loads(done.stdout)
    assert [one["rows"] for one in summary["clients"]] == [2, 5, 7]
    assert summary["held_out"]["rows"] == 1 + 2 + 4
    assert 0 <= summary["held_out"]["right"] <= 7
    with sqlite3.connect(tmp_path / "run/run.sqlite") as database:
        evaluations = database.execute("SELECT round, rows FROM evaluations").fetchall()
    database.close()
    assert evaluations == [(5, 7), (10, 7)]


def test_health_is_told_on_both_ports(tmp_path: Path) -> None:
    """A port for health checks alone can be asked for; nobody there is exit code 4."""
    given = federation(tmp_path, 1)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        alone = f"127.0.0.1:{free.getsockname()[1]}"
    with server(given.config, tmp_path / "run", "--health", alone) as running:
        assert fism_command("health", running.address).stdout == "serving\n"
        assert fism_command("health", alone).stdout == "serving\n"
        with grpc.insecure_channel(alone) as channel, pytest.raises(grpc.RpcError, match="UNIMPLEMENTED"):
            rpc.FederationStub(channel).Status(pb.StatusRequest(), timeout=10)
    done = fism_command("health", running.address, "--timeout", "2")
    assert done.returncode == 4
    assert f"no answer from {running.address}" in done.stderr


def test_tolerance_ends_a_federation_as_it_ends_solve(tmp_path: Path) -> None:
    """The same round, the same answer."""
    given = federation(tmp_path, 2)
    tolerance = ("--set", "stop.rounds=500", "--set", "stop.tolerance=0.01")
    done = fism_command("run", given.config, "--out", tmp_path / "run", "--json", *tolerance)
    summary = json.loads(done.stdout)
    problem = fism.Problem("logistic", fism.Box(-2, 2), fism.ElasticNet(0.25, 1.5))
    start = np.random.default_rng(7).uniform(np.full(5, -2.0), np.full(5, 2.0))
    expected = fism.solve(problem, given.pairs, steps=STEPS, rounds=500, start=start, tolerance=0.01)
    assert (summary["rounds"], summary["stopped"]) == (expected.rounds, "tolerance")
    with np.load(tmp_path / "run/model.npz") as model:
        assert model["x"].tobytes() == expected.x.tobytes()
