"""A Docker engine, the image built from this tree, and compositions of it."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest
from docker.errors import DockerException
from docker.models.images import Image

from ..unavailable import unavailable
from .composition import Composition

ROOT = Path(__file__).parents[2]
NAME = "fism-test"
BASE = os.environ.get("FISM_BASE", "python:3.11-slim-bookworm")
_told = pytest.StashKey[list[str]]()


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
    began = time.monotonic()
    built, _ = engine.images.build(path=str(tree), tag=NAME, buildargs={"BASE": BASE}, rm=True)
    seconds = time.monotonic() - began
    size, base = (image.attrs["Size"] / 1e6 for image in (built, engine.images.get(BASE)))
    tell(request, f"the image: {size:.0f} MB, of which its base has {base:.0f}, built in {seconds:.0f} s")
    return built


def tell(request: pytest.FixtureRequest, line: str) -> None:
    """Keep a line for the end of the report."""
    request.config.stash.setdefault(_told, []).append(line)


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
    """Tell what was measured."""
    for line in terminalreporter.config.stash.get(_told, []):
        terminalreporter.write_line(line)
