"""A real federation for an experiment: its files in a scratch folder, a process per client, gRPC between them."""

from __future__ import annotations

import asyncio
import tempfile
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fism.local import run_local
from fism_common.settings import check
from fism_server.archive.writer import Store
from fism_server.problem.config import RunConfig
from fism_server.problem.plan import make_plan
from fism_server.run.job import new_job
from fism_server.run.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fism_client.data.shard import Shard
    from fism_common.vectors import Vector
    from fism_server.archive.timing import Times


def over_grpc(table: dict[str, Any], shards: Sequence[Shard], **vectors: Vector) -> tuple[dict[str, Any], Times]:
    """Return the summary and the times of a run of the configuration ``table`` on dense shards, one client each.

    The configuration may name the ``vectors`` as files: ``start`` as start.npy.
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
        with closing(Store.open(here / "run")) as store:
            return summary, store.times(1)
