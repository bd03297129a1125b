"""Checks everything that a client needs before a run: ``fism doctor``."""

from __future__ import annotations

import asyncio
import platform
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING

import grpc

from fism_client.compute import kernel_cache
from fism_client.session.diagnosis import diagnose
from fism_common import __version__
from fism_common.errors import FismError
from fism_common.joining import JoinRequest
from fism_common.wire.channel import open_channel
from fism_common.wire.terms import read_terms, write_join_request

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fism_client.session.participant import Participant
    from fism_common.joining import Terms
    from fism_common.wire.tls import TlsFiles

_SECONDS = 5.0
_PACKAGES = ("grpcio", "protobuf", "numpy", "numba", "duckdb")


@dataclass(frozen=True)
class Finding:
    """The result of one check: what was checked, whether it passed, and details or what to do."""

    what: str
    well: bool
    text: str


def examine(
    server: str, name: str, tls: Callable[[], TlsFiles | None], participant: Callable[[], Participant]
) -> Iterator[Finding]:
    """Yield the result of each check; skip checks that depend on one that failed."""
    packages = ", ".join(f"{name} {version(name)}" for name in _PACKAGES)
    yield Finding("versions", well=True, text=f"fism {__version__}, Python {platform.python_version()}, {packages}")
    yield _kernels()
    who = files = None
    try:
        who = participant()
        columns = f"{who.columns} columns" + ("" if who.schema else " without names")
        yield Finding("data", well=True, text=f"{who.rows} rows to train on, {columns}")
    except FismError as error:
        yield Finding("data", well=False, text=str(error))
    try:
        files = tls()
        text = "plain text" if files is None else f"{files.certificate} is valid"
        yield Finding("certificates", well=True, text=text)
    except FismError as error:
        yield Finding("certificates", well=False, text=str(error))
        return
    yield from _check_server(server, files, name, who)


def _kernels() -> Finding:
    try:
        folder = kernel_cache.folder()
    except FismError as error:
        return Finding("kernels", well=False, text=str(error))
    compiled = sum(1 for _ in folder.rglob("*.nbc"))
    if not compiled:
        return Finding(
            "kernels", well=True, text="none compiled yet: the first round takes seconds; run fism warm to compile now"
        )
    return Finding("kernels", well=True, text=f"{compiled} compiled in {folder}")


def _check_server(server: str, tls: TlsFiles | None, name: str, who: Participant | None) -> Iterator[Finding]:
    """Check that the server answers and, if the data loaded, that this client could join."""
    request = JoinRequest(name=name, dry_run=True) if who is None else who.request(dry_run=True)
    try:
        terms = asyncio.run(_dry_run(server, tls, request))
    except grpc.RpcError as error:
        status, reason = error.code(), error.details()
        if status in {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED}:
            why = (
                diagnose(server, tls)
                or f"no connection to {server}: {reason}; is the address right, and is the server running?"
            )
            yield Finding("server", well=False, text=why)
        else:
            yield Finding("server", well=True, text=f"{server} answers")
            if who is not None:
                yield Finding("joining", well=False, text="\n".join([reason or status.name, *who.doubts()]))
        return
    same = "" if terms.version == __version__ else f"; it runs fism {terms.version}, but this is {__version__}"
    yield Finding("server", well=not same, text=f"{server} answers{same}")
    if who is not None:
        yield Finding("joining", well=True, text=f"{who.name!r} can join run {terms.run_id}")
        yield _fit(terms, who)


def _fit(terms: Terms, who: Participant) -> Finding:
    """Check that the data can be encoded and that its labels fit the loss."""
    try:
        n = who.prepare(terms.recipe).train.columns
        who.check_labels(terms.loss)
    except FismError as error:
        return Finding("columns", well=False, text=str(error))
    return Finding("columns", well=True, text=f"the rows have {n} columns, the labels fit the loss {terms.loss.kind!r}")


async def _dry_run(server: str, tls: TlsFiles | None, request: JoinRequest) -> Terms:
    """Ask the server whether this client could join, without joining."""
    async with open_channel(server, tls) as channel:
        call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary("/fism.v1.Federation/Join")
        return read_terms(await call(write_join_request(request), timeout=_SECONDS))
