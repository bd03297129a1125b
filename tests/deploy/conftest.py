"""A Docker engine, the image built from this tree, and compositions of it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest
from docker.errors import DockerException
from docker.models.images import Image

from .composition import Composition, unavailable

ROOT = Path(__file__).parents[2]
NAME = "fism-test"
_sizes = pytest.StashKey[str]()


@pytest.fixture(scope="session")
def engine() -> Iterator[docker.DockerClient]:
    """Return the engine; without one the tests are skipped."""
    try:
        found = docker.from_env(timeout=300)
        found.ping()
    except DockerException as error:
        unavailable(f"there is no Docker engine: {error}")
    yield found
    found.close()


@pytest.fixture(scope="session")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the files under version control, as a fresh clone has them."""
    copy = tmp_path_factory.mktemp("clone")
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    for name in subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0"):
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, copy / name)
    return copy


@pytest.fixture(scope="session")
def image(engine: docker.DockerClient, tree: Path, request: pytest.FixtureRequest) -> Image:
    """Build the image, on the base that FISM_BASE names or on the official one."""
    base = {"BASE": os.environ["FISM_BASE"]} if "FISM_BASE" in os.environ else {}
    built, _ = engine.images.build(path=str(tree), tag=NAME, buildargs=base, rm=True)
    layers = [layer["Size"] for layer in built.history()]
    request.config.stash[_sizes] = f"{sum(layers) / 1e6:.0f} MB, of which we add {sum(layers[:-1]) / 1e6:.0f}"
    return built


@pytest.fixture(scope="session")
def composition(engine: docker.DockerClient, tree: Path, image: Image) -> Iterator[Composition]:  # noqa: ARG001  # is built
    """Return the composition in the copy; nothing of it is left at the end."""
    made = Composition(engine, tree, NAME)
    try:
        made.build()
        yield made
    finally:
        made.down()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Tell the image's size."""
    told = terminalreporter.config.stash.get(_sizes, None)
    if told is not None:
        terminalreporter.write_line(f"the image has {told}")
