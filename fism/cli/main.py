"""The command ``fism``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from fism.cli.certificates import certs
from fism.cli.data import doctor, evaluate, inspect, predict, shard
from fism.cli.output import bars, show_tables
from fism.cli.results import events, export, report, runs, watch
from fism_client.cli import client
from fism_common.console import command
from fism_server.cli import (
    AsJson,
    Config,
    Metrics,
    Out,
    Overrides,
    Quiet,
    Resume,
    Verbose,
    Watched,
    execute,
    find_job,
    server,
)

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    help="Fit one convex model across sites that cannot pool their data, and select the one you prefer.",
)
FEDERATE, DATA, RUNS, MODELS, TOOLS = "Federate", "Data", "Runs", "Models", "Tools"
for panel, commands in (
    (FEDERATE, (server, client)),
    (DATA, (inspect, shard, doctor)),
    (RUNS, (runs, report, watch, export, events)),
    (MODELS, (predict, evaluate)),
):
    for one in commands:
        app.command(rich_help_panel=panel)(one)
app.add_typer(certs, name="certs", rich_help_panel=FEDERATE)


@app.command(rich_help_panel=FEDERATE)
def run(
    config: Config = None,
    out: Out = None,
    resume: Resume = None,
    overrides: Overrides = [],  # noqa: B006  # typer copies it
    watched: Watched = False,
    metrics: Metrics = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Run a whole federation on this host: the server, and one client process per shard file."""
    with command(quiet=quiet, verbose=verbose):
        from fism.local import clients_of, run_local

        execute(
            find_job(config, overrides, out, resume, clients_of),
            lambda job, progress, gauges: run_local(job, progress, gauges, verbose=verbose),
            watch=watched,
            metrics=metrics,
            as_json=as_json,
            quiet=quiet,
        )


@app.command(rich_help_panel=MODELS)
def compare(
    config: Annotated[Path, typer.Argument(help="A run's TOML file, with a table named local.")],
    out: Annotated[Path, typer.Option(help="The folder for the table and the plot.")] = Path("compare"),
    methods: Annotated[list[str], typer.Option("--method", help="A method to run; by default all that fit.")] = [],  # noqa: B006
    reference: Annotated[
        Path | None,
        typer.Option(help="A known solution, .npy or .npz with x; by default the lowest F and a long run's H."),
    ] = None,
    overrides: Overrides = [],  # noqa: B006
) -> None:
    """Run all methods on one problem; compare F and H gaps by rounds, subgradients and seconds."""
    with command():
        from fism.compare import compare as run
        from fism.solving import method_of
        from fism_server.problem.plan import read_plan

        chosen = {"methods": [method_of(name) for name in methods]} if methods else {}
        with bars() as tick:
            run(read_plan(config, overrides), out, reference=reference, tick=tick, **chosen)
        show_tables(out, "compare.md")


@app.command(rich_help_panel=TOOLS)
def health(
    address: Annotated[str, typer.Argument(help="HOST:PORT of a server.")] = "127.0.0.1:50051",
    files: Annotated[Path | None, typer.Option("--certs", help="The folder with the certificates, for TLS.")] = None,
    name: Annotated[str, typer.Option(help="The certificate to present, by name.")] = "",
    timeout: Annotated[float, typer.Option(help="Seconds to wait for an answer.")] = 5.0,
) -> None:
    """Check that a server is healthy: exit code 0 if it is, 4 if not."""
    with command():
        import grpc
        from grpc_health.v1 import health_pb2, health_pb2_grpc

        from fism_common.errors import ConfigError, StoppedError
        from fism_common.wire.channel import PLAIN

        if files is not None and not name:
            raise ConfigError("--certs needs --name, the certificate to present")
        if files is None:
            opened = grpc.insecure_channel(address, PLAIN)
        else:
            from fism_common.wire.tls import TlsFiles, channel_credentials

            opened = grpc.secure_channel(address, channel_credentials(TlsFiles.of(files, name)))
        with opened as channel:
            stub: Any = health_pb2_grpc.HealthStub(channel)  # its methods are created at run time
            try:
                answer = stub.Check(health_pb2.HealthCheckRequest(), timeout=timeout)
            except grpc.RpcError as error:
                raise StoppedError(f"no answer from {address}: {error.details()}") from None
        if answer.status != health_pb2.HealthCheckResponse.SERVING:
            raise StoppedError(f"{address} is not healthy")
        print("serving")  # noqa: T201  # the answer


@app.command(rich_help_panel=TOOLS)
def warm() -> None:
    """Compile the kernels now, so that a client's first round need not."""
    with command():
        from fism_client.compute.warm import warm as compile_all

        print(f"compiled kernels are in {compile_all()}")  # noqa: T201  # the answer


@app.command(rich_help_panel=TOOLS)
def version() -> None:
    """Print the version."""
    import fism

    print(fism.__version__)  # noqa: T201  # the answer
