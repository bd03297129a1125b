"""A client's settings: the keys of its TOML file and its command-line options."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003  # pydantic reads it
from typing import TYPE_CHECKING, Annotated

from pydantic import ConfigDict, Field, PositiveFloat, PositiveInt

from fism_common.data.source import Reading, Source
from fism_common.errors import CertificateError, ConfigError, MismatchError
from fism_common.settings import load_object

if TYPE_CHECKING:
    from fism_client.session.participant import Participant
    from fism_common.problem.losses import Loss
    from fism_common.problem.registry import Variant
    from fism_common.wire.tls import TlsFiles


class ClientConfig(Source, Reading):
    """A client's settings."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    server: str
    """HOST:PORT of the server."""
    name: str
    """This client's name in the federation."""
    virtual_clients: PositiveInt = 1
    """Run as this many virtual clients, one thread each."""
    holdout: Annotated[float, Field(ge=0, lt=1, strict=False)] = 0.0
    """Share of rows to hold out for evaluation."""
    seed: int = 0
    """Seed for choosing the rows to hold out."""
    loss: str | None = None
    """The custom loss that the federation uses, as module:Name."""
    save: str | None = None
    """Write the model to this .npz file, and a .json file next to it."""
    patience: Annotated[PositiveFloat, Field(strict=False)] = 300.0
    """Seconds to keep trying to reach the server."""
    certs: str | None = None
    """The folder with ca.pem, NAME.pem and NAME.key, for TLS."""


def load_participant(config: ClientConfig, folder: Path) -> Participant:
    """Return the participant with its data loaded; paths are relative to ``folder``."""
    from fism_client.data.loading import load  # noqa: PLC0415  # slow to load
    from fism_client.session.participant import Participant, built_in  # noqa: PLC0415
    from fism_common.problem.losses import LOSSES, Loss  # noqa: PLC0415

    def find_loss(loss: Variant) -> Loss:
        if loss.kind in LOSSES:
            return built_in(loss)
        if loss.kind != config.loss:
            raise MismatchError(
                f"the federation's loss {loss.kind!r} is not built in; if you have its code and trust it, "
                f"give --loss {loss.kind}"
            )
        found: Loss = load_object(loss.kind, folder, Loss)
        return found

    return Participant(
        config.name,
        load(config, config, folder),
        virtual_clients=config.virtual_clients,
        holdout=config.holdout,
        seed=config.seed,
        find_loss=find_loss,
    )


def tls_of(config: ClientConfig, folder: Path, *, insecure: bool) -> tuple[TlsFiles | None, list[str]]:
    """Return this client's certificate files, checked before anything is sent, and warnings; None for plain text.

    Plain text to another host raises ConfigError, unless ``insecure`` is set.
    """
    from fism_common.wire.tls import (  # noqa: PLC0415  # cryptography is slow to load
        CLIENT,
        TlsFiles,
        check_address,
        check_files,
        expires_soon,
        is_local,
        name_of,
    )

    check_address(config.server)
    if config.certs is None:
        if not insecure and not is_local(config.server):
            raise ConfigError(
                f"{config.server} is another host: give --certs with the folder of this client's certificate, or "
                "--insecure to let anyone on the network read and change the traffic"
            )
        return None, [f"INSECURE: plain text to {config.server}"] if insecure else []
    if insecure:
        raise ConfigError("give either --certs or --insecure, not both")
    files = TlsFiles.of(folder / config.certs, config.name)
    certificate = check_files(files, CLIENT)
    if name_of(certificate) != config.name:
        raise CertificateError(f"{files.certificate} is for {name_of(certificate)!r}, not for {config.name!r}")
    expires = f"{files.certificate} expires on {certificate.not_valid_after_utc:%Y-%m-%d}"
    return files, [expires] if expires_soon(certificate) else []
