"""The commands for existing runs: ``report``, ``watch``, ``runs``, ``export``, ``events``."""

from __future__ import annotations

import json
import time
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from fism.cli.data import AsJson  # noqa: TC001  # typer reads it
from fism_common.console import command

Folder = Annotated[Path, typer.Argument(help="The run's folder.")]


class Format(StrEnum):
    """File formats for a run's tables."""

    CSV = "csv"
    PARQUET = "parquet"
    JSON = "json"


def report(
    run: Folder,
    out: Annotated[
        Path | None, typer.Option(show_default="report.html in the run's folder", help="The file to write.")
    ] = None,
    pictures: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Also write the plots, as PNG and SVG.")
    ] = None,
) -> None:
    """Write a report of a run, finished or in progress, as one HTML page that works offline."""
    with command():
        from fism_common.errors import ConfigError
        from fism_server.report.page import write_report

        try:
            print(f"wrote {write_report(run, out)}")  # noqa: T201
        except OSError as error:
            raise ConfigError(f"cannot write the report: {error}; choose another file with --out") from error
        if pictures is not None:
            from fism.report_plots import write_pictures

            try:
                print(f"wrote {len(write_pictures(run, pictures))} pictures to {pictures}")  # noqa: T201
            except OSError as error:
                raise ConfigError(f"cannot write the pictures: {error}") from error


def watch(
    run: Folder,
    listen: Annotated[str, typer.Option(help="HOST:PORT for a browser; port 0 takes a free one.")] = "127.0.0.1:8765",
    insecure: Annotated[bool, typer.Option(help="Let anyone who can reach the page read it.")] = False,
) -> None:
    """Show a run in a browser, live and read-only. Ctrl-C stops the page, not the run."""
    with command():
        import threading

        from fism_server.report.watch import WatchServer, url_of
        from fism_server.report.watch import listen as listen_on

        with listen_on(listen, insecure=insecure) as listening:
            server = WatchServer(run, listening)
            print(f"watch it at {url_of(listening)}", flush=True)  # noqa: T201
            server.serve(threading.Event().wait)


def runs(
    folder: Annotated[Path, typer.Argument(help="The folder with the runs.")] = Path("runs"),
    as_json: AsJson = False,
) -> None:
    """List runs with their progress and results."""
    with command():
        from dataclasses import asdict

        from fism.runs import find_runs, table

        found = find_runs(folder)
        if as_json:
            print(json.dumps([asdict(run) for run in found], indent=2))  # noqa: T201  # --json output
            return
        for line in table(found):
            print(line)  # noqa: T201


def export(
    run: Folder,
    form: Annotated[Format, typer.Option("--format", help="The file format.")] = Format.CSV,
    out: Annotated[
        Path | None, typer.Option(show_default="export in the run's folder", help="The folder for the files.")
    ] = None,
) -> None:
    """Write a run's rounds, times, clients, events, evaluations and coefficients as tables."""
    with command():
        from fism.export import export as write

        for file in write(run, out or run / "export", form):
            print(f"wrote {file}")  # noqa: T201


def events(
    run: Folder,
    as_json: AsJson = False,
) -> None:
    """Show what went wrong in a run, finished or in progress, and how it was handled."""
    with command():
        from dataclasses import asdict

        from fism_server.archive.reader import events as read_events

        found = read_events(run)
        if as_json:
            print(json.dumps([asdict(event) for event in found], indent=2))  # noqa: T201  # --json output
            return
        for event in found:
            at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(event.at))
            times = f" ({event.count} times)" if event.count > 1 else ""
            print(f"{at}  round {event.round:<7} {event.kind:<9} {event.client or '-'}: {event.text}{times}")  # noqa: T201
