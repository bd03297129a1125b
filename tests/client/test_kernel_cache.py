"""Compiled kernels are kept between processes, and processes that start together do not spoil them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SOLVE = """
import sys, logging, numpy as np, fism
logging.basicConfig(format="%(message)s")
dtype = sys.argv[1]
rows = (np.arange(12).reshape(4, 3) % 3).astype(dtype)
rows = rows if dtype == "uint8" else rows / (3 if dtype == "float64" else 4)
problem = fism.Problem("squared", fism.Box(-1, 1), fism.SquaredNorm())
result = fism.solve(problem, [(rows, np.ones(4))], steps=fism.PowerSteps(0.1, 0.7, 1, 0.2), rounds=3)
from fism_client.kernels import dense_pass
print(sum(dense_pass.stats.cache_misses.values()), result.x.tobytes().hex())
"""


BITS = """
import sys, hashlib, numpy as np, scipy.sparse as sp, fism
rng = np.random.default_rng(0)
digest = hashlib.sha256()
for make in (np.array, sp.csr_array):
    for constraint in (fism.Box(-1, 1), fism.Box(-np.ones(7), 1), fism.Ball(1.0), fism.Simplex(), fism.L1Ball(2.0)):
        for loss in ("logistic", "absolute", "ball-distance"):
            for method in ("fism", "ir-ig", "r-fedavg") if loss == "logistic" else ("fism",):
                problem = fism.Problem(loss, constraint, fism.ElasticNet(0.0, 1.0))
                shards = [(make(rng.normal(size=(9, 7))), np.ones(9)) for _ in range(2)]
                steps = fism.PowerSteps(0.1, 0.7, 1.0, 0.2)
                result = fism.solve(problem, shards, steps=steps, rounds=5, method=method)
                digest.update(result.x.tobytes() + result.history["inner"].tobytes())
print(digest.hexdigest())
"""


def start(cache: Path, dtype: str = "float64") -> subprocess.Popen[str]:
    """Start a process that solves something small, with its kernels kept under ``cache``."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, "-c", SOLVE, dtype], env=environment, stdout=pipe, stderr=pipe, text=True)


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Return how many kernels were compiled, the result's bytes, and what was said."""
    out, err = process.communicate(timeout=100)
    assert process.returncode == 0, err
    compiled, result = out.split()
    return int(compiled), result, err


def test_second_process_does_not_compile(tmp_path: Path) -> None:
    """It loads what the first one kept, and gets the same bytes."""
    first, second = finish(start(tmp_path)), finish(start(tmp_path))
    assert (first[0], second[0]) == (1, 0)
    assert first[1] == second[1]


@pytest.mark.long
def test_processes_that_compile_at_once_leave_a_sound_cache(tmp_path: Path) -> None:
    """Three types of rows, two processes each, all at the same time; then each again, from the cache."""
    types = ["float64", "float32", "uint8"] * 2
    at_once = [finish(process) for process in [start(tmp_path, dtype) for dtype in types]]
    assert sum(compiled for compiled, _, _ in at_once) == 3
    again = [finish(process) for process in [start(tmp_path, dtype) for dtype in types]]
    assert [(compiled, result) for compiled, result, _ in again] == [(0, result) for _, result, _ in at_once]


def test_cache_folder_that_cannot_be_made_is_said_and_done_without(tmp_path: Path) -> None:
    """A file stands where the folder should be: kernels are compiled anew, and the log says how to change that."""
    in_the_way = tmp_path / "file"
    in_the_way.touch()
    compiled, _, log = finish(start(in_the_way))
    assert compiled == 1
    assert "set NUMBA_CACHE_DIR" in log


def test_user_without_a_home_can_run(tmp_path: Path) -> None:
    """As in a container with a user that nobody made: kernels are compiled anew, and nothing of them is left."""
    command = [sys.executable, "-c", f"import pathlib\npathlib.Path.home = lambda: 1 / 0\n{SOLVE}", "float64"]
    command[2] = command[2].replace("1 / 0", "(_ for _ in ()).throw(RuntimeError('no home'))")
    environment = {key: value for key, value in os.environ.items() if key not in {"NUMBA_CACHE_DIR", "XDG_CACHE_HOME"}}
    done = subprocess.run(
        command, env={**environment, "TMPDIR": str(tmp_path)}, capture_output=True, text=True, check=True
    )
    assert "no home" in done.stderr
    assert list(tmp_path.glob("fism-kernels-*")) == []


@pytest.mark.long
def test_process_that_compiles_gets_the_bits_of_those_that_load(tmp_path: Path) -> None:
    """Every kernel: a helper that is not inlined would be another copy of its code in each of the two."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", BITS]
    compiled, loaded = (
        subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout for _ in range(2)
    )
    assert compiled == loaded
