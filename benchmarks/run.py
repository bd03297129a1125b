"""Measure every claim of speed, as ratios in one run, and fail if one does not hold."""

from __future__ import annotations

import sys

import exchange
import passes
import startup
import timing


def main() -> None:
    """Print one line per claim."""
    broken = 0
    measures = (exchange.exchange, passes.dense_logistic, passes.ball_distance, passes.sparse_logistic, startup.startup)
    for measure in measures:
        if measure is not exchange.exchange:
            timing.use_one_core()
        for ratio in measure():
            print(ratio, flush=True)
            broken += not ratio.holds
    if broken:
        sys.exit(f"{broken} claims of speed did not hold in this run")


if __name__ == "__main__":
    main()
