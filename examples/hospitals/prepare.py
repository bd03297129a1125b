"""Write the shards of four hospitals: the breast cancer data of scikit-learn, dealt out unevenly.

Usage: prepare.py FOLDER. Columns are standardised, and a column of ones is the intercept.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer

SIZES = {"north": 25, "east": 60, "south": 150, "west": 334}


def main(folder: Path) -> None:
    """Write one .npz file per hospital."""
    data = load_breast_cancer()
    rows = (data.data - data.data.mean(axis=0)) / data.data.std(axis=0)
    rows = np.column_stack([rows, np.ones(len(rows))])
    labels = np.where(data.target == 1, 1.0, -1.0)
    rng = np.random.default_rng(0)
    # Hospitals differ in their patients: larger tumours tend to go to the larger ones.
    order = np.argsort(rows[:, 0] + 0.3 * rng.normal(size=len(rows)))
    folder.mkdir(parents=True, exist_ok=True)
    ends = np.cumsum(list(SIZES.values()))[:-1]
    for name, members in zip(SIZES, np.split(order, ends), strict=True):
        np.savez(folder / f"{name}.npz", A=rows[members], b=labels[members])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
