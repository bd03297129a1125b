"""Eight post offices tell threes from the other digits: MNIST, from its original files.

Set FISM_DATA to the folder with the four files; `fism-paper mnist` downloads them to ~/.cache/fism/mnist.
"""

from __future__ import annotations

import os
from pathlib import Path

import fism

CLIENTS = 8


def prepare(folder: Path) -> None:
    """Split the training images into eight shards with different proportions of digits."""
    images, labels = find("train")
    source = fism.Source(data=str(images), labels=str(labels))
    for file, rows in fism.shard(source, fism.Reading(), folder / "shards", parts=CLIENTS, alpha=1.0, seed=1):
        print(f"{file.name}  {rows} rows")


def find(part: str) -> tuple[Path, Path]:
    """Return the image file and the label file, gzipped or not."""
    folder = Path(os.environ.get("FISM_DATA", ""))
    if "FISM_DATA" not in os.environ or not folder.is_dir():
        raise SystemExit(
            "set FISM_DATA to the folder of MNIST's four files; fism-paper mnist downloads them to ~/.cache/fism/mnist"
        )
    first, second = (min(folder.glob(f"{part}-{kind}*")) for kind in ("images", "labels"))
    return first, second


def show(folder: Path) -> None:
    """Evaluate the model on the test images."""
    model = fism.load(folder / "run")
    images, labels = find("t10k")
    source, reading = fism.Source(data=str(images), labels=str(labels)), fism.Reading(positive=3, scale=1 / 255)
    measured = model.evaluate(model.read(source, reading, folder, labelled=True))
    print(f"\non {measured['rows']} test images: accuracy {measured['accuracy']:.4f}, AUC {measured['auc']:.4f}")
