"""What the paper compares: IR-IG, and FISM with one, two, four and eight clients; and how each is drawn."""

from __future__ import annotations

import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from fism.methods import Method

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from fism_client.shard import Shard

T = TypeVar("T")


@dataclass(frozen=True)
class Contestant:
    """A method on so many clients."""

    name: str
    method: Method
    clients: int
    style: dict[str, Any]

    def share(self, shard: Shard) -> list[Shard]:
        """Return the rows dealt out to the clients, in order."""
        return shard.split(self.clients)


CONTESTANTS = [
    Contestant("IR-IG", Method.IR_IG, 1, {"color": "#222222", "ls": "--", "marker": "s"}),
    Contestant("S = 1", Method.FISM, 1, {"color": "#8a8a8a", "ls": "-", "marker": "o"}),
    Contestant("S = 2", Method.FISM, 2, {"color": "#5aa9d6", "ls": "-", "marker": "^"}),
    Contestant("S = 4", Method.FISM, 4, {"color": "#1f6fb4", "ls": "-", "marker": "v"}),
    Contestant("S = 8", Method.FISM, 8, {"color": "#d9541e", "ls": "-", "marker": "D"}),
]
FEDERATED = [one for one in CONTESTANTS if one.method is Method.FISM]


def in_workers(work: Callable[..., T], arguments: Sequence[tuple[Any, ...]]) -> Iterator[T]:
    """Yield what ``work`` makes of each of the arguments, as they come: one process a core, each with one thread."""
    # Threads of a matrix product wait by spinning, which would be timed in the other processes.
    os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))
    spawn = multiprocessing.get_context("spawn")  # a process that speaks gRPC is never forked
    with ProcessPoolExecutor(os.cpu_count(), mp_context=spawn) as pool:
        try:
            for done in as_completed([pool.submit(work, *one) for one in arguments]):
                yield done.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def mean_of(rows: Sequence[Any], name: str) -> float:
    """Return the mean of one field."""
    return float(np.mean([getattr(row, name) for row in rows]))
