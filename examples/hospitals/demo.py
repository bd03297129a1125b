"""Run the federation of four hospitals, and show what it gained. Run with `make demo`."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import fism
import prepare
from fism_client.data.arrays import read_npz

HERE = Path(__file__).parent


def main() -> None:
    """Prepare, run, compare."""
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
    """Print the accuracy of every hospital alone, and the size of a model that nobody selected."""
    split = {name: read_npz(folder / f"{name}.npz").hold_out(0.25, seed=1) for name in prepare.SIZES}
    train = {name: pair[0] for name, pair in split.items()}
    held = [pair[1] for pair in split.values() if pair[1] is not None]

    def right(x: np.ndarray) -> str:
        count = sum(int(np.sum(shard.labels * shard.scores(x) > 0)) for shard in held)
        return f"{100 * count / sum(shard.count for shard in held):5.1f} %"

    problem = fism.Problem("logistic", fism.Box(-10, 10), fism.SquaredNorm())
    steps = fism.PowerSteps(gamma=1.0, a=0.7, lam=2.0, b=0.2)
    start = np.random.default_rng(1).uniform(np.full(31, -10.0), np.full(31, 10.0))

    def alone(*names: str, method: str = "fism") -> np.ndarray:
        shards = [train[name] for name in names]
        return fism.solve(problem, shards, steps=steps, rounds=2000, start=start, method=method).x

    print("\nright on the rows that all four held out:")
    for name, shard in train.items():
        print(f"  {name + ' alone':24} {right(alone(name))}   ({shard.count} rows)")
    rows = sum(shard.count for shard in train.values())
    print(f"  {'the federation':24} {right(together)}   ({rows} rows, none shared)")
    unselected = alone(*train, method="incremental")
    print("\nsize |x| of the federation's model:")
    print(f"  {'with the preference':24} {np.linalg.norm(together):7.2f}")
    print(f"  {'without (lambda = 0)':24} {np.linalg.norm(unselected):7.2f}   ({right(unselected).strip()} right)")


if __name__ == "__main__":
    main()
