"""What a run gives back."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from fism_server.algorithm.rounds import Record, Stop

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fism_common.vectors import Vector


@dataclass(frozen=True, eq=False)
class Result:
    """The answer of a run, and how it came about."""

    x: Vector
    """The last iterate, x_{K+1}: the answer."""
    weighted: Vector
    """The k-weighted mean, sum k x_k / sum k, each x_k before round k."""
    average: Vector
    """The ergodic mean, sum gamma_k x_k / sum gamma_k: what the rate theorem bounds, in practice far behind ``x``."""
    inner: float
    """F at ``x``."""
    outer: float
    """H at ``x``."""
    rounds: int
    """How many rounds led to ``x``."""
    stopped: Stop
    """Why the run ended."""
    subgradients: int
    """How many subgradients of f and H these rounds took."""
    history: dict[str, NDArray[Any]]
    """Per round k: ``round``, ``gamma``, ``lam``, ``inner`` (F at x_k), ``outer`` (H at x_k), ``change``,
    ``seconds``, ``critical``.

    x_k is the point before round k, and the change |x_{k+1} - x_k| / (|x_k| + 1). A round's critical path is its
    seconds less those that clients working at once, without a network, would have saved.
    """


def history(records: Sequence[Record], **times: Sequence[float]) -> dict[str, NDArray[Any]]:
    """Return the records as arrays by name, with what was timed in each round."""
    table = {field.name: np.array([getattr(record, field.name) for record in records]) for field in fields(Record)}
    return table | {name: np.array(values) for name, values in times.items()}
