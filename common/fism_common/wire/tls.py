"""TLS on both sides: the three files that each side has, checks of these files, and credentials for gRPC."""

from __future__ import annotations

import ipaddress
import logging
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import grpc
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from fism_common.errors import CertificateError, ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_log = logging.getLogger(__name__)
CLIENT, SERVER = ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH
SOON = timedelta(days=30)


@dataclass(frozen=True, kw_only=True)
class TlsFiles:
    """The files of one side: the authority's certificate, its own certificate, and its private key."""

    ca: Path
    certificate: Path
    key: Path

    @classmethod
    def of(cls, folder: Path, name: str) -> TlsFiles:
        """Return the files of ``name`` in a folder, as ``fism certs`` names them."""
        return cls(ca=folder / "ca.pem", certificate=folder / f"{name}.pem", key=folder / f"{name}.key")


def is_local(address: str) -> bool:
    """Whether only this host can reach an address: a loopback address, or a unix socket."""
    if is_unix(address):
        return True
    host = host_of(address)
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def is_unix(address: str) -> bool:
    """Whether an address is a unix socket."""
    return address.startswith(("unix:", "unix-abstract:"))


def check_address(address: str) -> None:
    """Refuse an address that is neither HOST:PORT nor a unix socket."""
    host, colon, port = address.rpartition(":")
    whole = bool(host and colon) and port.isdecimal() and int(port) < 2**16
    if not is_unix(address) and not (whole and (":" not in host or host.startswith("["))):
        raise ConfigError(f"{address!r} is neither HOST:PORT, such as fism.example:50051 or [::1]:50051, nor unix:PATH")


def host_of(address: str) -> str:
    """Return the host of HOST:PORT, without the brackets of an IPv6 address."""
    return address.rpartition(":")[0].strip("[]")


def check_files(files: TlsFiles, use: x509.ObjectIdentifier) -> x509.Certificate:
    """Return the side's certificate if all three files exist, match, and are valid now for ``use``.

    Raises CertificateError with the file, what is wrong with it, and what to do.
    """
    authority, own = read_certificate(files.ca), read_certificate(files.certificate)
    name = name_of(own)
    again = f"ask the coordinator for a new one (fism certs issue {name} --renew)"
    try:
        key = load_pem_private_key(_read(files.key), None)
    except (ValueError, TypeError) as error:
        raise CertificateError(f"{files.key} is not a private key: {error}; {again}") from error
    if key.public_key() != own.public_key():
        raise CertificateError(f"{files.key} does not belong to {files.certificate}; {again}")
    if not is_issued_by(own, authority):
        raise CertificateError(f"{files.certificate} was not issued by the authority in {files.ca}; {again}")
    wrong = time_fault(authority)
    if wrong is not None:
        raise CertificateError(f"{files.ca} {wrong}; the coordinator must make a new authority (fism certs init)")
    wrong = time_fault(own)
    if wrong is not None:
        raise CertificateError(f"{files.certificate} {wrong}; {again}")
    if use not in uses_of(own):
        kind = "a client" if use == CLIENT else "a server"
        raise CertificateError(f"{files.certificate} is not for {kind}; {again}")
    return own


def read_certificate(file: Path) -> x509.Certificate:
    """Return the certificate in a PEM file."""
    try:
        return x509.load_pem_x509_certificate(_read(file))
    except ValueError as error:
        raise CertificateError(f"{file} is not a certificate: {error}") from error


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise CertificateError(f"cannot read {file}: {error.strerror}; see fism certs --help") from error


def name_of(certificate: x509.Certificate) -> str:
    """Return the name of a certificate's owner."""
    names = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    if len(names) != 1:
        raise CertificateError("a certificate has no name, or several: it was not made by fism certs")
    return str(names[0].value)


def uses_of(certificate: x509.Certificate) -> list[x509.ObjectIdentifier]:
    """Return what a certificate may be used for."""
    try:
        return list(certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value)
    except x509.ExtensionNotFound:
        return []


def hosts_of(certificate: x509.Certificate) -> list[str]:
    """Return the host names and addresses that a server's certificate is for."""
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return []
    return [*names.get_values_for_type(x509.DNSName), *map(str, names.get_values_for_type(x509.IPAddress))]


def is_issued_by(certificate: x509.Certificate, authority: x509.Certificate) -> bool:
    """Whether the authority has signed a certificate."""
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def time_fault(certificate: x509.Certificate) -> str | None:
    """Return why a certificate cannot be used now; None if it can."""
    now = datetime.now(UTC)
    if now > certificate.not_valid_after_utc:
        return f"expired on {certificate.not_valid_after_utc:%Y-%m-%d %H:%M} UTC"
    if now < certificate.not_valid_before_utc:
        return (
            f"is valid only from {certificate.not_valid_before_utc:%Y-%m-%d %H:%M} UTC; is this machine's clock right?"
        )
    return None


def expires_soon(certificate: x509.Certificate) -> bool:
    """Whether it is time to renew a certificate."""
    return certificate.not_valid_after_utc - datetime.now(UTC) < SOON


def channel_credentials(files: TlsFiles) -> grpc.ChannelCredentials:
    """Return a client's credentials."""
    return grpc.ssl_channel_credentials(_read(files.ca), _read(files.key), _read(files.certificate))


def server_credentials(files: TlsFiles, on_connection: Callable[[], None]) -> grpc.ServerCredentials:
    """Return a server's credentials, which require every client to have a certificate from the authority.

    gRPC calls ``on_connection`` before every handshake, from one of its threads. Files that have changed by then, for
    example after a renewal, are read again.
    """
    read = _stamps(files)

    def configuration() -> grpc.ServerCertificateConfiguration:
        return grpc.ssl_server_certificate_configuration(
            [(_read(files.key), _read(files.certificate))], _read(files.ca)
        )

    # None means no change, which gRPC's types do not include.
    def fetch() -> Any:  # noqa: ANN401
        nonlocal read
        on_connection()
        now = _stamps(files)
        if now == read:
            return None
        try:
            check_files(files, SERVER)
            new = configuration()
        except CertificateError as error:
            _log.warning("the previous certificate stays in use: %s", error)  # the renewal may be half done
            return None
        read = now
        return new

    return grpc.dynamic_ssl_server_credentials(configuration(), fetch, require_client_authentication=True)


def _stamps(files: TlsFiles) -> list[int]:
    try:
        return [file.stat().st_mtime_ns for file in (files.ca, files.certificate, files.key)]
    except OSError:
        return []
