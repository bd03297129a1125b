"""The life of a run: wait for the clients, standardise, the rounds, the solution, the files."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from fism_common.data.moments import scaling as scaling_of
from fism_common.errors import StoppedError, StoreError
from fism_common.exchange import Moments, Solution
from fism_common.wire.messages import Key
from fism_server.algorithm.methods.fism import Fism, start
from fism_server.algorithm.step_rules import warn_if_not_covered
from fism_server.algorithm.stop_rules import RelativeChange
from fism_server.archive.presence import Presence
from fism_server.federation.aggregation import OpenAggregation
from fism_server.federation.notices import EventKind
from fism_server.net.hub import AbsentError
from fism_server.problem.config import OnAbsence
from fism_server.run.summary import Outcome, summarise, write_files

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from fism_common.data.moments import Scaling
    from fism_common.exchange import Question
    from fism_server.algorithm.methods.base import Method
    from fism_server.algorithm.state import State
    from fism_server.archive.events import Journal
    from fism_server.federation.roster import Member, Roster
    from fism_server.net.access import Connections
    from fism_server.net.hub import Gathered, Hub
    from fism_server.run.job import Job
    from fism_server.run.metrics import Gauges
    from fism_server.run.progress import Progress


class Run:
    """One run, from its clients joining to its files."""

    def __init__(  # noqa: PLR0913, PLR0917
        self,
        job: Job,
        roster: Roster,
        hub: Hub,
        journal: Journal,
        connections: Connections,
        progress: Progress,
        gauges: Gauges | None,
    ) -> None:
        """Take the parts of the run."""
        self._job, self._roster, self._hub, self._journal = job, roster, hub, journal
        self._connections, self._progress, self._gauges = connections, progress, gauges
        self._method: Method | None = None
        self._aggregation: OpenAggregation | None = None
        self._questions = 0

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
                reason = "other clients are absent" if type(error) is StoppedError else "it failed"
                reason += "; ask its coordinator for details"
            # Errors may be about H, other clients or this machine: only the coordinator gets to read them.
            self._hub.goodbye(finished=False, reason=reason)
            if not isinstance(error, StoreError):
                if self._method is not None:
                    self._job.archive.save(self._method.state())
                self._journal.note(EventKind.STOPPED, "", reason)
            raise
        else:
            return summary
        finally:
            watch.cancel()
            await unless_interrupted(self._hub.emptied(self._job.plan.config.limits.shutdown_seconds))

    async def _run(self) -> dict[str, Any]:
        if not self._roster.recipe.measured:
            self._hub.set_up(self._job.plan.constraint, None)  # clients load their kernels while others join
        method = self._method = await self._begin()
        scaling = await self._standardise(method) if self._roster.recipe.measured else None
        while method.stopped is None:
            await self._round(method)
        self._job.archive.save(method.state())
        self._hub.round = method.round - 1
        total = (await self._ask(method, Solution(method.x))).sums.total()
        outer = method.conclude(total.inner)
        self._journal.flush()
        outcome = Outcome(
            method, total.inner, outer, total.held_out, self._roster.in_order(), self._roster.recipe, scaling
        )
        summary = summarise(self._job, outcome)
        write_files(self._job, outcome, summary)
        self._job.archive.describe({key: summary[key] for key in ("rounds", "stopped", "inner", "outer", "seconds")})
        return summary

    async def _begin(self) -> Method:
        """Return the method: at its start once all clients have joined, or where the run was saved."""
        plan, saved, archive = self._job.plan, self._job.saved, self._job.archive
        members = await self._everyone() if saved is None else self._roster.in_order()
        n = members[0].width
        state = start(plan.start(n)) if saved is None or saved.state is None else saved.state
        self._hub.round = state.round
        strict = plan.config.steps.strict and saved is None  # a resumed run may have dropped clients
        method = self._make_method(state, members, strict=strict)
        self._aggregation = OpenAggregation(plan.constraint, n, self._roster.recipe.numeric(n))
        size = f"{len(members)} clients, {sum(member.rows for member in members)} rows"
        if saved is None:
            self._roster.begun = True
            archive.begin(members, state, self._roster.recipe.features)
            self._progress.say(f"{size}, {n} columns: the rounds begin")
        else:
            self._journal.note(EventKind.RESUMED, "", size)
            self._progress.say(f"{size}, {n} columns: resumed in round {state.round}")
        return method

    async def _everyone(self) -> list[Member]:
        """Wait for all clients; raise StoppedError if some do not join in time."""
        seconds = self._job.plan.config.limits.start_seconds
        try:
            async with asyncio.timeout(seconds):
                return await self._hub.everyone()
        except TimeoutError:
            missing = ", ".join(self._roster.missing())
            raise StoppedError(
                f"not all clients joined in {seconds:g} s (limits.start_seconds), missing: {missing}; start a new run "
                "when they are ready"
            ) from None

    def _make_method(self, state: State, members: list[Member], *, strict: bool) -> Method:
        """Return the method that the configuration names, at ``state``."""
        plan = self._job.plan
        outer, m, stop = plan.objective(members[0].width), sum(member.rows for member in members), plan.config.stop
        warn_if_not_covered(plan.steps, m, outer.modulus, strict=strict)
        return Fism(
            outer,
            plan.steps,
            m=m,
            state=state,
            last_round=stop.rounds,
            stop=None if stop.tolerance is None else RelativeChange(stop.tolerance),
            evaluate_every=plan.config.evaluation.every,
        )

    async def _standardise(self, method: Method) -> Scaling:
        """Send every client the scaling of the columns: the saved one, or one from the clients' moments."""
        scaling = None if self._job.saved is None else self._job.saved.scaling
        if scaling is None:
            scaling = scaling_of((await self._ask(method, Moments())).sums.moments())
            self._job.archive.scale(scaling)
        self._hub.set_up(self._job.plan.constraint, scaling)
        return scaling

    async def _round(self, method: Method) -> None:
        began, archive = time.perf_counter(), self._job.archive
        self._hub.round = method.round
        gathered = await self._ask(method)
        total = gathered.sums.total()
        record = method.tell(total)
        if record is None:
            return
        if total.held_out is not None:
            archive.evaluate(record.round, total.held_out)
        seconds = time.perf_counter() - began
        archive.add(record, seconds, gathered.members, gathered.timings, method.state)
        self._progress.round(record, len(gathered.members), self._roster.expected, seconds)
        if self._gauges is not None:
            self._gauges.round(record, seconds)

    async def _ask(self, method: Method, question: Moments | Solution | None = None) -> Gathered:
        """Return all answers to a question, by default the method's own. If clients are dropped, ask the rest again."""
        assert self._aggregation is not None  # noqa: S101  # made before the first question
        self._questions += 1
        attempt = 1
        while True:
            asked: Question | None = question or method.ask()
            assert asked is not None  # noqa: S101  # the method has not stopped
            try:
                return await self._hub.ask(asked, Key(self._questions, attempt), self._aggregation)
            except AbsentError as absent:
                self._drop(absent.members, method)
                attempt += 1

    def _drop(self, absent: list[Member], method: Method) -> None:
        """Drop these clients from the current round on; raise StoppedError if the limits say so."""
        limits = self._job.plan.config.limits
        names = ", ".join(member.name for member in absent)
        why = (
            "excluded" if all(member.excluded for member in absent) else f"absent for over {limits.absence_seconds:g} s"
        )
        left = self._roster.expected - len(absent)
        if limits.on_absence is OnAbsence.STOP or not left:
            rule = "limits.on_absence is stop" if limits.on_absence is OnAbsence.STOP else "no client is left"
            raise StoppedError(f"{names} {why}, and {rule}; continue with fism server --resume {self._job.out}")
        self._roster.drop(absent, method.round)
        m = sum(member.rows for member in self._roster.in_order())
        method.restart(m)
        event = self._journal.event(EventKind.DROPPED, names, f"{why}; {left} clients and {m} rows are left")
        self._job.archive.drop(absent, method.state(), event)
        self._journal.log(event)
        warn_if_not_covered(self._job.plan.steps, m, self._job.plan.outer.modulus, strict=False)

    async def _watch(self) -> None:
        """Show the clients that the run waits for, and record failed connections."""
        presence = Presence(self._job.archive)
        while True:
            await asyncio.sleep(1.0)
            waiting = self._hub.waiting()
            self._progress.waiting(waiting)
            present = [member.name for member in self._roster.present()]
            presence.update(present, waiting)
            self._journal.flush()
            if self._gauges is not None:
                self._gauges.clients(len(present), self._roster.expected)
                self._gauges.events(self._journal.counts)
            failed = self._connections.failed()
            if failed:
                text = f"{failed} connections without a valid certificate, or without a call"
                self._journal.note(EventKind.REFUSED, "", text, failed)


async def unless_interrupted(waiting: Awaitable[object]) -> None:
    """Wait at the end of a run; an interrupt ends the wait, but does not change the run's outcome."""
    try:
        await waiting
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None:
            task.uncancel()
