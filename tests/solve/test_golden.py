"""Runs give the bits that were recorded."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts/golden.py"


@pytest.mark.golden
def test_runs_give_the_recorded_bytes() -> None:
    """All losses, sets, objectives, storages and methods, compiled for the CPU target of the container image."""
    done = subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True, timeout=110, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
