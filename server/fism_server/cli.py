"""``fism server``: coordinates a federation."""

from __future__ import annotations

import asyncio
import json
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fism_common.console import command

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from fism_common.wire.tls import TlsFiles
    from fism_server.problem.plan import Plan
    from fism_server.run.job import Job
    from fism_server.run.metrics import Gauges
    from fism_server.run.progress import Progress

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

_RUNS = Path("runs")

Config = Annotated[Path | None, typer.Argument(help="The run's TOML file; not needed with --resume.")]
Overrides = Annotated[
    list[str], typer.Option("--set", metavar="KEY=VALUE", help="Override a key: --set steps.gamma=5.")
]
Out = Annotated[Path | None, typer.Option(show_default="runs/NAME-TIME", help="The run's folder, new or empty.")]
Resume = Annotated[Path | None, typer.Option(metavar="RUN", help="Resume the run in this folder.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the summary as JSON on standard output.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print only errors.")]
Watched = Annotated[bool, typer.Option("--watch", help="Show the run live in a browser on this host.")]
Metrics = Annotated[
    str | None, typer.Option(metavar="HOST:PORT", help="Serve Prometheus metrics at this address, in plain text.")
]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Print more.")]


@app.command()
def server(
    config: Config = None,
    listen: Annotated[str, typer.Option(help="HOST:PORT to listen on; port 0 picks a free one.")] = "127.0.0.1:50051",
    health: Annotated[str | None, typer.Option(help="HOST:PORT for health checks only.")] = None,
    certs: Annotated[Path | None, typer.Option(help="The folder made by fism certs, for TLS.")] = None,
    insecure: Annotated[bool, typer.Option(help="Allow plain text with other hosts.")] = False,
    out: Out = None,
    resume: Resume = None,
    resume_latest: Annotated[
        bool, typer.Option(help="Resume the latest run in runs/ if it is not finished; else start a new one.")
    ] = False,
    overrides: Overrides = [],  # noqa: B006  # typer copies it
    watched: Watched = False,
    metrics: Metrics = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Coordinate a federation: wait for its clients, run the rounds, write the model."""
    with command(quiet=quiet, verbose=verbose):
        from fism_server.net.access import Access
        from fism_server.run.serve import serve

        def access(plan: Plan) -> Access:
            return Access(listen=listen, health=health, tls=tls_files(plan, certs), insecure=insecure)

        warning = Access(listen=listen, insecure=insecure).warning
        execute(
            find_job(config, overrides, out, resume, lambda plan: access(plan).check(), latest=resume_latest),
            lambda job, progress, gauges: serve(
                job,
                access(job.plan),
                progress,
                gauges,
                on_listening=lambda address: progress.say(f"listening on {address}{warning}"),
            ),
            watch=watched,
            metrics=metrics,
            as_json=as_json,
            quiet=quiet,
        )


def tls_files(plan: Plan, certs: Path | None) -> TlsFiles | None:
    """Return the server's TLS files, in ``certs`` or in the configuration's folder; None if there is neither."""
    security = plan.config.security
    if certs is None and security.certs is None:
        return None
    from fism_common.wire.tls import TlsFiles

    folder = certs if certs is not None else plan.folder / (security.certs or "")
    return TlsFiles.of(folder, security.name)


def find_job(
    config: Path | None,
    overrides: list[str],
    out: Path | None,
    resume: Path | None,
    check: Callable[[Plan], object] = lambda _: None,
    *,
    latest: bool = False,
) -> Job:
    """Return the run that the options describe, new or resumed, after a ``check`` of its plan."""
    from fism_common.errors import ConfigError
    from fism_server.problem.plan import read_plan
    from fism_server.run.job import latest_unfinished, new_job, new_name, resumed_job

    if sum([resume is not None, out is not None, latest]) > 1:
        raise ConfigError("--resume, --out and --resume-latest each choose the run's folder: give only one of them")
    if resume is None:
        if config is None:
            raise ConfigError("give the run's TOML file, or --resume with a run's folder")
        plan = read_plan(config, overrides)
        name = plan.config.federation.name
        resume = latest_unfinished(_RUNS, name) if latest else None
        if resume is None:
            check(plan)
            return new_job(plan, out or _RUNS / new_name(name))
    job = resumed_job(resume, config, overrides)
    check(job.plan)
    return job


def execute(
    job: Job,
    work: Callable[[Job, Progress, Gauges | None], Coroutine[Any, Any, dict[str, Any]]],
    *,
    watch: bool,
    metrics: str | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Run the job with ``work``, show its progress, and print the summary if ``as_json``."""
    from fism_server.run.progress import Progress

    with ExitStack() as stack:
        progress = stack.enter_context(Progress(job.plan.config.stop.rounds, quiet=quiet))
        gauges = None
        if metrics is not None:
            from fism_server.run.metrics import Gauges

            gauges, address = stack.enter_context(Gauges.served(metrics))
            progress.say(f"metrics on {address}")
        if watch:
            from fism_server.report.watch import watched

            progress.say(f"watch it at {stack.enter_context(watched(job.out))}")
        summary = asyncio.run(work(job, progress, gauges))
    if as_json:
        print(json.dumps(summary, indent=2))  # noqa: T201  # --json
