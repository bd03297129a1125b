"""Looks at all that a client needs before a run: ``fism doctor``."""

from __future__ import annotations

import asyncio
import platform
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING

import grpc

from fism_client.compute import kernel_cache
from fism_client.session.diagnosis import diagnose
from fism_client.session.session import join_request
from fism_common import __version__
from fism_common.data.columns import read_recipe
from fism_common.errors import FismError
from fism_common.wire.channel import open_channel
from fism_common.wire.codec import PROTOCOL, read_message
from fism_common.wire.pb import federation_pb2 as pb
from fism_common.wire.terms import read_loss

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fism_client.session.participant import Participant
    from fism_common.wire.tls import TlsFiles

_SECONDS = 5.0
_PACKAGES = ("grpcio", "protobuf", "numpy", "numba", "duckdb")


@dataclass(frozen=True)
class Finding:
    """One look: what at, whether it is well, and what was seen or is to be done."""

    what: str
    well: bool
    text: str


def examine(
    server: str, name: str, tls: Callable[[], TlsFiles | None], participant: Callable[[], Participant]
) -> Iterator[Finding]:
    """Yield what is found, one look after another; those that another's failure makes idle are left out."""
    told = ", ".join(f"{name} {version(name)}" for name in _PACKAGES)
    yield Finding("versions", well=True, text=f"fism {__version__}, Python {platform.python_version()}, {told}")
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
    yield from _at_the_server(server, files, name, who)


def _kernels() -> Finding:
    try:
        folder = kernel_cache.folder()
    except FismError as error:
        return Finding("kernels", well=False, text=str(error))
    kept = sum(1 for _ in folder.rglob("*.nbc"))
    if not kept:
        return Finding(
            "kernels", well=True, text="none compiled yet: the first round takes seconds; fism warm does it now"
        )
    return Finding("kernels", well=True, text=f"{kept} compiled in {folder}")


def _at_the_server(server: str, tls: TlsFiles | None, name: str, who: Participant | None) -> Iterator[Finding]:
    """Look whether the server answers and, with data, whether this client could join with it."""
    request = pb.JoinRequest(protocol=PROTOCOL, name=name, probe=True) if who is None else join_request(who, probe=True)
    try:
        terms = asyncio.run(_probe(server, tls, request))
    except grpc.RpcError as error:
        status, reason = error.code(), error.details()
        if status in {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED}:
            why = (
                diagnose(server, tls)
                or f"no connection to {server}: {reason}; is it the right address, and does it run?"
            )
            yield Finding("server", well=False, text=why)
        else:
            yield Finding("server", well=True, text=f"{server} answers")
            if who is not None:
                yield Finding("joining", well=False, text="\n".join([reason or status.name, *who.doubts()]))
        return
    same = "" if terms.version == __version__ else f"; it runs fism {terms.version}, and this is {__version__}"
    yield Finding("server", well=not same, text=f"{server} answers{same}")
    if who is not None:
        yield Finding("joining", well=True, text=f"{who.name!r} can take part in run {terms.run_id}")
        yield _fit(terms, who)


def _fit(terms: pb.JoinReply, who: Participant) -> Finding:
    """Return whether the data makes rows, with labels that fit the loss."""
    try:
        n = who.prepare(read_recipe(terms.recipe))
        who.check_labels(read_loss(terms.loss))
    except FismError as error:
        return Finding("columns", well=False, text=str(error))
    return Finding("columns", well=True, text=f"the rows have {n} columns, and labels for the loss {terms.loss.name!r}")


async def _probe(server: str, tls: TlsFiles | None, request: pb.JoinRequest) -> pb.JoinReply:
    """Ask whether this client could join, without joining."""
    async with open_channel(server, tls) as channel:
        call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary("/fism.v1.Federation/Join")
        answer = await call(request.SerializeToString(), timeout=_SECONDS)
    return read_message(pb.JoinReply, answer)
