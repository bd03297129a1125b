"""The life of a run: listen, wait for the clients, the rounds, the closing exchange, the files."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import statistics
import time
import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import grpc.aio
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1.health import aio as health

from fism_common.channel import SERVER
from fism_common.errors import ConfigError, InterruptedRunError
from fism_common.files import write_bytes, write_npz
from fism_common.steps import warn_if_not_covered
from fism_server.hub import Hub
from fism_server.members import Members
from fism_server.rounds import Rounds
from fism_server.service import FederationService
from fism_server.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from fism_common.exchange import Evaluation
    from fism_server.members import Member
    from fism_server.plan import Plan
    from fism_server.progress import Progress

_log = logging.getLogger(__name__)
_SECONDS_BETWEEN_WAITS = 30.0


def new_folder(out: Path) -> Path:
    """Make the run's folder; refuse one that has something in it."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        if any(out.iterdir()):
            raise ConfigError(f"the run folder {out} is not empty; choose another with --out")
    except OSError as error:
        raise ConfigError(f"cannot make the run folder {out}: {error.strerror}") from error
    return out


async def serve(  # noqa: PLR0913
    plan: Plan,
    out: Path,
    progress: Progress,
    *,
    listen: str,
    health_listen: str | None = None,
    on_listening: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Run the plan to its end; return the summary, which is also in ``out``.

    ``on_listening`` is told the address, with the port that was taken. Raises InterruptedRunError after a first SIGINT
    or SIGTERM, with the state saved; a second one ends the process.
    """
    with _interruptible():
        try:
            return await _serve(plan, out, progress, listen, health_listen, on_listening)
        except asyncio.CancelledError:
            raise InterruptedRunError(f"interrupted; what the run had done is saved in {out}") from None


async def _serve(  # noqa: PLR0913, PLR0917
    plan: Plan,
    out: Path,
    progress: Progress,
    listen: str,
    health_listen: str | None,
    on_listening: Callable[[str], None],
) -> dict[str, Any]:
    config = plan.config
    members = Members(config.federation.clients, plan.columns)
    hub = Hub(members, plan.constraint, config.limits.round)
    run_id = uuid.uuid4().hex
    service = FederationService(run_id, plan, members, hub)
    store = Store(out / "run.sqlite")
    server, health_server = grpc.aio.server(options=SERVER), grpc.aio.server(options=SERVER)
    server.add_generic_rpc_handlers((service.handler(),))
    servicer = health.HealthServicer()
    for one in (server, health_server):
        health_pb2_grpc.add_HealthServicer_to_server(servicer, one)
    try:
        address = _bind(server, listen)
        await server.start()
        if health_listen is not None:
            _bind(health_server, health_listen)
            await health_server.start()
        await servicer.set("", health_pb2.HealthCheckResponse.SERVING)
        on_listening(address)
        return await Run(plan, out, progress, run_id, members, hub, store).run()
    finally:
        service.over = True
        store.close()
        # A stream that is still open would make stop() wait for all of the grace: goodbye was said before.
        await asyncio.gather(server.stop(config.limits.grace), health_server.stop(0))


def _bind(server: grpc.aio.Server, listen: str) -> str:
    try:
        port = server.add_insecure_port(listen)
    except RuntimeError as error:
        raise ConfigError(
            f"cannot listen on {listen}: the port is in use, or the address is not of this machine"
        ) from error
    host, _, _ = listen.rpartition(":")
    return f"{host}:{port}"


@contextmanager
def _interruptible() -> Iterator[None]:
    """Let a first signal cancel the current task, and a second one end the process at once."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None  # noqa: S101  # this is called from a coroutine
    signals = 0

    def interrupt(number: int) -> None:
        nonlocal signals
        signals += 1
        if signals > 1:
            os._exit(128 + number)
        task.cancel()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, interrupt, signal.SIGINT)
    try:
        yield
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)


class Run:
    """One run, from its clients' coming to its files."""

    def __init__(  # noqa: PLR0913, PLR0917
        self, plan: Plan, out: Path, progress: Progress, run_id: str, members: Members, hub: Hub, store: Store
    ) -> None:
        """Take the parts that were made for it."""
        self._plan, self._out, self._progress, self._run_id = plan, out, progress, run_id
        self._members, self._hub, self._store = members, hub, store
        self._rounds: Rounds | None = None
        self._seconds: list[float] = []

    async def run(self) -> dict[str, Any]:
        """Return the summary of the finished run."""
        watch = asyncio.create_task(self._watch())
        try:
            summary = await self._run()
            self._hub.goodbye(finished=True, reason="the run is finished")
        except BaseException as error:
            if self._rounds is not None:
                self._store.save(self._rounds.state)
            reason = "the run was interrupted" if isinstance(error, asyncio.CancelledError) else str(error)
            self._hub.goodbye(finished=False, reason=reason)
            raise
        else:
            return summary
        finally:
            watch.cancel()
            await self._hub.emptied(self._plan.config.limits.grace)

    async def _run(self) -> dict[str, Any]:
        plan, config = self._plan, self._plan.config
        members = await self._hub.everyone()
        self._members.begun = True
        m, n = sum(member.rows for member in members), members[0].columns
        warn_if_not_covered(plan.steps, m, plan.outer.modulus, strict=config.steps.strict)
        rounds = self._rounds = Rounds(
            plan.outer, plan.steps, m=m, start=plan.start(n), rounds=config.stop.rounds, tolerance=config.stop.tolerance
        )
        self._store.describe({"id": self._run_id, "name": config.federation.name, "rows": m, "columns": n}, members)
        self._progress.say(f"{len(members)} clients, {m} rows, {n} columns: the rounds begin")
        began = time.perf_counter()
        while rounds.stopped is None:
            await self._round(rounds)
        self._store.save(rounds.state)
        closing = await self._hub.close(rounds.x)
        inner = sum(reply.inner for reply in self._hub.replies(closing))
        outer = rounds.conclude(inner)
        return self._finish(rounds, inner, outer, time.perf_counter() - began, members, closing.evaluation)

    async def _round(self, rounds: Rounds) -> None:
        began, order = time.perf_counter(), rounds.order()
        gathered = await self._hub.gather(order, evaluate=order.round % self._plan.config.evaluation.every == 0)
        record = rounds.close(self._hub.replies(gathered))
        if record is None:
            return
        if gathered.evaluation is not None:
            self._store.evaluate(record.round, gathered.evaluation)
        seconds = time.perf_counter() - began
        self._store.add(record, seconds, rounds.state)
        self._seconds.append(seconds)
        self._progress.round(record, len(self._members.present()), self._members.expected, seconds)

    def _finish(  # noqa: PLR0913, PLR0917
        self, rounds: Rounds, inner: float, outer: float, seconds: float, members: list[Member], held: Evaluation | None
    ) -> dict[str, Any]:
        state, stopped = rounds.state, rounds.stopped
        files = {name: str(self._out / name) for name in ("model.npz", "summary.json", "run.sqlite")}
        summary: dict[str, Any] = {
            "run": self._run_id,
            "name": self._plan.config.federation.name,
            "rounds": state.round - 1,
            "stopped": str(stopped),
            "inner": inner,
            "outer": outer,
            "seconds": seconds,
            "round_ms": 1e3 * statistics.median(self._seconds),
            "clients": [{"name": member.name, "rows": member.rows, "shards": member.shards} for member in members],
            "files": files,
        }
        if held is not None:
            summary["held_out"] = {"rows": held.rows, "right": held.right, "loss": held.loss}
        write_npz(self._out / "model.npz", x=state.x, weighted=state.weighted, average=state.average)
        write_bytes(self._out / "summary.json", json.dumps(summary, indent=2).encode() + b"\n")
        self._store.describe({key: summary[key] for key in ("rounds", "stopped", "inner", "outer", "seconds")}, [])
        self._progress.summary(_table(summary))
        return summary

    async def _watch(self) -> None:
        """Say who is not there, at once and then every 30 seconds."""
        while True:
            await asyncio.sleep(1.0)
            missing = self._members.missing()
            if missing:
                self._progress.waiting(missing)
                await asyncio.sleep(_SECONDS_BETWEEN_WAITS)


def _table(summary: dict[str, Any]) -> list[tuple[str, str]]:
    rows = [
        ("rounds", f"{summary['rounds']}, stopped by {summary['stopped']}"),
        ("F, H", f"{summary['inner']:.8g}, {summary['outer']:.8g}"),
        ("time", f"{summary['seconds']:.2f} s, {summary['round_ms']:.2f} ms a round"),
        ("clients", ", ".join(f"{client['name']} ({client['rows']} rows)" for client in summary["clients"][:8])),
    ]
    held = summary.get("held_out")
    if held and held["right"] is not None:
        rows.append(("held out", f"{held['right']} of {held['rows']} rows right"))
    elif held:
        rows.append(("held out", f"mean loss {held['loss'] / held['rows']:.6g} on {held['rows']} rows"))
    return [*rows, ("model", summary["files"]["model.npz"])]
