"""Measure every speed claim, as ratios within one run; fail if one does not hold."""

from __future__ import annotations

import sys

import drawing
import exchange
import loading
import passes
import startup
import timing
import watching


def main() -> None:
    """Print one line per claim."""
    broken = 0
    on_all_cores = (loading.loading, exchange.exchange, watching.watching, drawing.drawing)
    on_one = (passes.dense_logistic, passes.ball_distance, passes.sparse_logistic, startup.startup)
    for measure in (*on_all_cores, *on_one):
        if measure in on_one:
            timing.use_one_core()
        for ratio in measure():
            print(ratio, flush=True)
            broken += not ratio.holds
    if broken:
        sys.exit(f"{broken} speed claims did not hold in this run")


if __name__ == "__main__":
    main()
