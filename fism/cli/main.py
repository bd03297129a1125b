"""The command ``fism``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from fism.cli.data import doctor, evaluate, inspect, predict, shard
from fism.cli.results import events, export, report, runs, watch
from fism.paper.cli import app as paper
from fism.paper.cli import bars, told
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
    help="Fit one convex model across sites that cannot pool their data, and pick the one you prefer.",
)
app.command()(server)
app.command()(client)
app.add_typer(paper, name="paper")
for each in (report, watch, runs, export, events, inspect, shard, predict, evaluate, doctor):
    app.command()(each)


@app.command()
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


@app.command()
def compare(
    config: Annotated[Path, typer.Argument(help="A run's TOML file, with a table local of shards.")],
    out: Annotated[Path, typer.Option(help="The folder of the table and the plot.")] = Path("compare"),
    methods: Annotated[list[str], typer.Option("--method", help="One of them; else all that fit.")] = [],  # noqa: B006
    reference: Annotated[
        Path | None, typer.Option(help="The solution, .npy, or .npz with x; else the least F met, and H of a long run.")
    ] = None,
    overrides: Overrides = [],  # noqa: B006
) -> None:
    """Run all methods on one problem: F gap and H gap against rounds, subgradients and seconds."""
    with command():
        from fism.compare import compare as run
        from fism.solving import method_of
        from fism_server.problem.plan import read_plan

        chosen = {"methods": [method_of(name) for name in methods]} if methods else {}
        with bars() as tick:
            run(read_plan(config, overrides), out, reference=reference, tick=tick, **chosen)
        told(out, "compare.md")


certs = typer.Typer(no_args_is_help=True, help="Make and show certificates, for TLS between server and clients.")
app.add_typer(certs, name="certs")
Certs = Annotated[Path, typer.Option(help="The folder of the certificates.")]


@certs.command()
def init(folder: Certs = Path("certs")) -> None:
    """Make a private authority. Its key, ca.key, never leaves this machine."""
    with command():
        from fism.certs import init as make

        print(f"made the authority {make(folder)}; next: fism certs issue server --host NAME-OR-ADDRESS")  # noqa: T201


@certs.command()
def issue(
    name: Annotated[str, typer.Argument(help="A client's name, or the server's.")],
    host: Annotated[list[str], typer.Option(help="A name or address of the server; makes it a server's.")] = [],  # noqa: B006
    days: Annotated[int, typer.Option(min=1, help="How long it is valid.")] = 365,
    renew: Annotated[bool, typer.Option(help="Replace the one before.")] = False,
    folder: Certs = Path("certs"),
) -> None:
    """Issue a certificate: a server's if it has a --host, else a client's."""
    with command():
        from fism.certs import issue as make

        files = make(folder, name, host, days, renew=renew)
        print(f"made {files.certificate} and {files.key}, valid for {days} days")  # noqa: T201
        if not host:
            given = f"{files.ca.name}, {files.certificate.name} and {files.key.name}"
            print(f"give {name} the files {given}, by a safe way")  # noqa: T201


@certs.command()
def show(folder: Certs = Path("certs")) -> None:
    """Show all certificates of a folder, and which to renew."""
    with command():
        from fism.certs import show as rows

        for row in rows(folder):
            print(f"{row.name:<24} {row.what:<32} until {row.until}  {row.advice}".rstrip())  # noqa: T201


@app.command()
def health(
    address: Annotated[str, typer.Argument(help="HOST:PORT of a server.")] = "127.0.0.1:50051",
    files: Annotated[Path | None, typer.Option("--certs", help="The folder of the certificates, for TLS.")] = None,
    name: Annotated[str, typer.Option(help="Whose certificate to show.")] = "",
    timeout: Annotated[float, typer.Option(help="Seconds to wait for an answer.")] = 5.0,
) -> None:
    """Ask a server whether it serves: exit code 0 if it does, 4 if not."""
    with command():
        import grpc
        from grpc_health.v1 import health_pb2, health_pb2_grpc

        from fism_common.errors import ConfigError, StoppedError
        from fism_common.wire.channel import PLAIN

        if files is not None and not name:
            raise ConfigError("give --name with --certs: whose certificate to show")
        if files is None:
            opened = grpc.insecure_channel(address, PLAIN)
        else:
            from fism_common.wire.tls import TlsFiles, channel_credentials

            opened = grpc.secure_channel(address, channel_credentials(TlsFiles.of(files, name)))
        with opened as channel:
            stub: Any = health_pb2_grpc.HealthStub(channel)  # its methods are made at run time
            try:
                answer = stub.Check(health_pb2.HealthCheckRequest(), timeout=timeout)
            except grpc.RpcError as error:
                raise StoppedError(f"no answer from {address}: {error.details()}") from None
        if answer.status != health_pb2.HealthCheckResponse.SERVING:
            raise StoppedError(f"{address} does not serve")
        print("serving")  # noqa: T201  # the answer


@app.command()
def warm() -> None:
    """Compile the kernels now, so that no client's first round has to."""
    with command():
        from fism_client.compute.warm import warm as compile_all

        print(f"compiled kernels are in {compile_all()}")  # noqa: T201  # the answer


@app.command()
def version() -> None:
    """Print the version."""
    import fism

    print(fism.__version__)  # noqa: T201  # asked for
