"""``fism server``: coordinates a federation."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fism_common.console import command

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from fism_server.plan import Plan
    from fism_server.progress import Progress

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

Config = Annotated[Path, typer.Argument(help="The run's TOML file.")]
Overrides = Annotated[
    list[str], typer.Option("--set", metavar="KEY=VALUE", help="Override a key: --set steps.gamma=5.")
]
Out = Annotated[Path | None, typer.Option(help="The run's folder, new or empty.  [default: runs/NAME-TIME]")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the summary as JSON on standard output.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Say more.")]


@app.command()
def server(
    config: Config,
    listen: Annotated[str, typer.Option(help="HOST:PORT to listen on; port 0 takes a free one.")] = "127.0.0.1:50051",
    health: Annotated[str | None, typer.Option(help="HOST:PORT for health checks alone.")] = None,
    out: Out = None,
    overrides: Overrides = [],  # noqa: B006  # typer copies it
    as_json: AsJson = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Coordinate a federation: wait for its clients, run the rounds, write the model."""
    with command(quiet=quiet, verbose=verbose):
        from fism_server.run import serve

        execute(
            config,
            overrides,
            out,
            lambda plan, folder, progress: serve(
                plan,
                folder,
                progress,
                listen=listen,
                health_listen=health,
                on_listening=lambda address: progress.say(f"listening on {address}"),
            ),
            as_json=as_json,
            quiet=quiet,
        )


def execute(
    config: Path,
    overrides: list[str],
    out: Path | None,
    work: Callable[[Plan, Path, Progress], Coroutine[Any, Any, dict[str, Any]]],
    *,
    as_json: bool,
    quiet: bool,
) -> None:
    """Read the plan, make its folder, do the ``work`` with progress shown, and print the summary if asked to."""
    from fism_server.plan import read_plan
    from fism_server.progress import Progress
    from fism_server.run import new_folder

    plan = read_plan(config, overrides)
    folder = new_folder(out or default_folder(plan))
    with Progress(plan.config.stop.rounds, quiet=quiet) as progress:
        summary = asyncio.run(work(plan, folder, progress))
    if as_json:
        print(json.dumps(summary, indent=2))  # noqa: T201  # asked for


def default_folder(plan: Plan) -> Path:
    """Return a folder that no other run has."""
    return Path("runs") / f"{plan.config.federation.name}-{time.strftime('%Y%m%d-%H%M%S')}"
