"""Downsampling: long curves with fewer points that look the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_POINTS = 1200


def thinned(values: NDArray[np.float64], most: int = MOST_POINTS) -> NDArray[np.intp]:
    """Return the indices of the values to draw, in order: all, or the minimum and the maximum of every stretch.

    Half of the stretches are equal on a linear axis and half on a logarithmic one, so that both show every peak. The
    first and the last value are always drawn.
    """
    n = len(values)
    if n <= most:
        return np.arange(n)
    edges = stretches(n, most // 2 - 1)
    kept = [part[[values[part].argmin(), values[part].argmax()]] for part in np.split(np.arange(n), edges[1:-1])]
    return np.unique(np.concatenate([*kept, [0, n - 1]]))


def stretches(n: int, most: int) -> NDArray[np.intp]:
    """Return the edges of at most ``most`` stretches of n values, half of them equal on a logarithmic axis."""
    half = most // 2
    edges = np.concatenate([np.linspace(0, n, half + 1), np.geomspace(1, n, half)])
    return np.unique(edges.round().astype(np.intp))
