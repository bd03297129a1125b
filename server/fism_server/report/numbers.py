"""Numbers as the page shows them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from fism_server.report.view import Numbers

_ROWS_OF_A_CURVE = 14


def spread(n: int) -> list[int]:
    """Return the indices of a few of n rounds for a table: the first, the last, and between them fewer and fewer."""
    if n <= _ROWS_OF_A_CURVE:
        return list(range(n))
    return [int(i) - 1 for i in np.unique(np.geomspace(1, n, _ROWS_OF_A_CURVE).round())]


def numbers(values: Iterable[float] | NDArray[np.float64]) -> Numbers:
    """Return numbers to draw: rounded to seven digits, None if not finite."""
    return [float(f"{value:.7g}") if math.isfinite(value) else None for value in values]


def number(value: float | None) -> str:
    """Return a number with six digits; a dash if there is none."""
    return "-" if value is None else f"{value:.6g}"
