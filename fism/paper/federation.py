"""A real federation for an experiment: files in a temporary folder, one process per client, gRPC between them."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fism.local import run_local
from fism_common.settings import check
from fism_server.archive.reader import reading
from fism_server.problem.config import RunConfig
from fism_server.problem.plan import make_plan
from fism_server.run.job import new_job
from fism_server.run.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fism_client.data.shard import Shard
    from fism_common.vectors import Vector


class Times(NamedTuple):
    """How long rounds took."""

    seconds: NDArray[np.float64]
    """Of each round."""
    answers: NDArray[np.float64]
    """Axes: round, client, and (computed, waited)."""


def over_grpc(table: dict[str, Any], shards: Sequence[Shard], **vectors: Vector) -> tuple[dict[str, Any], Times]:
    """Run the configuration ``table`` on dense shards, one client each; return the summary and the times.

    The configuration can refer to the ``vectors`` as files: ``start`` is start.npy.
    """
    with tempfile.TemporaryDirectory() as scratch:
        here = Path(scratch)
        names = [f"{i}.npz" for i in range(len(shards))]
        for name, shard in zip(names, shards, strict=True):
            np.savez(here / name, A=np.asarray(shard.rows), b=shard.labels, scale=shard.scale)
        for name, vector in vectors.items():
            np.save(here / f"{name}.npy", vector)
        whole = {**table, "local": {"shards": names}}
        whole["federation"] = {**table.get("federation", {}), "clients": len(shards)}
        plan = make_plan(check(RunConfig, whole, "the experiment"), here, "the experiment")
        progress = Progress(plan.config.stop.rounds, quiet=True)
        summary = asyncio.run(run_local(new_job(plan, here / "run"), progress))
        with reading(here / "run") as database:
            seconds = database.execute("SELECT seconds FROM rounds ORDER BY round").fetchall()
            answers = database.execute("SELECT computed, waited FROM answers ORDER BY round, client").fetchall()
        return summary, Times(np.array(seconds)[:, 0], np.array(answers).reshape(len(seconds), len(shards), 2))
