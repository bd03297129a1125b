"""Folders of runs of any size, written by the store itself as a server does."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fism_common.data.columns import Column, Kind
from fism_common.exchange import Evaluation
from fism_server.algorithm.methods.fism import FismState
from fism_server.algorithm.record import Record
from fism_server.archive.events import Event
from fism_server.federation.notices import EventKind
from fism_server.federation.roster import Member
from fism_server.problem.plan import read_plan
from fism_server.run.job import Job, new_job

CONFIG = """
[federation]
name = "regions"
clients = {clients}
[inner]
loss = "logistic"
constraint = {{ kind = "box", lo = -10.0, hi = 10.0 }}
[data]
intercept = {intercept}
[outer]
kind = "elastic-net"
l1 = 0.25
l2 = 1.5
[steps]
gamma = 1.0
a = 0.7
lambda = 1.0
b = 0.2
[stop]
rounds = {rounds}
"""


def begun(folder: Path, clients: int, rounds: int, *, names: Sequence[str] = (), counted: bool = True) -> Job:
    """Return a run after so many rounds, its store still open; ``names`` are those of its columns."""
    folder.mkdir(parents=True)
    config = folder / "run.toml"
    config.write_text(CONFIG.format(clients=clients, rounds=rounds, intercept="true" if names else "false"))
    job, rng = new_job(read_plan(config), folder / "run"), np.random.default_rng(clients)
    n = len(names) + 1 if names else 12
    goal = rng.normal(size=n)
    progress = FismState.at(1, np.zeros(n))
    members = [Member(f"site-{i:02}", 100 + i, n, 1, n, digest=b"x") for i in range(clients)]
    job.archive.begin(members, progress.state(), [Column(name, Kind.NUMBER) for name in names])
    for k in range(1, rounds + 1):
        record = Record(k, k**-0.7, k**-0.2, 100 + 900 / k, 50 * (1 - 1 / k) + 1 / k, 1 / k)
        computed = rng.uniform(0.001, 0.002, clients)
        waited = computed + rng.uniform(0.002, 0.003, clients)
        if k % 10 == 0:
            job.archive.evaluate(k, Evaluation(rows=500, right=480 - 300 // k if counted else None, loss=20 + 30 / k))
        progress.advance(record, goal * (1 - 1 / k))
        times = [(float(one), float(other)) for one, other in zip(computed, waited, strict=True)]
        job.archive.add(record, float(waited.max()) + 0.001, members, times, progress.state)
    job.archive.save(progress.state())
    return job


def finished(folder: Path, clients: int, rounds: int, *, names: Sequence[str] = (), counted: bool = True) -> Path:
    """Return the folder of a finished run."""
    job = begun(folder, clients, rounds, names=names, counted=counted)
    job.archive.note(Event(min(3, rounds), EventKind.LOST, "site-00", "the connection <b>ended</b>"))
    job.archive.describe({"rounds": rounds, "stopped": "rounds", "inner": 100.0, "outer": 50.0, "seconds": 1.0})
    job.archive.close()
    return job.out
