"""The methods that the paper compares, IR-IG and FISM with 1, 2, 4 and 8 clients, and their plot styles."""

from __future__ import annotations

import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from fism.methods import Method

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from fism_client.data.shard import Shard

T = TypeVar("T")
_PROCESSES = 2
"""How many run in parallel; with more, each would be timed with less memory bandwidth."""
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True)
class Contestant:
    """A method with its number of clients and plot style."""

    name: str
    method: Method
    clients: int
    style: dict[str, Any]

    def share(self, shard: Shard) -> list[Shard]:
        """Return the rows split among the clients, in order."""
        return shard.split(self.clients)


CONTESTANTS = [
    Contestant("IR-IG", Method.IR_IG, 1, {"color": "#222222", "ls": "--", "marker": "s"}),
    Contestant("S = 1", Method.FISM, 1, {"color": "#8a8a8a", "ls": "-", "marker": "o"}),
    Contestant("S = 2", Method.FISM, 2, {"color": "#5aa9d6", "ls": "-", "marker": "^"}),
    Contestant("S = 4", Method.FISM, 4, {"color": "#1f6fb4", "ls": "-", "marker": "v"}),
    Contestant("S = 8", Method.FISM, 8, {"color": "#d9541e", "ls": "-", "marker": "D"}),
]
FEDERATED = [one for one in CONTESTANTS if one.method is Method.FISM]


def usual_runs(*, quick: bool) -> int:
    """Return the default number of runs to average over."""
    return 2 if quick else 10


def in_workers(work: Callable[..., T], arguments: Sequence[tuple[Any, ...]]) -> Iterator[T]:
    """Yield the result of ``work`` for each of the arguments as it completes; two processes, one thread each."""
    spawn = multiprocessing.get_context("spawn")  # never fork a process that uses gRPC
    with _one_thread(), ProcessPoolExecutor(min(_PROCESSES, os.cpu_count() or 1), mp_context=spawn) as pool:
        try:
            for done in as_completed([pool.submit(work, *one) for one in arguments]):
                yield done.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Start child processes without BLAS threads: these spin while they wait, and slow down the other process."""
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value


def mean_of(rows: Sequence[Any], name: str) -> float:
    """Return the mean of the field ``name``."""
    return float(np.mean([getattr(row, name) for row in rows]))
