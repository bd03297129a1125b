"""A new process: the time to its first result, and whether it compiles kernels again."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from timing import Ratio, best_of

if TYPE_CHECKING:
    from collections.abc import Iterator

FIRST_RESULT = """
import numpy as np, fism
problem = fism.Problem("logistic", fism.Box(-1, 1), fism.SquaredNorm())
fism.solve(problem, [(np.eye(3) * 0.3, [1, -1, 1])], steps=fism.PowerSteps(1, 0.8, 1, 0.1), rounds=3)
"""
COUNT_COMPILATIONS = """
from fism_client import kernels
dispatchers = [kernel for kernel in vars(kernels).values() if hasattr(kernel, "stats")]
print(sum(sum(kernel.stats.cache_misses.values()) for kernel in dispatchers))
"""


def run(code: str) -> str:
    """Return what ``code`` prints in a new Python process."""
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout


def startup() -> Iterator[Ratio]:
    """Yield the ratio of times, and the number of kernels that a second process compiles."""
    run(FIRST_RESULT)
    times = best_of(7, ours=lambda: run(FIRST_RESULT), imports=lambda: run("import numba, scipy.sparse"))
    found = times["ours"] / times["imports"]
    yield Ratio("first result over importing numba and scipy.sparse, warm cache", found, 2.5, most=True)
    yield Ratio("kernels compiled by a second process", float(run(FIRST_RESULT + COUNT_COMPILATIONS)), 0, most=True)
