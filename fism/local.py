"""A federation on this host: the server in this process, one process per client, real gRPC between them."""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import sys
from typing import TYPE_CHECKING, Any

from fism_common.errors import ConfigError, RefusedError, StoppedError
from fism_server.net.access import Access
from fism_server.problem.config import OnAbsence
from fism_server.run.serve import serve

if TYPE_CHECKING:
    from asyncio.subprocess import Process

    from fism_common.data.source import Source
    from fism_server.problem.plan import Plan
    from fism_server.run.job import Job
    from fism_server.run.metrics import Gauges
    from fism_server.run.progress import Progress

_log = logging.getLogger(__name__)
_FAILURE_SECONDS = 1.0
"""How long clients may take to exit after a failed run; those without a stream yet never hear of the failure."""


def clients_of(plan: Plan) -> dict[str, Source]:
    """Return the data source of every client to start, by client name."""
    local, clients = plan.config.local, plan.config.federation.clients
    if local is None:
        raise ConfigError("fism run needs the table [local] with one shard file per client: shards = [...]")
    names = [f"client-{i:04}" for i in range(1, clients + 1)] if isinstance(clients, int) else clients
    if len(names) != len(local.shards):
        raise ConfigError(f"federation.clients asks for {len(names)} clients, but local.shards has {len(local.shards)}")
    sources = dict(zip(names, local.shards, strict=True))
    for name, source in sources.items():
        if source.data is not None and not (plan.folder / source.data).is_file():
            raise ConfigError(f"local.shards: there is no file {plan.folder / source.data} for {name}")
    return sources


async def run_local(
    job: Job, progress: Progress, gauges: Gauges | None = None, *, verbose: bool = False
) -> dict[str, Any]:
    """Run the job with local client processes; return the summary. No process outlives this call."""
    plan, dropped = job.plan, {} if job.saved is None else job.saved.dropped
    sources = {name: source for name, source in clients_of(plan).items() if name not in dropped}
    listening: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    access = Access(listen="127.0.0.1:0")
    server = asyncio.create_task(serve(job, access, progress, gauges, on_listening=listening.set_result))
    processes: dict[str, Process] = {}
    try:
        started: set[asyncio.Future[Any]] = {server, listening}
        await asyncio.wait(started, return_when=asyncio.FIRST_COMPLETED)
        if not server.done():
            for name, source in sources.items():
                processes[name] = await _start(plan, name, source, listening.result(), verbose=verbose)
        return await _until_done(server, processes, job)
    finally:
        finished = server.done() and not server.cancelled() and server.exception() is None
        server.cancel("one of its clients failed")
        await asyncio.gather(server, return_exceptions=True)
        grace = plan.config.limits.shutdown_seconds / 2
        await _end(processes, grace if finished else min(grace, _FAILURE_SECONDS))


async def _start(plan: Plan, name: str, source: Source, address: str, *, verbose: bool) -> Process:
    assert plan.config.local is not None  # noqa: S101  # clients_of has checked
    reading = plan.config.local.model_dump(exclude={"shards"}, exclude_unset=True)
    settings = source.model_dump(exclude_none=True) | reading | {"server": address, "name": name}
    settings["seed"] = plan.config.federation.seed
    if ":" in plan.loss.kind:
        settings["loss"] = plan.loss.kind
    options = ["--settings", json.dumps(settings), "--with-parent", *(["--verbose"] if verbose else [])]
    # A new session: Ctrl-C reaches only this process, which then stops the clients in order. A client's standard input
    # is a pipe that closes when this process dies, however it dies; the client then exits.
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "fism_client",
        *options,
        stdin=asyncio.subprocess.PIPE,
        cwd=plan.folder,  # where a custom loss is imported from
        start_new_session=True,
    )


async def _until_done(server: asyncio.Task[dict[str, Any]], processes: dict[str, Process], job: Job) -> dict[str, Any]:
    """Return the server's summary; raise if a client fails first and the run cannot continue without it."""
    can_continue = job.plan.config.limits.on_absence is OnAbsence.CONTINUE
    ends = {asyncio.create_task(process.wait()): name for name, process in processes.items()}
    try:
        while not server.done():
            running: set[asyncio.Task[Any]] = {server, *ends}
            await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for end in [end for end in ends if end.done()]:
                name, code = ends.pop(end), end.result()
                # 0: finished. 4: the server told the client that the run stopped; the server reports it.
                if code in {2, 3}:
                    raise RefusedError(f"{name} exited with code {code}; see its error above")
                if code not in {0, 4}:
                    how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"exited with code {code}"
                    if not can_continue:
                        raise StoppedError(f"{name} {how}; resume with fism run --resume {job.out}")
                    _log.warning("%s %s", name, how)
        return await server
    finally:
        for end in ends:
            end.cancel()


async def _end(processes: dict[str, Process], seconds: float) -> None:
    """Wait for the clients to exit, then terminate them, then kill them; wait up to ``seconds`` each time."""
    for stop in (None, "terminate", "kill"):
        running = [process for process in processes.values() if process.returncode is None]
        if not running:
            return
        for process in running:
            if stop is not None:
                getattr(process, stop)()
        await asyncio.wait([asyncio.create_task(process.wait()) for process in running], timeout=seconds)
