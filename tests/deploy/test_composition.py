"""`docker compose up` is a federation: it ends by itself, with the bytes of one process, whatever happens."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from docker.models.images import Image

from ..federation.harness import events, rounds_done, until
from .composition import CLIENTS, SERVICES, Composition, model
from .conftest import tell

pytestmark = [pytest.mark.docker, pytest.mark.timeout(400)]

ROUNDS = 10_000


@pytest.fixture(scope="module")
def expected(composition: Composition) -> list[bytes]:
    """Return the model of the runs that are disturbed, as one process finds it."""
    composition.up("certs", "shards")
    return composition.solve(ROUNDS)


def test_composition_ends_with_a_model_on_the_host(composition: Composition, request: pytest.FixtureRequest) -> None:
    """With no preparation: every container at exit code 0, and the bytes of `fism.solve` in the same image."""
    began = time.monotonic()
    composition.up()
    tell(request, f"docker compose up: {time.monotonic() - began:.0f} s, its images at hand")
    assert composition.exit_codes() == dict.fromkeys(SERVICES, 0)
    (out,) = composition.runs()
    summary = json.loads((out / "summary.json").read_text())
    assert summary["rounds"] == 2000
    assert (out / "report.html").exists()
    assert model(out) == composition.solve(2000)


def client_killed(composition: Composition, out: Path) -> None:
    """Kill a client, and start it again."""
    composition.container("east").kill()
    until(lambda: ("lost", "east") in events(out))
    composition.container("east").start()
    until(lambda: ("returned", "east") in events(out))


def client_cut_off(composition: Composition, out: Path) -> None:
    """Cut a client from its network until the server has noticed, and join it again."""
    network = composition.engine.networks.get(f"{composition.image}_federation")
    network.disconnect(composition.container("west"))
    until(lambda: ("lost", "west") in events(out))
    network.connect(composition.container("west"))
    until(lambda: ("returned", "west") in events(out), 60)


def server_killed(composition: Composition, out: Path) -> None:
    """Kill the server, and start its container again: it goes on with the run in its volume."""
    composition.container("server").kill()
    composition.container("server").start()
    until(lambda: ("resumed", "") in events(out))


@pytest.mark.parametrize("fault", [client_killed, client_cut_off, server_killed])
def test_fault_of_a_container_changes_no_byte(
    composition: Composition, expected: list[bytes], fault: Callable[[Composition, Path], None]
) -> None:
    """All end with exit code 0, in one run."""
    out = composition.begin(ROUNDS)
    fault(composition, out)
    assert rounds_done(out) < ROUNDS
    assert composition.exit_codes() == dict.fromkeys(SERVICES, 0)
    assert composition.runs()[-1] == out
    assert model(out) == expected


@pytest.fixture(scope="module")
def live(composition: Composition) -> Composition:
    """Return the composition in the middle of a run without end."""
    composition.begin(10**9)
    return composition


def test_client_holds_its_own_shard_and_key_alone(live: Composition, image: Image) -> None:
    """All that a client's container has beyond the image, which is the same for all."""
    for name in CLIENTS:
        held = live.run(name, "find", "/data", "/certs", "-type", "f").split()
        assert sorted(held) == ["/certs/ca.pem", f"/certs/{name}.key", f"/certs/{name}.pem", "/data/shard.csv"]
        assert mounts(live, name) == {("/data", False), ("/certs", False)}
        assert written(live, name) <= {"/data", "/certs"}
        assert set(live.container(name).attrs["Config"]["Env"]) == set(image.attrs["Config"]["Env"])
        assert shards_and_objectives(live, name) == {"/data/shard.csv"}


def test_server_holds_no_shard(live: Composition) -> None:
    """The configuration, its own key, and the runs."""
    held = live.run("server", "find", "/config", "/certs", "-type", "f").split()
    assert sorted(held) == ["/certs/ca.pem", "/certs/server.key", "/certs/server.pem", "/config/hospitals.toml"]
    runs = live.run("server", "find", "/runs", "-type", "f", "-printf", "%f\n").split()
    assert {name.removesuffix("-wal").removesuffix("-shm") for name in runs} <= {
        "config.json",
        "model.json",
        "model.npz",
        "report.html",
        "run.sqlite",
        "summary.json",
    }
    assert mounts(live, "server") == {("/config/hospitals.toml", False), ("/certs", False), ("/runs", True)}
    assert written(live, "server") <= {"/config", "/config/hospitals.toml", "/certs", "/runs"}
    models = {f"/runs/{out.name}/model.npz" for out in live.runs()}
    assert shards_and_objectives(live, "server") <= {"/config/hospitals.toml", *models}


def mounts(live: Composition, service: str) -> set[tuple[str, bool]]:
    """Return what is mounted in a container, and whether it can be written to there."""
    return {(mount["Destination"], mount["RW"]) for mount in live.container(service).attrs["Mounts"]}


def shards_and_objectives(live: Composition, service: str) -> set[str]:
    """Return all that looks like rows or like the federation's configuration, wherever it is."""
    not_there = "-path /proc -prune -o -path '*/site-packages/scipy' -prune"  # which has tables of its own
    names = " -o ".join(f"-name '{name}' -print" for name in ("*.npz", "shard.csv", "hospitals.*"))
    look = f"find / {not_there} -o {names} 2>/dev/null; true"
    return set(live.run(service, "sh", "-c", look).split())


def written(live: Composition, service: str) -> set[str]:
    """Return the files and folders in which a container's own file system differs from the image."""
    return {str(change["Path"]) for change in live.container(service).diff() or []}


@pytest.mark.parametrize("service", ["server", *CLIENTS])
def test_container_is_confined(live: Composition, service: str) -> None:
    """No root, no capability, no file system to write to, no compiler, a limit of memory."""
    assert live.run(service, "id", "-u").strip() == "10001"
    capabilities = [line for line in live.run(service, "cat", "/proc/1/status").splitlines() if line.startswith("Cap")]
    assert {line.split()[1] for line in capabilities} == {"0" * 16}
    for folder in ("/opt/fism", "/etc", "/"):
        code, said = live.container(service).exec_run(["touch", f"{folder}/x"])
        assert code != 0
        assert b"Read-only file system" in said
    for compiler in ("cc", "gcc", "clang"):
        assert live.container(service).exec_run(["sh", "-c", f"command -v {compiler}"])[0] != 0
    assert live.container(service).attrs["HostConfig"]["Memory"] > 0


@pytest.mark.parametrize("name", CLIENTS)
def test_client_compiles_nothing(live: Composition, name: str) -> None:
    """In the middle of the rounds its kernels are those that the image brought."""
    assert live.run(name, "ls", "/tmp").split() == ["fism-kernels"]  # noqa: S108  # the container's
    live.run(name, "diff", "-r", "/opt/fism/kernels", "/tmp/fism-kernels")  # noqa: S108


def test_server_is_healthy(live: Composition) -> None:
    """By the image's own check."""
    until(lambda: live.container("server").attrs["State"]["Health"]["Status"] == "healthy")


def test_container_that_is_told_to_end_does_so_at_once(live: Composition) -> None:
    """`docker stop`: a client says goodbye, a server saves its state; nobody waits for the kill."""
    for service in ("north", "server"):
        live.container(service).stop(timeout=30)
        assert live.container(service).wait()["StatusCode"] == 130
    assert ("left", "north") in events(live.runs()[-1])
