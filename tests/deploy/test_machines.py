"""The files for separate machines: a server, and sites that know its address, their name and their data."""

from __future__ import annotations

import ipaddress
import shutil
from collections.abc import Iterator
from pathlib import Path

import docker
import numpy as np
import pytest
from docker.models.images import Image

from ..federation.harness import federation, fism_command
from .composition import compose, container
from .conftest import NAME, ROOT

pytestmark = [pytest.mark.docker, pytest.mark.timeout(400)]

SITES = ["north", "south"]


def give(engine: docker.DockerClient, image: Image, owner: int, *paths: Path) -> None:
    """Change the owner of files, as `sudo chown` does."""
    volumes = {str(path): {"bind": f"/given/{i}", "mode": "rw"} for i, path in enumerate(paths)}
    engine.containers.run(
        image, ["-R", str(owner), "/given"], entrypoint="chown", user="root", volumes=volumes, remove=True
    )


@pytest.fixture
def host(engine: docker.DockerClient) -> str:
    """Return the address of this host that containers alone can reach."""
    (bridge,) = engine.networks.get("bridge").attrs["IPAM"]["Config"]
    return str(ipaddress.ip_network(bridge["Subnet"])[1])


@pytest.fixture
def machines(engine: docker.DockerClient, image: Image, host: str, tmp_path: Path) -> Iterator[Path]:
    """Return a folder with one of each machine, filled as docs/deploy.md says; what runs in them is ended."""
    authority = tmp_path / "authority"
    hosts = {"server": ["--host", host]}
    assert fism_command("certs", "init", "--folder", authority).returncode == 0
    for name in ["server", *SITES]:
        issue = ("certs", "issue", name, *hosts.get(name, []), "--folder", authority)
        assert fism_command(*issue).returncode == 0
        (tmp_path / name / "certs").mkdir(parents=True)
        for file in ("ca.pem", f"{name}.pem", f"{name}.key"):
            shutil.copy(authority / file, tmp_path / name / "certs")
        kind = "server" if name == "server" else "client"
        shutil.copy(ROOT / f"deploy/compose.{kind}.yml", tmp_path / name)
        give(engine, image, 10001, tmp_path / name / "certs" / f"{name}.key")
    for folder in ("config", "runs"):
        (tmp_path / "server" / folder).mkdir()
    give(engine, image, 10001, tmp_path / "server/runs")
    yield tmp_path
    for name in SITES:
        unused = {"SERVER": "x:1", "NAME": name, "DATA": "x"}
        compose(tmp_path / name, f"{NAME}-{name}", "-f", "compose.client.yml", "down", **unused)
    compose(tmp_path / "server", f"{NAME}-server", "-f", "compose.server.yml", "down")


def test_sites_need_an_address_a_name_and_their_data(
    engine: docker.DockerClient, host: str, machines: Path, tmp_path: Path
) -> None:
    """Server and sites in projects and networks of their own meet at one port of the server's host."""
    given = federation(tmp_path, 2, rounds=300, names=SITES)
    shutil.copy(given.config, machines / "server/config/run.toml")
    up = ("up", "--detach")
    project = f"{NAME}-server"
    compose(machines / "server", project, "-f", "compose.server.yml", *up, FISM_IMAGE=NAME, LISTEN=f"{host}:")
    published = container(engine, project, "server").ports["50051/tcp"] or []
    (port,) = (one["HostPort"] for one in published)
    for name in SITES:
        (machines / name / "data").mkdir()
        shutil.copy(given.file(name), machines / name / "data/shard.npz")
        told = {"SERVER": f"{host}:{port}", "NAME": name, "DATA": "shard.npz"}
        compose(machines / name, f"{NAME}-{name}", "-f", "compose.client.yml", *up, FISM_IMAGE=NAME, **told)
    for name in SITES:
        assert container(engine, f"{NAME}-{name}", "client").wait(timeout=60)["StatusCode"] == 0
    assert container(engine, project, "server").wait(timeout=60)["StatusCode"] == 0
    (out,) = (machines / "server/runs").iterdir()
    with np.load(out / "model.npz", allow_pickle=False) as model:
        np.testing.assert_allclose(model["x"], given.solve().x, rtol=1e-9)  # by kernels for another CPU
