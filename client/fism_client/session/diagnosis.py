"""Why a handshake failed: gRPC tells both ends next to nothing, so the client looks for itself."""

from __future__ import annotations

import ipaddress
import re
import socket
import ssl
from typing import TYPE_CHECKING

from cryptography import x509

from fism_common.errors import CertificateError
from fism_common.wire.tls import (
    SERVER,
    host_of,
    hosts_of,
    is_issued_by,
    is_unix,
    name_of,
    read_certificate,
    time_fault,
    uses_of,
)

if TYPE_CHECKING:
    from fism_common.wire.tls import TlsFiles

_SECONDS = 2.0


def diagnose(address: str, files: TlsFiles | None) -> str | None:
    """Return why no connection comes about, if it is a matter of certificates; else None.

    The one look at the server is without trust in it: nothing is sent to it but what a handshake has.
    """
    if is_unix(address) or (files is None and not _speaks_tls(address)):
        return None
    if files is None:
        return "the server speaks TLS: give --certs with the folder of this client's certificate"
    context = _context()
    try:
        context.load_cert_chain(files.certificate, files.key)
        with _connect(address) as raw, context.wrap_socket(raw, server_hostname=host_of(address)) as stream:
            wrong = _server_fault(stream, address, files)
            return wrong or (None if stream.recv(1) else _NOT_ACCEPTED)
    except ssl.SSLError as error:
        return _handshake_fault(error.reason or "")
    except (OSError, ValueError, CertificateError):
        return None


_NOT_ACCEPTED = (
    "the server does not accept this client's certificate: it is of another authority than the server's, or has "
    "expired by the server's clock; ask the coordinator for a new one"
)


def _handshake_fault(reason: str) -> str | None:
    """Return what OpenSSL's reason means, if it is one that a person can do something about."""
    if reason in {"WRONG_VERSION_NUMBER", "UNEXPECTED_MESSAGE", "RECORD_LAYER_FAILURE"}:
        return "the server speaks plain text, and this client has a certificate: it does not go on without TLS"
    if reason in {"TLSV1_ALERT_PROTOCOL_VERSION", "UNSUPPORTED_PROTOCOL"}:
        return "the server does not speak TLS 1.3, and this client nothing less"
    return _NOT_ACCEPTED if re.search("UNKNOWN_CA|CERTIFICATE", reason) else None


def _server_fault(stream: ssl.SSLSocket, address: str, files: TlsFiles) -> str | None:
    """Return what is wrong with the server's certificate; None if nothing is."""
    der = stream.getpeercert(binary_form=True)
    if der is None:
        return "the server shows no certificate"
    certificate, host = x509.load_der_x509_certificate(der), host_of(address)
    if not is_issued_by(certificate, read_certificate(files.ca)):
        return f"the server's certificate is not of the authority in {files.ca}: is this the right server?"
    if SERVER not in uses_of(certificate):
        return "what answers there shows a certificate that is not a server's: is this the right server?"
    wrong = time_fault(certificate)
    if wrong is not None:
        return f"the server's certificate {wrong}; tell the coordinator"
    if _plainly(host) not in map(_plainly, hosts_of(certificate)):
        told = ", ".join(hosts_of(certificate))
        return (
            f"the server's certificate is for {told}, not for {host}; use one of these names, or the coordinator "
            f"issues another (fism certs issue {name_of(certificate)} --host {host} --renew)"
        )
    return None


def _plainly(host: str) -> str:
    """Return a name or an address in the one way of writing it."""
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        return host.casefold()


def _speaks_tls(address: str) -> bool:
    try:
        with _connect(address) as raw, _context().wrap_socket(raw, server_hostname=host_of(address)):
            return True
    except ssl.SSLError as error:
        return "ALERT" in (error.reason or "")
    except (OSError, ValueError):
        return False


def _connect(address: str) -> socket.socket:
    port = address.rpartition(":")[2]
    return socket.create_connection((host_of(address), int(port)), timeout=_SECONDS)


def _context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # to look, not to trust
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.set_alpn_protocols(["h2"])
    return context
