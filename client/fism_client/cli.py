"""``fism client``: takes part in a federation with the shard in a file."""

from __future__ import annotations

import json
import logging
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from pydantic import Field, PositiveFloat, PositiveInt

from fism_client import options
from fism_common.console import command
from fism_common.data.source import Reading, Source
from fism_common.settings import load_object, read

if TYPE_CHECKING:
    from fism_client.session.participant import Participant
    from fism_client.session.session import Session
    from fism_common.vectors import Vector
    from fism_common.wire.terms import NamedLoss
    from fism_common.wire.tls import TlsFiles

_log = logging.getLogger(__name__)
app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


class ClientConfig(Source, Reading):
    """A client's own settings."""

    server: str
    """HOST:PORT of the server."""
    name: str
    """This client's name in the federation."""
    shards: PositiveInt = 1
    """Count as so many virtual clients, on as many threads."""
    holdout: Annotated[float, Field(ge=0, lt=1, strict=False)] = 0.0
    """The share of rows to keep for evaluation."""
    seed: int = 0
    """Decides which rows are held out."""
    loss: str | None = None
    """A loss of your own, module:Name, that the federation names."""
    save: str | None = None
    """Write the model to this .npz file, and a .json file beside it."""
    patience: Annotated[PositiveFloat, Field(strict=False)] = 300.0
    """Seconds to try to reach the server."""
    certs: str | None = None
    """The folder with ca.pem, NAME.pem and NAME.key, for TLS."""


@app.command()
def client(
    config: Annotated[Path | None, typer.Argument(help="A TOML file with the options below as keys.")] = None,
    server: Annotated[str | None, typer.Option(help="HOST:PORT of the server.")] = None,
    name: Annotated[str | None, typer.Option(help="This client's name in the federation.")] = None,
    data: options.Data = None,
    query: options.Query = None,
    labels: options.Labels = None,
    label: options.Label = None,
    positive: options.Positive = None,
    features: options.Features = None,
    drop: options.Drop = None,
    scale: options.Scale = None,
    columns: options.Columns = None,
    zero_based: options.ZeroBased = None,
    shards: options.Shards = None,
    holdout: options.Holdout = None,
    seed: options.Seed = None,
    loss: options.OwnLoss = None,
    save: Annotated[
        str | None, typer.Option(help="Write the model to this .npz file, and a .json file beside it.")
    ] = None,
    patience: Annotated[float | None, typer.Option(help="Seconds to try to reach the server.")] = None,
    certs: Annotated[str | None, typer.Option(help="The folder with ca.pem, NAME.pem and NAME.key, for TLS.")] = None,
    insecure: Annotated[bool, typer.Option(help="Speak plain text with another host.")] = False,
    settings: Annotated[str, typer.Option(hidden=True, help="All of these as JSON.")] = "{}",
    with_parent: Annotated[bool, typer.Option(hidden=True)] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Say more.")] = False,
) -> None:
    """Take part in a federation with rows that never leave this process."""
    if with_parent:
        threading.Thread(target=_end_with_parent, daemon=True).start()
    given = json.loads(settings) | options.given(
        data, query, labels, label, positive, features, drop, scale, columns, zero_based
    )
    own = {
        "server": server,
        "name": name,
        "shards": shards,
        "holdout": holdout,
        "seed": seed,
        "loss": loss,
        "save": save,
        "patience": patience,
        "certs": certs,
    }
    given |= {key: value for key, value in own.items() if value is not None}
    with command(quiet=quiet, verbose=verbose):
        folder = Path.cwd() if config is None else config.parent
        take_part(read(ClientConfig, config, options=given), folder, insecure=insecure)


def take_part(config: ClientConfig, folder: Path, *, insecure: bool = False) -> None:
    """Run one client to its end; paths are relative to ``folder``."""
    from fism_client.session.session import Session
    from fism_common.errors import ConfigError

    tls = tls_of(config, folder, insecure=insecure)
    save = None if config.save is None else folder / config.save
    if save is not None and not save.parent.is_dir():
        raise ConfigError(f"save: there is no folder {save.parent}")
    session = Session(config.server, participant(config, folder), patience=config.patience, tls=tls)
    solution = session.run()
    if save is not None:
        _save(save, session, solution)


def participant(config: ClientConfig, folder: Path) -> Participant:
    """Return who takes part, with its data loaded."""
    from fism_client.data.loading import load
    from fism_client.session.participant import Participant, built_in
    from fism_common.errors import MismatchError
    from fism_common.problem.losses import LOSSES, Loss

    def find_loss(told: NamedLoss) -> Loss:
        if told.name in LOSSES:
            return built_in(told)
        if told.name != config.loss:
            raise MismatchError(
                f"the federation's loss {told.name!r} is not built in; if you trust it and have its code, "
                f"give it with --loss {told.name}"
            )
        found: Loss = load_object(told.name, folder, Loss)
        return found

    return Participant(
        config.name,
        load(config, config, folder),
        shards=config.shards,
        holdout=config.holdout,
        seed=config.seed,
        find_loss=find_loss,
    )


def _save(path: Path, session: Session, solution: Vector) -> None:
    """Write the model, as the server has it but for what only the server knows."""
    from fism_common.data.columns import read_recipe
    from fism_common.errors import ConfigError
    from fism_common.model import Fitted, stem_of, write_model
    from fism_common.wire.terms import read_loss

    terms = session.terms
    assert terms is not None  # noqa: S101  # there is a solution
    fitted = Fitted(solution, read_loss(terms.loss), read_recipe(terms.recipe), session.scaling)
    try:
        write_model(stem_of(path), fitted, {"run": terms.run_id})
    except OSError as error:
        raise ConfigError(f"cannot write the model to {path}: {error.strerror}") from error


def tls_of(config: ClientConfig, folder: Path, *, insecure: bool) -> TlsFiles | None:
    """Return this client's certificate, looked at before anything is sent; None for plain text, where that is safe."""
    from fism_common.errors import CertificateError, ConfigError
    from fism_common.wire.tls import CLIENT, TlsFiles, check_address, check_files, expires_soon, is_local, name_of

    check_address(config.server)
    if config.certs is None:
        if not insecure and not is_local(config.server):
            raise ConfigError(
                f"{config.server} is another host: give --certs with the folder of this client's certificate, or "
                "--insecure if everybody on the way may read and change what is sent"
            )
        if insecure:
            _log.warning("INSECURE: in plain text with %s", config.server)
        return None
    if insecure:
        raise ConfigError("with a certificate nothing is insecure: give --certs or --insecure, not both")
    files = TlsFiles.of(folder / config.certs, config.name)
    certificate = check_files(files, CLIENT)
    if name_of(certificate) != config.name:
        raise CertificateError(f"{files.certificate} is of {name_of(certificate)!r}, not of {config.name!r}")
    if expires_soon(certificate):
        _log.warning("%s expires on %s", files.certificate, f"{certificate.not_valid_after_utc:%Y-%m-%d}")
    return files


def _end_with_parent() -> None:
    """End this process when its standard input closes: the one who started it is gone."""
    while os.read(0, 1):  # not sys.stdin, whose lock would trip the interpreter at its end
        pass
    os._exit(130)
