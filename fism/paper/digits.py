"""The digits 0 and 1 of MNIST, from a folder of IDX files or from public mirrors."""

from __future__ import annotations

import gzip
import hashlib
import http.client
import os
import urllib.request
import zlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fism_client.data.readers.idx import read_idx
from fism_client.data.shard import Shard
from fism_common.errors import DataError
from fism_common.files import write_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from fism_common.vectors import Vector

MIRRORS = (
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
)
FILES = {
    "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
}
"""The SHA-256 of each file's decompressed content, by file name."""
_PIXEL = 1 / 255
_SECONDS = 30.0


@dataclass(frozen=True)
class Digits:
    """Images of the two digits as rows of 784 bytes, and their labels: +1 for a one, -1 for a zero."""

    rows: NDArray[np.uint8]
    labels: Vector

    def sample(self, m: int, rng: np.random.Generator) -> Shard:
        """Return m images, half of each digit, in random order, with pixels from 0 to 1."""
        parts = [np.flatnonzero(self.labels == label) for label in (1.0, -1.0)]
        if m % 2 or m // 2 > min(part.size for part in parts):
            raise DataError(f"cannot take {m} images, half of each digit, from {[part.size for part in parts]}")
        chosen = rng.permutation(np.concatenate([rng.permutation(part)[: m // 2] for part in parts]))
        return Shard.of(self.rows[chosen], self.labels[chosen], scale=_PIXEL)


@lru_cache(maxsize=1)
def read_digits(folder: Path) -> tuple[Digits, Digits]:
    """Return the training digits and the test digits."""
    train, test = (_read(folder, part) for part in ("train", "t10k"))
    return train, test


def _read(folder: Path, part: str) -> Digits:
    images, labels = (
        read_idx(_find(folder, f"{part}-images-idx3-ubyte")),
        read_idx(_find(folder, f"{part}-labels-idx1-ubyte")),
    )
    if images.ndim != 3 or labels.shape != images.shape[:1]:  # noqa: PLR2004  # a stack of images
        raise DataError(f"{folder}: {part} has images of shape {images.shape} and labels of shape {labels.shape}")
    chosen = labels <= 1
    return Digits(images[chosen].reshape(int(chosen.sum()), -1), np.where(labels[chosen] == 1, 1.0, -1.0))


def _find(folder: Path, name: str) -> Path:
    found = [path for path in (folder / name, folder / f"{name}.gz") if path.is_file()]
    if not found:
        raise DataError(f"there is no {name} or {name}.gz in {folder}; give the folder of MNIST's files with --data")
    return found[0]


def cache_folder() -> Path:
    """Return the folder that caches the MNIST download."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fism" / "mnist"


def download(
    folder: Path, tick: Callable[[str, int, int], None] = lambda *_: None, mirrors: Sequence[str] = MIRRORS
) -> None:
    """Download the files missing from ``folder``, from the first mirror whose copy has the right checksum."""
    for done, (name, expected) in enumerate(FILES.items(), 1):
        kept = folder / f"{name}.gz"
        if not kept.is_file():
            content = _fetch(f"{name}.gz", expected, mirrors)
            folder.mkdir(parents=True, exist_ok=True)
            write_bytes(kept, content)
        tick("MNIST", done, len(FILES))


def _fetch(name: str, expected: str, mirrors: Sequence[str]) -> bytes:
    reasons = []
    for mirror in mirrors:
        try:
            with urllib.request.urlopen(mirror + name, timeout=_SECONDS) as answer:  # noqa: S310  # our own list
                content: bytes = answer.read()
            if hashlib.sha256(gzip.decompress(content)).hexdigest() == expected:
                return content
            reasons.append(f"{mirror}: the file has the wrong checksum")
        except (OSError, EOFError, zlib.error, http.client.HTTPException) as error:
            reasons.append(f"{mirror}: {error}")
    raise DataError(
        f"cannot download MNIST's {name}; get the four files another way and give their folder with --data\n"
        + "\n".join(f"  {reason}" for reason in reasons)
    )
