"""How a server can be reached, and by whom: addresses, certificates, and the limits before anybody is known."""

from __future__ import annotations

import contextlib
import logging
import resource
import threading
import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fism_common.errors import ConfigError, NotAllowedError
from fism_common.wire.tls import SERVER, check_files, expires_soon, is_local, is_unix, server_credentials

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    import grpc.aio

    from fism_common.wire.tls import TlsFiles

_log = logging.getLogger(__name__)
_SECONDS_TO_CALL = 5.0
_SECONDS_TO_REMEMBER = 600.0


@dataclass(frozen=True, kw_only=True)
class Access:
    """Where to listen, and with which certificate."""

    listen: str
    health: str | None = None
    """An address for health checks alone, in plain text."""
    tls: TlsFiles | None = None
    insecure: bool = False
    """Whether plain text may be spoken with other hosts."""

    def check(self) -> None:
        """Refuse what would be less safe than it looks: plain text beyond this host, a certificate that is no use."""
        if self.tls is not None:
            if self.insecure:
                raise ConfigError("with certificates nothing is insecure: give --certs or --insecure, not both")
            certificate = check_files(self.tls, SERVER)
            if expires_soon(certificate):
                _log.warning("%s expires on %s", self.tls.certificate, f"{certificate.not_valid_after_utc:%Y-%m-%d}")
        elif not is_local(self.listen) and not self.insecure:
            raise ConfigError(
                f"without certificates the server listens on this host only, and {self.listen} is open to others: "
                "give --certs with a folder of fism certs, or --insecure if everybody there may join and read"
            )
        if self.health is not None and not is_local(self.health) and not self.insecure:
            raise ConfigError(
                f"health checks by plain text are for this host only, and {self.health} is open to others; from there "
                "ask the server's own port, with a certificate"
            )

    def bind(self, server: grpc.aio.Server, connections: Connections) -> str:
        """Let a server listen; return the address with the port that was taken."""
        with contextlib.suppress(OSError, ValueError):  # a flood must not use up what the database needs
            _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        if self.tls is None:
            return _bind(server.add_insecure_port, self.listen)
        credentials = server_credentials(self.tls, connections.begin)
        return _bind(lambda address: server.add_secure_port(address, credentials), self.listen)

    def bind_health(self, server: grpc.aio.Server) -> None:
        """Let a server for health checks listen, if one is asked for."""
        if self.health is not None:
            _bind(server.add_insecure_port, self.health)

    @property
    def told(self) -> str:
        """What to add to the line that says where the server listens."""
        return " INSECURE: in plain text, for everybody who can reach it" if self.insecure else ""


def _bind(add: Callable[[str], int], address: str) -> str:
    try:
        port = add(address)
    except RuntimeError as error:
        raise ConfigError(
            f"cannot listen on {address}: the port is in use, or the address is not of this machine"
        ) from error
    return address if is_unix(address) else f"{address.rpartition(':')[0]}:{port}"


class Connections:
    """Counts the connections that did not get past their handshake: gRPC does not tell of them.

    It asks for a certificate before each handshake. One after which no call comes in five seconds has failed, or is of
    somebody who only wants to hold it open.
    """

    def __init__(self) -> None:
        """Count from nothing."""
        self._lock = threading.Lock()
        self._begun: deque[float] = deque()
        self._seen: dict[str, float] = {}
        self._old = self._called = self._told = 0

    def begin(self) -> None:
        """Count a connection; called from any thread."""
        with self._lock:
            self._begun.append(time.monotonic())

    def call(self, peer: str) -> None:
        """Take note that a connection, known by its far end, has made a call."""
        if peer not in self._seen:
            self._seen[peer] = time.monotonic()
            self._called += 1

    def failed(self) -> int:
        """Return how many more have failed since this was asked last."""
        before = time.monotonic() - _SECONDS_TO_CALL
        self._seen = {peer: at for peer, at in self._seen.items() if at > before - _SECONDS_TO_REMEMBER}
        with self._lock:
            while self._begun and self._begun[0] < before:
                self._begun.popleft()
                self._old += 1
        new = self._old - self._called - self._told
        self._told += max(new, 0)
        return max(new, 0)


def identity(auth: Mapping[str, Iterable[bytes]], *, secure: bool) -> str | None:
    """Return the name in the caller's certificate; None where plain text is spoken, which is not ``secure``."""
    if not secure:
        return None
    if list(auth.get("ssl_tls_version", ())) != [b"TLSv1.3"]:
        raise NotAllowedError("only TLS 1.3 is spoken here")
    if list(auth.get("ssl_session_reused", ())) != [b"false"]:  # its certificate may have expired since
        raise NotAllowedError("every connection shows its certificate; do not resume a session")
    names = list(auth.get("x509_common_name", ()))
    if len(names) != 1:
        raise NotAllowedError("a client's certificate has one name")
    return names[0].decode(errors="replace")
