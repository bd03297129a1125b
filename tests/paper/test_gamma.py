"""The location problem with other steps."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fism.paper import gamma
from fism.paper.contest import CONTESTANTS


def test_rounds_to_a_gap_and_to_the_stop_are_told_apart() -> None:
    """A step that is long enough comes near and stops; one that is far too short does neither."""
    long, short = (gamma.follow(500, 0, step) for step in (1.0, 0.001))
    least = min(long.inner.min(), short.inner.min())
    assert long.inner.size == gamma.ROUNDS + 1
    assert long.rounds_to(least * 0.5) is None
    reached = long.rounds_to(1.001 * least)
    assert reached is not None
    assert long.inner[reached] <= 1.001 * least < long.inner[reached - 1]
    assert long.stopped is not None
    assert reached < long.stopped
    assert short.rounds_to(1.001 * least) is short.stopped is None


@pytest.mark.long
def test_command_writes_one_best_step_for_each_method(tmp_path: Path) -> None:
    """In a table that is printed, and a plot."""
    command = [sys.executable, "-m", "fism.paper", "gamma", "--quick", "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "gamma.md").read_text() in done.stdout
    assert done.stdout.count(" True ") == len(CONTESTANTS)
    assert {"gamma.csv", "gamma.png", "gamma.svg"} <= {file.name for file in tmp_path.iterdir()}
