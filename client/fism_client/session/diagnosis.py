"""Finds out why a handshake failed: gRPC reports almost nothing, so the client checks for itself."""

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
    """Return why the connection fails, if TLS or certificates are the reason; otherwise None.

    This connects to the server once without verifying it, and sends nothing but a handshake.
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
    "the server does not accept this client's certificate: it was issued by another authority, or has expired by the "
    "server's clock; ask the coordinator for a new one"
)


def _handshake_fault(reason: str) -> str | None:
    """Return what OpenSSL's reason means, if the user can do something about it; otherwise None."""
    if reason in {"WRONG_VERSION_NUMBER", "UNEXPECTED_MESSAGE", "RECORD_LAYER_FAILURE"}:
        return "the server speaks plain text, but this client has a certificate and requires TLS"
    if reason in {"TLSV1_ALERT_PROTOCOL_VERSION", "UNSUPPORTED_PROTOCOL"}:
        return "the server does not support TLS 1.3, which this client requires"
    return _NOT_ACCEPTED if re.search("UNKNOWN_CA|CERTIFICATE", reason) else None


def _server_fault(stream: ssl.SSLSocket, address: str, files: TlsFiles) -> str | None:
    """Return what is wrong with the server's certificate; None if nothing is."""
    der = stream.getpeercert(binary_form=True)
    if der is None:
        return "the server presents no certificate"
    certificate, host = x509.load_der_x509_certificate(der), host_of(address)
    if not is_issued_by(certificate, read_certificate(files.ca)):
        return f"the server's certificate was not issued by the authority in {files.ca}: is this the right server?"
    if SERVER not in uses_of(certificate):
        return "the certificate at this address is not a server certificate: is this the right server?"
    wrong = time_fault(certificate)
    if wrong is not None:
        return f"the server's certificate {wrong}; tell the coordinator"
    if _canonical(host) not in map(_canonical, hosts_of(certificate)):
        hosts = ", ".join(hosts_of(certificate))
        return (
            f"the server's certificate is for {hosts}, not for {host}; use one of these names, or ask the coordinator "
            f"to issue another (fism certs issue {name_of(certificate)} --host {host} --renew)"
        )
    return None


def _canonical(host: str) -> str:
    """Return a host name or an IP address in canonical form."""
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
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # only to diagnose: nothing is trusted
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.set_alpn_protocols(["h2"])
    return context
