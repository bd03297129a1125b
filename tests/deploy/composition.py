"""The federation of docker-compose.yml, run as a user runs it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import docker
import numpy as np
from docker.models.containers import Container

from ..federation.harness import rounds_done, until
from ..unavailable import unavailable

CLIENTS = ["north", "east", "south", "west"]
SERVICES = ["certs", "shards", "server", *CLIENTS]

SOLVE = """
import sys
from pathlib import Path
import fism
from fism.pooled import pool
from fism_server.problem.plan import read_plan

shards = [f"/data/{name}/shard.csv" for name in sys.argv[2:]]
plan = read_plan(Path("/config/hospitals.toml"), [f"local.shards={shards!r}"])
train = list(pool(plan).train.values())
n = train[0].columns
problem = fism.Problem("logistic", plan.constraint, plan.objective(n))
found = fism.solve(problem, train, steps=plan.steps, rounds=int(sys.argv[1]), start=plan.start(n))
print(found.x.tobytes().hex(), found.weighted.tobytes().hex(), found.average.tobytes().hex())
"""


def _command() -> list[str]:
    """Return what composes here: Compose 2, or docker-compose."""
    if (
        shutil.which("docker")
        and subprocess.run(["docker", "compose", "version"], capture_output=True, check=False).returncode == 0
    ):
        return ["docker", "compose"]
    if shutil.which("docker-compose") is None:
        unavailable("there is neither `docker compose` nor `docker-compose`")
    return ["docker-compose"]


def compose(folder: Path, project: str, *arguments: str, **variables: str) -> None:
    """Run `docker compose` in a folder, with these variables in its environment."""
    done = subprocess.run(
        [*_command(), "--project-name", project, *arguments],
        cwd=folder,
        env={**os.environ, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    sys.stdout.write(done.stdout)  # shown if the test fails
    assert done.returncode == 0


def container(engine: docker.DockerClient, project: str, service: str) -> Container:
    """Return the container of a project's service, as it is now."""
    labels = [f"com.docker.compose.project={project}", f"com.docker.compose.service={service}"]
    (found,) = engine.containers.list(all=True, filters={"label": labels})
    return found


@dataclass(frozen=True)
class Composition:
    """A project of compose in a copy of this tree."""

    engine: docker.DockerClient
    folder: Path
    image: str

    def up(self, *arguments: str) -> None:
        """Run `docker compose up`."""
        self._compose("up", *arguments)

    def build(self) -> None:
        """Build the images, also where there are older ones."""
        self._compose("build")

    def down(self) -> None:
        """End and remove all, volumes too."""
        self._compose("down", "--volumes", "--timeout", "1")

    def _compose(self, *arguments: str) -> None:
        compose(self.folder, self.image, *arguments, FISM_IMAGE=self.image)

    def begin(self, rounds: int) -> Path:
        """Start a new run of so many rounds; return its folder once some are done."""
        config = self.folder / "examples/hospitals/hospitals.toml"
        lines = [
            f"rounds = {rounds}" if line.startswith("rounds =") else line for line in config.read_text().splitlines()
        ]
        config.write_text("\n".join(lines))
        before = self.runs()
        self.up("--detach")
        until(lambda: len(self.runs()) > len(before))
        out = self.runs()[-1]
        until(lambda: rounds_done(out) > 1)
        return out

    def runs(self) -> list[Path]:
        """Return the folders of all runs, the newest last."""
        return sorted((self.folder / "runs").glob("hospitals-*"))

    def container(self, service: str) -> Container:
        """Return a service's container, as it is now."""
        return container(self.engine, self.image, service)

    def exit_codes(self) -> dict[str, int]:
        """Wait for all containers to end; return how each did."""
        return {service: self.container(service).wait(timeout=120)["StatusCode"] for service in SERVICES}

    def run(self, service: str, *command: str) -> str:
        """Run a command in a service's container; return what it says."""
        code, said = self.container(service).exec_run(list(command))
        assert code == 0, said
        assert isinstance(said, bytes)
        return said.decode()

    def solve(self, rounds: int) -> list[bytes]:
        """Return what `fism.solve` makes of the same shards in the same image: x and the two means."""
        volumes = {f"{self.image}_{name}-data": {"bind": f"/data/{name}", "mode": "ro"} for name in CLIENTS}
        config = self.folder / "examples/hospitals/hospitals.toml"
        volumes[str(config)] = {"bind": "/config/hospitals.toml", "mode": "ro"}
        said = self.engine.containers.run(
            self.image, ["-c", SOLVE, str(rounds), *CLIENTS], entrypoint="python", volumes=volumes, remove=True
        )
        assert isinstance(said, bytes)
        return [bytes.fromhex(part) for part in said.decode().split()]


def model(out: Path) -> list[bytes]:
    """Return a run's x and its two means."""
    with np.load(out / "model.npz", allow_pickle=False) as found:
        return [found[name].tobytes() for name in ("x", "weighted", "average")]
