"""Write the tables of four hospitals: scikit-learn's breast cancer data, split unevenly.

Usage: prepare.py FOLDER.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer

SIZES = {"north": 25, "east": 60, "south": 150, "west": 334}


def main(folder: Path) -> None:
    """Write one CSV file per hospital, as its own system might export it."""
    data = load_breast_cancer()
    names = [str(name).replace(" ", "_") for name in data.feature_names]
    diagnoses = np.array([str(name) for name in data.target_names])[data.target]
    rng = np.random.default_rng(0)
    # Hospitals differ in their patients: larger tumours tend to go to larger hospitals.
    radius = data.data[:, 0]
    order = np.argsort((radius - radius.mean()) / radius.std() + 0.3 * rng.normal(size=radius.size))
    folder.mkdir(parents=True, exist_ok=True)
    ends = np.cumsum(list(SIZES.values()))[:-1]
    for site, members in zip(SIZES, np.split(order, ends), strict=True):
        with (folder / f"{site}.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["patient", *names, "diagnosis"])
            writer.writerows([i, *map(float, data.data[i]), diagnoses[i]] for i in members)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
