"""Run a federation of four hospitals and show its benefit. Run with `make demo`."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import fism
import prepare

HERE = Path(__file__).parent


def main() -> None:
    """Prepare the tables, run the federation, compare the models."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        prepare.main(folder)
        shutil.copy(HERE / "hospitals.toml", folder)
        print("$ fism run hospitals.toml --out run\n", flush=True)
        subprocess.run(
            [sys.executable, "-m", "fism", "run", folder / "hospitals.toml", "--out", folder / "run"], check=True
        )
        with np.load(folder / "run/model.npz", allow_pickle=False) as model:
            together = model["x"]
        compare(folder, together)


def compare(folder: Path, together: np.ndarray) -> None:
    """Print the accuracy of each hospital alone, and the size of a model without the preference."""
    plan = fism.read_plan(folder / "hospitals.toml")
    pooled = fism.pool(plan)
    train, held = pooled.train, list(pooled.held_out.values())

    def right(x: np.ndarray) -> str:
        count = sum(int(np.sum(shard.labels * shard.scores(x) > 0)) for shard in held)
        return f"{100 * count / sum(shard.count for shard in held):5.1f} %"

    problem = fism.Problem("logistic", plan.constraint, plan.outer)
    start = plan.start(together.size)

    def alone(*names: str, method: str = "fism") -> np.ndarray:
        shards = [train[name] for name in names]
        return fism.solve(problem, shards, steps=plan.steps, rounds=2000, start=start, method=method).x

    print("\naccuracy on the held-out rows of all four:")
    for name, shard in train.items():
        print(f"  {name + ' alone':24} {right(alone(name))}   ({shard.count} rows)")
    rows = sum(shard.count for shard in train.values())
    print(f"  {'the federation':24} {right(together)}   ({rows} rows, none shared)")
    unselected = alone(*train, method="incremental")
    print("\nsize |x| of the federation's model:")
    print(f"  {'with the preference':24} {np.linalg.norm(together):7.2f}")
    print(f"  {'without (lambda = 0)':24} {np.linalg.norm(unselected):7.2f}   ({right(unselected).strip()} accuracy)")


if __name__ == "__main__":
    main()
