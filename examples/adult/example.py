"""Eight offices predict who earns above a threshold, from the census data that LIBSVM calls a1a.

Set FISM_A1A to the file a1a.t, gzipped or not.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

import fism

PARTS = [1, 1, 2, 2, 3, 3, 4, 8]
"""The offices' relative sizes; a part as large as the largest is kept for evaluation."""
READING = fism.Reading(columns=123)


def prepare(folder: Path) -> None:
    """Split the rows into eight unequal shards and one for evaluation."""
    if "FISM_A1A" not in os.environ:
        raise SystemExit("set FISM_A1A to the file a1a.t from LIBSVM's data sets, gzipped or not")
    source = Path(os.environ["FISM_A1A"]).absolute()
    whole = folder / ("a1a.svm.gz" if source.suffix == ".gz" else "a1a.svm")
    whole.write_bytes(source.read_bytes())
    sizes = [*PARTS, PARTS[-1]]
    data = fism.Source(data=str(whole))
    written = fism.shard(data, READING, folder / "shards", parts=len(sizes), sizes=sizes, seed=1)
    for file, rows in written:
        print(f"{file.name}  {rows} rows")


def show(folder: Path) -> None:
    """Evaluate the model on rows that no office has."""
    model = fism.load(folder / "run")
    test = model.read(fism.Source(data=f"shards/part-{len(PARTS) + 1}.npz"), fism.Reading(), folder, labelled=True)
    measured = model.evaluate(test)
    small = np.mean(np.abs(model.coef) < 0.01)
    print(
        f"\non {measured['rows']} rows: accuracy {measured['accuracy']:.4f}, AUC {measured['auc']:.4f}, mean loss "
        f"{measured['loss']:.4f}; {small:.0%} of the coefficients are below 0.01"
    )
