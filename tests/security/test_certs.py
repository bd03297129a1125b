"""The authority and its certificates."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from fism.certs import init, issue, show
from fism_common.errors import CertificateError
from fism_common.wire.tls import CLIENT, SERVER, TlsFiles, check_files, hosts_of, is_local, name_of, read_certificate


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with an authority, a server and two clients."""
    init(tmp_path)
    issue(tmp_path, "server", ["localhost", "127.0.0.1", "::1"])
    for name in ("north", "south"):
        issue(tmp_path, name)
    return tmp_path


def test_certificates_are_what_their_holders_need(folder: Path) -> None:
    """A server's has its hosts, a client's its name; neither can be used as the other."""
    server = check_files(TlsFiles.of(folder, "server"), SERVER)
    assert hosts_of(server) == ["localhost", "127.0.0.1", "::1"]
    assert name_of(check_files(TlsFiles.of(folder, "north"), CLIENT)) == "north"
    with pytest.raises(CertificateError, match=r"north\.pem is not for a server"):
        check_files(TlsFiles.of(folder, "north"), SERVER)


def test_keys_are_for_their_owner_alone(folder: Path) -> None:
    """From the first moment: a file is made with these rights."""
    keys = list(folder.glob("*.key"))
    assert len(keys) == 4
    assert {stat.S_IMODE(key.stat().st_mode) for key in keys} == {0o600}


def test_nothing_is_replaced_unless_asked(folder: Path) -> None:
    """An authority never; a certificate by --renew, which keeps a server's hosts."""
    before = read_certificate(folder / "server.pem")
    with pytest.raises(CertificateError, match="already has an authority"):
        init(folder)
    with pytest.raises(CertificateError, match="use --renew to replace it"):
        issue(folder, "server", ["localhost"])
    issue(folder, "server", renew=True)
    after = check_files(TlsFiles.of(folder, "server"), SERVER)
    assert after.serial_number != before.serial_number
    assert hosts_of(after) == hosts_of(before)


def test_expiry_is_told_in_plain_words(folder: Path) -> None:
    """What has expired, what soon will, and how to renew it."""
    issue(folder, "old", days=0)
    issue(folder, "aging", days=20)
    rows = {row.name: row for row in show(folder)}
    assert next(iter(rows)) == "fism authority"
    assert rows["server"].what == "server at localhost, 127.0.0.1, ::1"
    assert rows["north"].advice == ""
    assert rows["old"].advice.startswith("expired on ")
    assert rows["aging"].advice == "expires soon: fism certs issue aging --renew"


@pytest.mark.parametrize("name", ["", "ca", "CA", "../north", "a\nb", "x" * 65, "\u00e4" * 33])
def test_name_that_is_no_name_is_refused(name: str, folder: Path) -> None:
    """It would be a file's name too."""
    with pytest.raises(CertificateError, match="a name must have 1 to 64 printable"):
        issue(folder, name)


def test_each_fault_of_the_files_is_told_with_what_to_do(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Missing, no certificate, another's key, another authority, expired."""
    other = tmp_path_factory.mktemp("other")
    init(other)
    issue(other, "north")
    issue(folder, "old", days=0)
    north, foreign = TlsFiles.of(folder, "north"), TlsFiles.of(other, "north")
    (folder / "text.pem").write_text("no certificate")
    for files, told in (
        (TlsFiles.of(folder, "nobody"), "cannot read .*nobody.pem: No such file"),
        (TlsFiles(ca=north.ca, certificate=folder / "text.pem", key=north.key), "text.pem is not a certificate"),
        (TlsFiles(ca=north.ca, certificate=north.certificate, key=north.ca), "ca.pem is not a private key"),
        (
            TlsFiles(ca=north.ca, certificate=north.certificate, key=folder / "south.key"),
            "south.key does not belong to .*north.pem; ask the coordinator .*fism certs issue north --renew",
        ),
        (
            TlsFiles(ca=north.ca, certificate=foreign.certificate, key=foreign.key),
            "north.pem was not issued by the authority in .*ca.pem",
        ),
        (TlsFiles.of(folder, "old"), "old.pem expired on .* UTC; ask the coordinator"),
    ):
        with pytest.raises(CertificateError, match=told):
            check_files(files, CLIENT)


@pytest.mark.parametrize(
    ("address", "local"),
    [
        ("127.0.0.1:50051", True),
        ("127.3.2.1:1", True),
        ("localhost:50051", True),
        ("[::1]:50051", True),
        ("unix:/run/fism.sock", True),
        ("0.0.0.0:50051", False),
        ("[::]:50051", False),
        ("10.0.0.7:50051", False),
        ("hospital.example:50051", False),
        ("localhost.example:50051", False),
    ],
)
def test_only_loopback_and_unix_sockets_are_this_host(address: str, local: bool) -> None:  # noqa: FBT001
    """Names are not looked up: who answers for them may change."""
    assert is_local(address) is local
