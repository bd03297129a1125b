"""A private certificate authority, and the server and client certificates that it issues."""

from __future__ import annotations

import ipaddress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import NameOID

from fism_common.errors import CertificateError
from fism_common.files import write_bytes
from fism_common.wire.tls import (
    CLIENT,
    SERVER,
    TlsFiles,
    expires_soon,
    hosts_of,
    name_of,
    read_certificate,
    time_fault,
    uses_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_MAX_NAME_BYTES = 64
_MAX_DAYS = 36_500
_CLOCK_SKEW = timedelta(minutes=10)
"""How far the clocks of two machines may differ."""


def init(folder: Path, days: int = 3650) -> Path:
    """Create an authority in a folder; return its certificate file. Raises CertificateError if one exists."""
    files = TlsFiles.of(folder, "ca")
    if files.ca.exists() or files.key.exists():
        raise CertificateError(f"{folder} already has an authority; replacing it would invalidate its certificates")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CertificateError(f"cannot create {folder}: {error.strerror}") from error
    key, name = ec.generate_private_key(ec.SECP256R1()), _name("fism authority")
    usage = x509.KeyUsage(
        digital_signature=False,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=True,
        crl_sign=True,
        encipher_only=False,
        decipher_only=False,
    )
    certificate = (
        _builder(name, name, key, days)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .sign(key, hashes.SHA256())
    )
    _write(files.key, files.ca, key, certificate)
    return files.ca


def issue(folder: Path, name: str, hosts: Sequence[str] = (), days: int = 365, *, renew: bool = False) -> TlsFiles:
    """Issue a certificate from the authority in a folder: for a server if hosts are given, otherwise for a client.

    ``renew`` replaces an existing certificate; a server certificate keeps its hosts if none are given.
    """
    fits = 0 < len(name.encode()) <= _MAX_NAME_BYTES and name.isprintable() and "/" not in name
    if not fits or name.casefold() in {"ca", "."}:
        raise CertificateError(f"a name must have 1 to {_MAX_NAME_BYTES} printable bytes without /, and not be 'ca'")
    files, authority = TlsFiles.of(folder, name), read_certificate(folder / "ca.pem")
    if files.certificate.exists():
        if not renew:
            raise CertificateError(f"{files.certificate} already exists; use --renew to replace it")
        hosts = hosts or hosts_of(read_certificate(files.certificate))
    try:
        authority_key = load_pem_private_key((folder / "ca.key").read_bytes(), None)
    except (OSError, ValueError, TypeError) as error:
        raise CertificateError(f"cannot read the authority's key {folder / 'ca.key'}: {error}") from error
    if not isinstance(authority_key, ec.EllipticCurvePrivateKey):
        raise CertificateError(f"{folder / 'ca.key'} was not created by fism certs init")
    key = ec.generate_private_key(ec.SECP256R1())
    use = SERVER if hosts else CLIENT
    builder = (
        _builder(_name(name), authority.subject, key, days)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([use]), critical=False)
    )
    if hosts:
        builder = builder.add_extension(x509.SubjectAlternativeName([_host(host) for host in hosts]), critical=False)
    _write(files.key, files.certificate, key, builder.sign(authority_key, hashes.SHA256()))
    return files


class Row(NamedTuple):
    """One certificate, described for display."""

    name: str
    what: str
    until: str
    advice: str


def show(folder: Path) -> list[Row]:
    """Return all certificates in a folder, the authority's first."""
    found = sorted(folder.glob("*.pem"), key=lambda file: (file.name != "ca.pem", file.name))
    if not found:
        raise CertificateError(f"there are no certificates in {folder}; create an authority with fism certs init")
    return [_row(file.stem, read_certificate(file)) for file in found]


def _row(stem: str, certificate: x509.Certificate) -> Row:
    hosts = ", ".join(hosts_of(certificate))
    what = "the authority" if stem == "ca" else f"server at {hosts}" if SERVER in uses_of(certificate) else "client"
    advice, wrong = "", time_fault(certificate)
    if wrong or expires_soon(certificate):
        new = "create a new authority and reissue all certificates"
        remedy = new if stem == "ca" else f"fism certs issue {stem} --renew"
        advice = f"{wrong or 'expires soon'}: {remedy}"
    return Row(name_of(certificate), what, f"{certificate.not_valid_after_utc:%Y-%m-%d}", advice)


def _name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        pass
    try:
        return x509.DNSName(host)
    except ValueError as error:
        raise CertificateError(f"{host!r} is not a host name or address: {error}") from error


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, days: int
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    if not 0 <= days <= _MAX_DAYS:
        raise CertificateError(f"a certificate is valid for at most {_MAX_DAYS} days, not {days}")
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SKEW)
        .not_valid_after(now + timedelta(days=days))
    )


def _write(key_file: Path, file: Path, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate) -> None:
    try:
        secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        write_bytes(key_file, secret, mode=0o600)
        write_bytes(file, certificate.public_bytes(Encoding.PEM))
    except OSError as error:
        raise CertificateError(f"cannot write to {file.parent}: {error.strerror}") from error
