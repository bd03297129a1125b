"""Newsrooms tell complaints from praise by words: sparse rows, thousands of columns, more columns than rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

import fism

if TYPE_CHECKING:
    from pathlib import Path

WORDS, TELLING = 20_000, 40
SIZES = {"daily": 300, "weekly": 700, "radio": 1500}


def prepare(folder: Path) -> None:
    """Write one svmlight file per newsroom: one letter per line, as word numbers and counts."""
    rng = np.random.default_rng(0)
    shares = 1.0 / np.arange(1, WORDS + 1)  # Zipf's law
    shares /= shares.sum()
    telling = rng.choice(np.arange(50, 2000), TELLING, replace=False)
    for name, letters in SIZES.items():
        lines = []
        for _ in range(letters):
            complaint = rng.random() < 0.5
            words = rng.choice(WORDS, rng.integers(20, 80), p=shares)
            half = telling[: TELLING // 2] if complaint else telling[TELLING // 2 :]
            words = np.concatenate([words, rng.choice(half, rng.integers(1, 4))])
            columns, counts = np.unique(words, return_counts=True)
            pairs = " ".join(f"{column + 1}:{count}" for column, count in zip(columns, counts, strict=True))
            lines.append(f"{1 if complaint else -1} {pairs}\n")
        (folder / f"{name}.svm").write_text("".join(lines))
    np.save(folder / "telling.npy", telling)


def show(folder: Path) -> None:
    """Print how many of the words with the largest weights are telling, and their share of the weight."""
    model, telling = fism.load(folder / "run"), set(np.load(folder / "telling.npy", allow_pickle=False).tolist())
    largest = np.argsort(-np.abs(model.coef))[:TELLING]
    found = sum(int(column) in telling for column in largest)
    share = float(np.sum(np.abs(model.coef[largest])) / np.sum(np.abs(model.coef)))
    print(f"\nof the {TELLING} words with the largest weights {found} are telling; they have {share:.0%} of the weight")
