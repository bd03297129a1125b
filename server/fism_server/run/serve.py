"""A run on the network: listen, run, shut down; and the handling of signals."""

from __future__ import annotations

import asyncio
import logging
import math
import os
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import grpc.aio
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1.health import aio as health

from fism_common.errors import ConfigError, InterruptedRunError
from fism_common.signals import on_interrupt
from fism_common.wire.channel import SERVER
from fism_server.archive.events import Journal
from fism_server.federation.admission import Admission, AdmissionRules
from fism_server.federation.gathering import Gathering, TimeLimits
from fism_server.federation.participation import AllClients
from fism_server.federation.roster import Roster
from fism_server.net.access import Connections
from fism_server.net.hub import Hub
from fism_server.net.service import FederationService
from fism_server.problem.config import OnAbsence
from fism_server.report.page import write_report
from fism_server.run.lifecycle import Run, unless_interrupted
from fism_server.run.summary import table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from fism_server.net.access import Access
    from fism_server.run.job import Job
    from fism_server.run.metrics import Gauges
    from fism_server.run.progress import Progress

_log = logging.getLogger(__name__)
_SECONDS_FOR_LAST_CALLS = 1.0
_INTERRUPTED = 130


async def serve(
    job: Job,
    access: Access,
    progress: Progress,
    gauges: Gauges | None = None,
    *,
    on_listening: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Run the job to its end, and close its archive; return the summary, which is also in the run's folder.

    ``on_listening`` gets the address, with the actual port. Raises InterruptedRunError after a first SIGINT or
    SIGTERM, with the state saved; a second one ends the process.
    """
    with _interruptible(progress, job.out):
        try:
            summary = await _serve(job, access, progress, gauges, on_listening)
        except asyncio.CancelledError:
            raise InterruptedRunError(
                f"interrupted; the run's state is saved in {job.out}: continue with --resume {job.out}"
            ) from None
    try:
        write_report(job.out)
    except Exception as error:  # noqa: BLE001  # a finished run does not fail because of its report
        _log.warning("the model is written, but the report is not: %s; run fism report %s to try again", error, job.out)
    progress.summary(table(summary))
    return summary


async def _serve(
    job: Job, access: Access, progress: Progress, gauges: Gauges | None, on_listening: Callable[[str], None]
) -> dict[str, Any]:
    connections = Connections()
    try:
        roster, admission = _admission(job)
    except BaseException:
        job.archive.close()
        raise
    limits = job.plan.config.limits
    absence = math.inf if limits.on_absence is OnAbsence.WAIT else limits.absence_seconds
    gathering = Gathering(roster, AllClients(), TimeLimits(limits.round_seconds, absence))
    journal = Journal(job.archive, lambda: hub.round)
    hub = Hub(roster, gathering, journal)
    secure = access.tls is not None
    service = FederationService(job.run_id, job.plan, roster, admission, hub, journal, connections, secure=secure)
    server, health_server = grpc.aio.server(options=SERVER), grpc.aio.server(options=SERVER)
    server.add_generic_rpc_handlers((service.handler(), service.health_handler()))
    servicer = health.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(servicer, health_server)
    try:
        address = access.bind(server, connections)
        await server.start()
        if access.health is not None:
            access.bind_health(health_server)
            await health_server.start()
        await servicer.set("", health_pb2.HealthCheckResponse.SERVING)
        on_listening(address)
        return await Run(job, roster, hub, journal, connections, progress, gauges).run()
    finally:
        service.over = True
        # Clients have hung up by now: calls that are still open are not theirs.
        await unless_interrupted(asyncio.gather(server.stop(_SECONDS_FOR_LAST_CALLS), health_server.stop(0)))
        job.archive.close()


def _admission(job: Job) -> tuple[Roster, Admission]:
    """Return the roster: as configured, or as saved by the run to resume."""
    plan = job.plan
    expected = plan.config.federation.clients
    roster = Roster(expected, plan.config.data.recipe())
    rules = AdmissionRules(
        names=None if isinstance(expected, int) else expected,
        columns=plan.columns,
        check_columns=plan.outer.check,
        allowed=plan.config.security.allowed,
        features=plan.config.data.features or (),
        in_order=plan.in_order,
    )
    admission = Admission(rules, roster)
    if job.saved is not None:
        roster.restore(job.saved.members, job.saved.dropped, job.saved.features, time.monotonic())
        revoked = ", ".join(admission.revoke())
        if revoked and plan.config.limits.on_absence is OnAbsence.WAIT:
            raise ConfigError(
                f"{revoked} began the run and is no longer allowed: continue without it, with "
                "limits.on_absence=continue"
            )
    return roster, admission


@contextmanager
def _interruptible(progress: Progress, out: Path) -> Iterator[None]:
    """Let a first signal cancel the current task, and a second one end the process at once."""
    task = asyncio.current_task()
    assert task is not None  # noqa: S101  # this is called from a coroutine
    signals = 0

    def interrupt() -> None:
        nonlocal signals
        signals += 1
        if signals > 1:
            progress.end()
            print(f"interrupted twice; the last saved state is in {out}", file=sys.stderr, flush=True)  # noqa: T201
            os._exit(_INTERRUPTED)
        task.cancel()

    with on_interrupt(interrupt):
        yield
