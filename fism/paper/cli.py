"""``fism paper``: the paper's experiments, one command each."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fism_common.console import command

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.progress import TaskID

app = typer.Typer(no_args_is_help=True, help="Run the paper's experiments again: tables and plots in a folder.")

Out = Annotated[
    Path | None,
    typer.Option(show_default="paper/NAME, or paper/NAME-quick", help="The folder of the tables and plots."),
]
Quick = Annotated[bool, typer.Option("--quick", help="A small part, in under a minute.")]
Runs = Annotated[
    int | None,
    typer.Option(
        min=1, show_default="10, or 2 with --quick", help="Random instances, or orders of the data, to average over."
    ),
]


@app.command()
def location(out: Out = None, quick: Quick = False, runs: Runs = None) -> None:
    """Section IV.B, Table I: the location problem, IR-IG against FISM on 1, 2, 4 and 8 clients."""
    with command(), bars() as tick:
        from fism.paper.location import location as run

        folder = _folder("location", out, quick=quick)
        run(folder, quick=quick, runs=runs, tick=tick)
        told(folder, "location.md")


@app.command()
def mnist(
    out: Out = None,
    data: Annotated[
        Path | None, typer.Option(envvar="FISM_DATA", help="The folder of MNIST's IDX files; else it is downloaded.")
    ] = None,
    quick: Quick = False,
    runs: Runs = None,
) -> None:
    """Section IV.A: zeros and ones of MNIST, IR-IG against FISM on 1, 2, 4 and 8 clients."""
    with command(), bars() as tick:
        from fism.paper.digits import cache_folder, download
        from fism.paper.mnist import mnist as run

        if data is None:
            data = cache_folder()
            download(data, tick)
        folder = _folder("mnist", out, quick=quick)
        run(folder, data, quick=quick, runs=runs, tick=tick)
        told(folder, "mnist.md", "mnist-lead.md")


@app.command()
def gamma(out: Out = None, quick: Quick = False) -> None:
    """Try other steps on the location problem: the same for all methods, and each with its best."""
    with command(), bars() as tick:
        from fism.paper.gamma import gammas as run

        folder = _folder("gamma", out, quick=quick)
        run(folder, quick=quick, tick=tick)
        told(folder, "gamma.md")


@app.command()
def theory(out: Out = None, quick: Quick = False) -> None:
    """Check the theorems and remarks: convergence, the rate, subgradients and time of a round."""
    with command(), bars() as tick:
        from fism.paper.theory import theory as run

        folder = _folder("theory", out, quick=quick)
        run(folder, quick=quick, tick=tick)
        told(folder, "convergence.md", "rate.md", "subgradients.md", "round.md")


def _folder(name: str, out: Path | None, *, quick: bool) -> Path:
    """Return where an experiment is written: a quick one not over one that took long."""
    return out or Path("paper") / (f"{name}-quick" if quick else name)


@contextmanager
def bars() -> Iterator[Callable[[str, int, int], None]]:
    """Show a bar for each part of an experiment."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        bars: dict[str, TaskID] = {}

        def tick(what: str, done: int, total: int) -> None:
            if what not in bars:
                bars[what] = progress.add_task(what, total=total)
            progress.update(bars[what], completed=done)

        yield tick


def told(folder: Path, *tables: str) -> None:
    """Print tables of an experiment, and where they are."""
    for table in tables:
        print((folder / table).read_text())  # noqa: T201  # the result
    print(f"all of it is in {folder}")  # noqa: T201
