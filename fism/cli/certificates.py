"""``fism certs``: certificates for TLS between server and clients."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fism_common.console import command

certs = typer.Typer(no_args_is_help=True, help="Create and list certificates for TLS between server and clients.")
Certs = Annotated[Path, typer.Option(help="The folder with the certificates.")]


@certs.command()
def init(folder: Certs = Path("certs")) -> None:
    """Create a private certificate authority. Its key, ca.key, never leaves this machine."""
    with command():
        from fism.certs import init as make

        print(f"created the authority {make(folder)}; next: fism certs issue server --host NAME-OR-ADDRESS")  # noqa: T201


@certs.command()
def issue(
    name: Annotated[str, typer.Argument(help="A client's name, or the server's.")],
    host: Annotated[list[str], typer.Option(help="The server's host name or address, for a server certificate.")] = [],  # noqa: B006
    days: Annotated[int, typer.Option(min=1, help="Days until it expires.")] = 365,
    renew: Annotated[bool, typer.Option(help="Replace the existing certificate.")] = False,
    folder: Certs = Path("certs"),
) -> None:
    """Issue a certificate: for a server with --host, otherwise for a client."""
    with command():
        from fism.certs import issue as make

        files = make(folder, name, host, days, renew=renew)
        print(f"created {files.certificate} and {files.key}, valid for {days} days")  # noqa: T201
        if not host:
            given = f"{files.ca.name}, {files.certificate.name} and {files.key.name}"
            print(f"send {name} the files {given} over a secure channel")  # noqa: T201


@certs.command()
def show(folder: Certs = Path("certs")) -> None:
    """List the certificates in a folder, and which ones to renew."""
    with command():
        from fism.certs import show as rows

        for row in rows(folder):
            print(f"{row.name:<24} {row.what:<32} until {row.until}  {row.advice}".rstrip())  # noqa: T201
