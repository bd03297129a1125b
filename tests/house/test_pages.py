"""A stranger succeeds: every command block of the README and of the tutorial works, on a fresh clone."""

from __future__ import annotations

import json
import re
import socket
import subprocess
from pathlib import Path

import numpy as np
import pytest

from .terminals import blocks, follow

ROOT = Path(__file__).parents[2]
SECONDS = 400.0


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Return a clone of what is committed."""
    if subprocess.run(["git", "diff", "--quiet", "HEAD"], cwd=ROOT, check=False).returncode:
        pytest.fail("commit first: a clone has what is committed")
    subprocess.run(["git", "clone", "--quiet", "--local", ROOT, tmp_path / "fism"], check=True)
    return tmp_path / "fism"


def own_port() -> dict[str, str]:
    """Return another address for the one in the pages."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    return {"127.0.0.1:50051": f"127.0.0.1:{port}", "fism server ": f"fism server --listen 127.0.0.1:{port} "}


@pytest.mark.long
def test_readme_s_commands_work(clone: Path) -> None:
    """But for `make test`, which runs this, and which CI calls on a clone of its own."""
    assert re.search(r"^make .*\btest\b", (ROOT / ".ci/run").read_text(), re.MULTILINE)
    replace = {key: new for key, new in own_port().items() if key[0].isdigit()} | {"make test": "true"}
    said = follow(clone / "README.md", clone, replace, SECONDS)
    assert "with the preference" in said
    summary = json.loads((clone / "tables/run/summary.json").read_text())
    assert summary["rounds"] == 2000
    assert (clone / "tables/run/report.html").exists()


@pytest.mark.long
def test_tutorial_works(clone: Path) -> None:
    """From nothing to two models: its server is given a port of our own."""
    said = follow(clone / "docs/tutorial.md", clone, own_port(), SECONDS)
    assert "watch it at http://127.0.0.1:" in said
    runs = {name: json.loads((clone / f"tutorial/{name}/summary.json").read_text()) for name in ("run", "sparse")}
    assert [run["rounds"] for run in runs.values()] == [1000, 1000]
    assert runs["sparse"]["inner"] < 1.1 * runs["run"]["inner"]  # what the page says of them
    assert [run["held_out"]["right"] >= 92 for run in runs.values()] == [True, True]
    with np.load(clone / "tutorial/sparse/model.npz") as model:
        assert np.count_nonzero(np.abs(model["x"]) > 0.01) <= 24  # of 31
    assert (clone / "tutorial/scores.csv").read_text().count("\n") > 50


def test_pages_have_no_command_that_is_not_run() -> None:
    """Commands stand in blocks of sh; an indented one would be run by nobody."""
    for page in ("README.md", "docs/tutorial.md"):
        text = (ROOT / page).read_text()
        assert blocks(ROOT / page)
        outside = re.sub(r"(?s)```.*?```", "", text)
        assert not re.search(r"^ {4}(fism|make|python|pip|docker) ", outside, re.MULTILINE), page
