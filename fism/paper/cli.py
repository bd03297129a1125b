"""``fism-paper``: the paper's experiments, one command each."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fism.cli.output import bars, show_tables
from fism_common.console import command

app = typer.Typer(no_args_is_help=True, help="Reproduce the paper's experiments; write tables and plots to a folder.")

Out = Annotated[
    Path | None,
    typer.Option(show_default="paper/NAME, or paper/NAME-quick", help="The folder for the tables and plots."),
]
Quick = Annotated[bool, typer.Option("--quick", help="Run a small part, in under a minute.")]
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
        show_tables(folder, "location.md")


@app.command()
def mnist(
    out: Out = None,
    data: Annotated[
        Path | None,
        typer.Option(envvar="FISM_DATA", help="The folder with MNIST's IDX files; downloaded if not given."),
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
        show_tables(folder, "mnist.md", "mnist-lead.md")


@app.command()
def gamma(out: Out = None, quick: Quick = False) -> None:
    """Try other steps on the location problem: the same step for all methods, and each method's best."""
    with command(), bars() as tick:
        from fism.paper.gamma import gammas as run

        folder = _folder("gamma", out, quick=quick)
        run(folder, quick=quick, tick=tick)
        show_tables(folder, "gamma.md")


@app.command()
def theory(out: Out = None, quick: Quick = False) -> None:
    """Check the theorems and remarks: convergence, the rate, and a round's subgradients and time."""
    with command(), bars() as tick:
        from fism.paper.theory import theory as run

        folder = _folder("theory", out, quick=quick)
        run(folder, quick=quick, tick=tick)
        show_tables(folder, "convergence.md", "rate.md", "subgradients.md", "round.md")


def _folder(name: str, out: Path | None, *, quick: bool) -> Path:
    """Return an experiment's folder; a quick run does not overwrite a full one."""
    return out or Path("paper") / (f"{name}-quick" if quick else name)
