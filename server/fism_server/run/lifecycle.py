"""The life of a run: listen, wait for the clients, the rounds, the closing exchange, the files."""

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

from fism_common.data.moments import merge
from fism_common.data.moments import scaling as scaling_of
from fism_common.errors import ConfigError, InterruptedRunError, StoppedError, StoreError
from fism_common.signals import on_interrupt
from fism_common.wire.channel import SERVER
from fism_server.algorithm.rounds import Rounds, State
from fism_server.algorithm.step_rules import warn_if_not_covered
from fism_server.archive.events import Journal, Kind
from fism_server.archive.presence import Presence
from fism_server.federation.roster import Members
from fism_server.net.access import Connections
from fism_server.net.hub import AbsentError, Hub
from fism_server.net.service import FederationService
from fism_server.problem.config import Absent
from fism_server.report.page import write_report
from fism_server.run.summary import Outcome, summarise, table, write_files

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from pathlib import Path

    from fism_common.data.moments import Scaling
    from fism_common.exchange import Evaluation
    from fism_server.federation.roster import Member
    from fism_server.net.access import Access
    from fism_server.net.hub import Gathered
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
    """Run the job to its end, and close its store; return the summary, which is also in the run's folder.

    ``on_listening`` is told the address, with the port that was taken. Raises InterruptedRunError after a first SIGINT
    or SIGTERM, with the state saved; a second one ends the process.
    """
    with _interruptible(progress, job.out):
        try:
            summary = await _serve(job, access, progress, gauges, on_listening)
        except asyncio.CancelledError:
            raise InterruptedRunError(
                f"interrupted; what the run had done is saved in {job.out}: go on with --resume {job.out}"
            ) from None
    try:
        write_report(job.out)
    except Exception as error:  # noqa: BLE001  # a run that is finished does not fail by how it is shown
        _log.warning("the model is there, its report is not: %s; fism report %s makes it anew", error, job.out)
    progress.summary(table(summary))
    return summary


async def _serve(
    job: Job, access: Access, progress: Progress, gauges: Gauges | None, on_listening: Callable[[str], None]
) -> dict[str, Any]:
    plan, limits = job.plan, job.plan.config.limits
    journal = Journal(job.store)
    connections = Connections()
    members = Members(
        plan.config.federation.clients,
        plan.columns,
        plan.outer.check,
        allowed=plan.config.security.allowed,
        recipe=plan.config.data.recipe(),
        features=plan.config.data.features or (),
        in_order=plan.in_order,
    )
    if job.saved is not None:
        members.restore(job.saved.members, job.saved.left_out, job.saved.features)
        revoked = ", ".join(members.revoke())
        if revoked and limits.absent is Absent.WAIT:
            job.store.close()
            raise ConfigError(
                f"{revoked} began the run and is no longer allowed: go on without it, by limits.absent=continue"
            )
    absence = math.inf if limits.absent is Absent.WAIT else limits.absence
    measured = members.recipe.measured
    hub = Hub(members, plan.constraint, journal, round_limit=limits.round, absence=absence, measured=measured)
    secure = access.tls is not None
    service = FederationService(job.run_id, plan, members, hub, journal, connections, secure=secure)
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
        return await Run(job, progress, gauges, members, hub, journal, connections).run()
    finally:
        service.over = True
        # Clients have hung up before: what is still open is of somebody else.
        await _unless_interrupted(asyncio.gather(server.stop(_SECONDS_FOR_LAST_CALLS), health_server.stop(0)))
        job.store.close()


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
            print(f"interrupted twice; what was saved is in {out}", file=sys.stderr, flush=True)  # noqa: T201
            os._exit(_INTERRUPTED)
        task.cancel()

    with on_interrupt(interrupt):
        yield


async def _unless_interrupted(waiting: Awaitable[object]) -> None:
    """Wait at the end of a run; an interrupt ends the wait, and changes nothing of what the run came to."""
    try:
        await waiting
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None:
            task.uncancel()


class Run:
    """One run, from its clients' coming to its files."""

    def __init__(  # noqa: PLR0913, PLR0917
        self,
        job: Job,
        progress: Progress,
        gauges: Gauges | None,
        members: Members,
        hub: Hub,
        journal: Journal,
        connections: Connections,
    ) -> None:
        """Take the parts that were made for it."""
        self._job, self._journal, self._connections = job, journal, connections
        self._progress, self._gauges = progress, gauges
        self._plan, self._store, self._limits = job.plan, job.store, job.plan.config.limits
        self._members, self._hub = members, hub
        self._presence = Presence(job.store)
        self._rounds: Rounds | None = None
        self._scaling: Scaling | None = None

    async def run(self) -> dict[str, Any]:
        """Return the summary of the finished run."""
        watch = asyncio.create_task(self._watch())
        try:
            summary = await self._run()
            self._hub.goodbye(finished=True, reason="the run is finished")
        except BaseException as error:
            if isinstance(error, asyncio.CancelledError):
                reason = str(error) or "the run was interrupted"
            else:
                reason = "others are away" if type(error) is StoppedError else "it failed"
                reason += "; its coordinator knows more"
            # What errors say of H, of other clients or of this machine is for the coordinator, who reads it at the end.
            self._hub.goodbye(finished=False, reason=reason)
            if not isinstance(error, StoreError):
                if self._rounds is not None:
                    self._store.save(self._rounds.state)
                self._journal.note(Kind.STOPPED, "", reason)
            raise
        else:
            return summary
        finally:
            watch.cancel()
            await _unless_interrupted(self._hub.emptied(self._limits.grace))

    async def _run(self) -> dict[str, Any]:
        rounds = self._rounds = await self._begin()
        while rounds.stopped is None:
            await self._round(rounds)
        self._store.save(rounds.state)
        closing = await self._from_all(rounds, lambda attempt: self._hub.close(rounds.x, attempt))
        inner = sum(reply.inner for reply in closing.replies)
        return self._finish(rounds, inner, rounds.conclude(inner), closing.evaluation)

    async def _begin(self) -> Rounds:
        """Return the rounds: from the start once all clients are there, or from where the run was saved."""
        plan, stop, saved = self._plan, self._plan.config.stop, self._job.saved
        members = await self._hub.everyone() if saved is None else self._members.in_order()
        m, n = sum(member.rows for member in members), members[0].width
        outer = plan.objective(n)
        strict = plan.config.steps.strict and saved is None  # a run that had begun may have gone on with fewer rows
        warn_if_not_covered(plan.steps, m, outer.modulus, strict=strict)
        state = State.at(1, plan.start(n)) if saved is None or saved.state is None else saved.state
        rounds = Rounds(outer, plan.steps, m=m, state=state, last_round=stop.rounds, tolerance=stop.tolerance)
        self._journal.round = state.round
        if saved is None:
            self._members.begun = True
            self._store.begin(members, state, self._members.recipe.features)
            self._progress.say(f"{len(members)} clients, {m} rows, {n} columns: the rounds begin")
        else:
            self._journal.note(Kind.RESUMED, "", f"{len(members)} clients, {m} rows")
            self._progress.say(f"{len(members)} clients, {m} rows, {n} columns: resumed in round {state.round}")
        if self._members.recipe.measured:
            await self._measure(rounds, None if saved is None else saved.scaling)
        return rounds

    async def _measure(self, rounds: Rounds, scaling: Scaling | None) -> None:
        """Tell every client the scaling of the columns: as it was saved, or as the clients' moments give it."""
        attempt = 1
        while scaling is None:
            try:
                scaling = scaling_of(merge(await self._hub.measure(attempt)))
                self._store.scale(scaling)
            except AbsentError as absent:
                self._go_on_without(absent.members, rounds)
                attempt += 1
        self._scaling = scaling
        self._hub.set_up(scaling)

    async def _round(self, rounds: Rounds) -> None:
        began, k = time.perf_counter(), rounds.state.round
        self._journal.round = k
        evaluate = k % self._plan.config.evaluation.every == 0
        gathered = await self._from_all(
            rounds, lambda attempt: self._hub.gather(rounds.order(), attempt, evaluate=evaluate)
        )
        record = rounds.close(gathered.replies)
        if record is None:
            return
        if gathered.evaluation is not None:
            self._store.evaluate(record.round, gathered.evaluation)
        seconds = time.perf_counter() - began
        self._store.add(record, seconds, gathered.times, rounds.state)
        self._progress.round(record, len(self._members.present()), self._members.expected, seconds)
        if self._gauges is not None:
            self._gauges.round(record, seconds)

    async def _from_all(self, rounds: Rounds, ask: Callable[[int], Awaitable[Gathered]]) -> Gathered:
        """Return the answers of all clients; of those that are left, if the run goes on without some."""
        attempt = 1
        while True:
            try:
                return await ask(attempt)
            except AbsentError as absent:
                self._go_on_without(absent.members, rounds)
                attempt += 1

    def _go_on_without(self, absent: list[Member], rounds: Rounds) -> None:
        """Leave these clients out from the current round on; raise StoppedError if the limits say so."""
        names = ", ".join(member.name for member in absent)
        why = "put out" if all(member.put_out for member in absent) else f"away for over {self._limits.absence:g} s"
        left = self._members.expected - len(absent)
        if self._limits.absent is Absent.STOP or not left:
            rule = "limits.absent says to stop" if self._limits.absent is Absent.STOP else "no client is left"
            raise StoppedError(f"{names} {why}, and {rule}; go on with fism server --resume {self._job.out}")
        self._members.leave_out(absent, rounds.state.round)
        m = sum(member.rows for member in self._members.in_order())
        rounds.restart(m)
        event = self._journal.event(Kind.WITHOUT, names, f"{why}; {left} clients and {m} rows are left")
        self._store.leave_out(absent, rounds.state, event)
        self._journal.say(event)
        warn_if_not_covered(self._plan.steps, m, self._plan.outer.modulus, strict=False)

    def _finish(self, rounds: Rounds, inner: float, outer: float, held: Evaluation | None) -> dict[str, Any]:
        self._journal.flush()
        members, recipe = self._members.in_order(), self._members.recipe
        outcome = Outcome(rounds.state, inner, outer, held, members, recipe, self._scaling)
        summary = summarise(self._job, outcome)
        write_files(self._job, outcome, summary)
        self._store.tell({key: summary[key] for key in ("rounds", "stopped", "inner", "outer", "seconds")})
        return summary

    async def _watch(self) -> None:
        """Show who is waited for, and take note of connections that failed."""
        while True:
            await asyncio.sleep(1.0)
            waiting = self._hub.waiting()
            self._progress.waiting(waiting)
            present = [member.name for member in self._members.present()]
            self._presence.tell(present, waiting)
            self._journal.flush()
            if self._gauges is not None:
                self._gauges.clients(len(present), self._members.expected)
                self._gauges.events(self._journal.counts)
            failed = self._connections.failed()
            if failed:
                text = f"{failed} connections without a valid certificate, or without a call"
                self._journal.note(Kind.REFUSED, "", text, failed)
