"""A real federation for an experiment: its files in a scratch folder, a process per client, gRPC between them."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fism.local import run_local
from fism_common.settings import check
from fism_server.config import RunConfig
from fism_server.job import new_job
from fism_server.plan import make_plan
from fism_server.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fism_client.shard import Shard
    from fism_common.vectors import Vector


def over_grpc(table: dict[str, Any], shards: Sequence[Shard], **vectors: Vector) -> dict[str, Any]:
    """Return the summary of a run of the configuration ``table`` on dense shards, one client each.

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
        return asyncio.run(run_local(new_job(plan, here / "run"), progress))
