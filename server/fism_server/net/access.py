"""Access to a server: addresses, certificates, and checks before a caller is authenticated."""

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
    """An address for health checks only, in plain text."""
    tls: TlsFiles | None = None
    insecure: bool = False
    """Whether plain text is allowed with other hosts."""

    def check(self) -> None:
        """Refuse a setup that is less safe than it looks: plain text with other hosts, an unusable certificate."""
        if self.tls is not None:
            if self.insecure:
                raise ConfigError("certificates and --insecure contradict each other: use only one of them")
            certificate = check_files(self.tls, SERVER)
            if expires_soon(certificate):
                _log.warning("%s expires on %s", self.tls.certificate, f"{certificate.not_valid_after_utc:%Y-%m-%d}")
        elif not is_local(self.listen) and not self.insecure:
            raise ConfigError(
                f"without certificates the server listens on this host only, but other hosts can reach {self.listen}: "
                "give --certs with a folder made by fism certs, or --insecure if everyone there may join and read"
            )
        if self.health is not None and not is_local(self.health) and not self.insecure:
            raise ConfigError(
                f"health checks in plain text are for this host only, but other hosts can reach {self.health}; from "
                "there, use the server's main port, with a certificate"
            )

    def bind(self, server: grpc.aio.Server, connections: Connections) -> str:
        """Make a server listen; return the address with the actual port."""
        with contextlib.suppress(OSError, ValueError):  # a flood must not use up the files that the database needs
            _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        if self.tls is None:
            return _bind(server.add_insecure_port, self.listen)
        credentials = server_credentials(self.tls, connections.begin)
        return _bind(lambda address: server.add_secure_port(address, credentials), self.listen)

    def bind_health(self, server: grpc.aio.Server) -> None:
        """Make a server for health checks listen, if there is an address for it."""
        if self.health is not None:
            _bind(server.add_insecure_port, self.health)

    @property
    def warning(self) -> str:
        """A warning to add to the line with the server's address; empty if there is none."""
        return " INSECURE: plain text, open to everyone who can reach it" if self.insecure else ""


def _bind(add: Callable[[str], int], address: str) -> str:
    try:
        port = add(address)
    except RuntimeError as error:
        raise ConfigError(
            f"cannot listen on {address}: the port is in use, or the address does not belong to this machine"
        ) from error
    return address if is_unix(address) else f"{address.rpartition(':')[0]}:{port}"


class Connections:
    """Counts the connections that failed in their handshake, which gRPC does not report.

    gRPC asks for the server's certificate before each handshake. If no call follows within five seconds, the handshake
    has failed, or the peer only holds the connection open.
    """

    def __init__(self) -> None:
        """Start at zero."""
        self._lock = threading.Lock()
        self._begun: deque[float] = deque()
        self._seen: dict[str, float] = {}
        self._old = self._called = self._reported = 0

    def begin(self) -> None:
        """Count a connection; called from any thread."""
        with self._lock:
            self._begun.append(time.monotonic())

    def call(self, peer: str) -> None:
        """Record that the connection from ``peer`` has made a call."""
        if peer not in self._seen:
            self._seen[peer] = time.monotonic()
            self._called += 1

    def failed(self) -> int:
        """Return how many connections have failed since this was last called."""
        before = time.monotonic() - _SECONDS_TO_CALL
        self._seen = {peer: at for peer, at in self._seen.items() if at > before - _SECONDS_TO_REMEMBER}
        with self._lock:
            while self._begun and self._begun[0] < before:
                self._begun.popleft()
                self._old += 1
        new = self._old - self._called - self._reported
        self._reported += max(new, 0)
        return max(new, 0)


def identity(auth: Mapping[str, Iterable[bytes]], *, secure: bool) -> str | None:
    """Return the name in the caller's certificate; None in plain text, which is not ``secure``."""
    if not secure:
        return None
    if list(auth.get("ssl_tls_version", ())) != [b"TLSv1.3"]:
        raise NotAllowedError("this server accepts only TLS 1.3")
    if list(auth.get("ssl_session_reused", ())) != [b"false"]:  # its certificate may have expired since
        raise NotAllowedError("every connection must present its certificate; do not resume a TLS session")
    names = list(auth.get("x509_common_name", ()))
    if len(names) != 1:
        raise NotAllowedError("a client's certificate must have exactly one name")
    return names[0].decode(errors="replace")
