"""The result of a run."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from fism_server.algorithm.record import Record, Stop

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fism_common.vectors import Vector

__all__ = ["Result"]


@dataclass(frozen=True, eq=False)
class Result:
    """The solution that a run found, and the history of its rounds."""

    x: Vector
    """The last iterate, x_{K+1}: the solution."""
    weighted: Vector
    """The k-weighted mean, sum k x_k / sum k, each x_k before round k."""
    average: Vector
    """The ergodic mean, sum gamma_k x_k / sum gamma_k: what the rate theorem bounds; far less accurate than ``x``."""
    inner: float
    """F at ``x``."""
    outer: float
    """H at ``x``."""
    rounds: int
    """How many rounds led to ``x``."""
    stopped: Stop
    """Why the run ended."""
    subgradients: int
    """How many subgradients of f and H these rounds computed."""
    history: dict[str, NDArray[Any]]
    """Per round k: ``round``, ``gamma``, ``lam``, ``inner`` (F at x_k), ``outer`` (H at x_k), ``change``,
    ``seconds``, ``critical``.

    x_k is the point before round k, and ``change`` is |x_{k+1} - x_k| / (|x_k| + 1). ``critical`` is the critical
    path of a round: its seconds, less what clients working in parallel without a network would have saved.
    """


def history(records: Sequence[Record], **times: Sequence[float]) -> dict[str, NDArray[Any]]:
    """Return the records as arrays by name, with the timings of each round."""
    table = {field.name: np.array([getattr(record, field.name) for record in records]) for field in fields(Record)}
    return table | {name: np.array(values) for name, values in times.items()}
