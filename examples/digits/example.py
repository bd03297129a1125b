"""Eight post offices tell threes from the other digits: MNIST, from its original files.

Set FISM_DATA to the folder with the four files, or run `fism-paper mnist` first, which downloads and caches them.
"""

from __future__ import annotations

import os
from pathlib import Path

import fism
from fism.paper.digits import cache_folder
from fism.sharding import shard
from fism_common.data.source import Reading, Source

CLIENTS = 8


def prepare(folder: Path) -> None:
    """Split the training images into eight shards with different proportions of digits."""
    images, labels = find("train")
    source = Source(data=str(images), labels=str(labels))
    for file, rows in shard(images, source, Reading(), folder / "shards", parts=CLIENTS, alpha=1.0, seed=1):
        print(f"{file.name}  {rows} rows")


def find(part: str) -> tuple[Path, Path]:
    """Return the image file and the label file, gzipped or not."""
    folder = Path(os.environ.get("FISM_DATA") or cache_folder())
    if not folder.is_dir():
        raise SystemExit(
            "set FISM_DATA to the folder with MNIST's four files, or run fism-paper mnist, which downloads them"
        )
    first, second = (min(folder.glob(f"{part}-{kind}*")) for kind in ("images", "labels"))
    return first, second


def show(folder: Path) -> None:
    """Evaluate the model on the test images."""
    model = fism.load(folder / "run")
    images, labels = find("t10k")
    reading = Reading(positive=3, scale=1 / 255)
    measured = model.evaluate(model.read(Source(data=str(images), labels=str(labels)), reading, folder, labelled=True))
    print(f"\non {measured['rows']} test images: accuracy {measured['accuracy']:.4f}, AUC {measured['auc']:.4f}")
