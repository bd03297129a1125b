"""Measure every claim of speed, as ratios in one run on one core, and fail if one does not hold."""

from __future__ import annotations

import sys

import passes
import startup
import timing


def main() -> None:
    """Print one line per claim."""
    timing.use_one_core()
    broken = 0
    for measure in (passes.dense_logistic, passes.ball_distance, passes.sparse_logistic, startup.startup):
        for ratio in measure():
            print(ratio, flush=True)
            broken += not ratio.holds
    if broken:
        sys.exit(f"{broken} claims of speed did not hold in this run")


if __name__ == "__main__":
    main()
