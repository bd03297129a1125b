"""The command ``fism``."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from fism_client.cli import client
from fism_common.console import command
from fism_server.cli import AsJson, Config, Out, Overrides, Quiet, Verbose, execute, server

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    help="Fit one convex model across sites that cannot pool their data, and pick the one you prefer.",
)
app.command()(server)
app.command()(client)


@app.command()
def run(
    config: Config,
    out: Out = None,
    overrides: Overrides = [],  # noqa: B006  # typer copies it
    as_json: AsJson = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Run a whole federation on this host: the server, and one client process per shard file."""
    with command(quiet=quiet, verbose=verbose):
        from fism.local import run_local

        execute(
            config,
            overrides,
            out,
            lambda plan, folder, progress: run_local(plan, folder, progress, verbose=verbose),
            as_json=as_json,
            quiet=quiet,
        )


@app.command()
def health(
    address: Annotated[str, typer.Argument(help="HOST:PORT of a server.")] = "127.0.0.1:50051",
    timeout: Annotated[float, typer.Option(help="Seconds to wait for an answer.")] = 5.0,
) -> None:
    """Ask a server whether it serves: exit code 0 if it does, 4 if not."""
    with command():
        import grpc
        from grpc_health.v1 import health_pb2, health_pb2_grpc

        from fism_common.errors import StoppedError

        with grpc.insecure_channel(address) as channel:
            stub: Any = health_pb2_grpc.HealthStub(channel)  # its methods are made at run time
            try:
                answer = stub.Check(health_pb2.HealthCheckRequest(), timeout=timeout)
            except grpc.RpcError as error:
                raise StoppedError(f"no answer from {address}: {error.details()}") from None
        if answer.status != health_pb2.HealthCheckResponse.SERVING:
            raise StoppedError(f"{address} does not serve")
        print("serving")  # noqa: T201  # the answer


@app.command()
def version() -> None:
    """Print the version."""
    import fism

    print(fism.__version__)  # noqa: T201  # asked for
