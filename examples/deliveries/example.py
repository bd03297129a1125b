"""Couriers promise times that they keep nine times out of ten: quantile regression on tables with categories."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

import fism

COURIERS = {"red": 400, "green": 900, "blue": 2500}
KINDS = {"letter": 4.0, "parcel": 9.0, "pallet": 25.0}


def write(file: Path, count: int, rng: np.random.Generator) -> None:
    """Write a courier's tours: distance, floor (sometimes missing), kind, and the minutes taken."""
    with file.open("w", newline="") as target:
        writer = csv.writer(target)
        writer.writerow(["tour", "distance_km", "floor", "kind", "minutes"])
        for i in range(count):
            distance, floor = rng.exponential(6.0), int(rng.integers(0, 9))
            kind = str(rng.choice(list(KINDS)))
            minutes = (KINDS[kind] + 2.5 * distance + 1.2 * floor) * rng.gamma(20.0, 1 / 20)
            noted = "" if rng.random() < 0.05 else floor
            writer.writerow([i, f"{distance:.2f}", noted, kind, f"{minutes:.1f}"])


def prepare(folder: Path) -> None:
    """Write one table per courier, and one of new tours."""
    rng = np.random.default_rng(2)
    for name, count in COURIERS.items():
        write(folder / f"{name}.csv", count, rng)
    write(folder / "new.csv", 2000, rng)


def show(folder: Path) -> None:
    """Print what the model promises for new tours, and how often the promise would have been kept."""
    model = fism.load(folder / "run")
    shard = model.read(fism.Source(data="new.csv"), fism.Reading(label="minutes"), folder, labelled=True)
    held = model.evaluate(shard)["not_above"]
    print("\nminutes to promise per unit of:")
    for name, value in zip(model.names, model.coef, strict=True):
        print(f"  {name:<14} {value:6.2f}")
    print(f"of {shard.count} new tours {held:.1%} took no longer than promised; the target is 90 %")
