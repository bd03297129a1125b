"""Banks update a score in use: the data does not determine all columns, so the new score stays near the old one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

import fism

if TYPE_CHECKING:
    from pathlib import Path

COLUMNS, KNOWN = 60, 20
SIZES = {"savings": 12, "mutual": 12, "online": 16}


def prepare(folder: Path) -> None:
    """Write a few rows with many columns for each bank, and the score in use, which is the coordinator's secret."""
    rng = np.random.default_rng(4)
    in_use = rng.normal(size=COLUMNS)
    truth = in_use.copy()
    truth[:KNOWN] += rng.normal(0, 0.5, KNOWN)  # some columns have changed their meaning
    for name, rows in SIZES.items():
        table = rng.normal(size=(rows, COLUMNS))
        np.savez(folder / f"{name}.npz", A=table, b=table @ truth)
    new = rng.normal(size=(2000, COLUMNS))
    np.savez(folder / "new.npz", A=new, b=new @ truth)
    np.save(folder / "in_use.npy", in_use)


def show(folder: Path) -> None:
    """Print how far each model is from the score in use, and its error on new customers."""
    plan = fism.read_plan(folder / "prior.toml")
    in_use, together = np.load(folder / "in_use.npy", allow_pickle=False), fism.load(folder / "run").coef
    shards = list(fism.pool(plan).train.values())
    small = fism.solve(
        fism.Problem("squared", plan.constraint, fism.SquaredNorm()),
        shards,
        steps=plan.steps,
        rounds=plan.config.stop.rounds,
    ).x
    with np.load(folder / "new.npz", allow_pickle=False) as new:
        rows, labels = new["A"], new["b"]
    print(f"\n{sum(SIZES.values())} rows, {COLUMNS} columns: many models fit them exactly\n")
    print(f"{'model':<34} {'error on training':>18} {'error on new rows':>18} {'from the one in use':>20}")
    for name, x in (("in use", in_use), ("smallest that fits", small), ("nearest to the one in use", together)):
        own = np.concatenate([shard.scores(x) - shard.labels for shard in shards])
        errors = [float(np.sqrt(np.mean(e**2))) for e in (own, rows @ x - labels)]
        print(f"{name:<34} {errors[0]:>18.3f} {errors[1]:>18.3f} {np.linalg.norm(x - in_use):>20.3f}")
