"""``fism client``: joins a federation with the shard in a file."""

from __future__ import annotations

import json
import logging
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fism_client.config import ClientConfig, load_participant, tls_of
from fism_client.options import options_of
from fism_common.console import command
from fism_common.errors import ConfigError
from fism_common.settings import read

if TYPE_CHECKING:
    from fism_client.session.work import Work
    from fism_common.vectors import Vector

_log = logging.getLogger(__name__)
app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
@options_of(ClientConfig)
def client(
    given: dict[str, Any],
    config: Annotated[Path | None, typer.Argument(help="A TOML file with the options below as keys.")] = None,
    insecure: Annotated[bool, typer.Option("--insecure", help="Send plain text to another host.")] = False,
    settings: Annotated[str, typer.Option(hidden=True, help="All options as JSON.")] = "{}",
    with_parent: Annotated[bool, typer.Option("--with-parent", hidden=True)] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Print more.")] = False,
) -> None:
    """Take part in a federation with rows that never leave this process."""
    if with_parent:
        threading.Thread(target=_end_with_parent, daemon=True).start()
    with command(quiet=quiet, verbose=verbose):
        folder = Path.cwd() if config is None else config.parent
        take_part(read(ClientConfig, config, options=json.loads(settings) | given), folder, insecure=insecure)


def take_part(config: ClientConfig, folder: Path, *, insecure: bool = False) -> None:
    """Run one client until the run ends; paths are relative to ``folder``."""
    from fism_client.session.session import Session

    tls, warnings = tls_of(config, folder, insecure=insecure)
    for warning in warnings:
        _log.warning(warning)
    save = None if config.save is None else folder / config.save
    if save is not None and not save.parent.is_dir():
        raise ConfigError(f"save: there is no folder {save.parent}")
    session = Session(config.server, load_participant(config, folder), patience=config.patience, tls=tls)
    solution = session.run()
    if save is not None:
        _save(save, session.work, solution)


def _save(path: Path, work: Work, solution: Vector) -> None:
    """Write the same model as the server, without the parts that only the server knows."""
    from fism_common.model import Fitted, stem_of, write_model

    terms = work.terms
    assert terms is not None  # noqa: S101  # a solution implies terms
    fitted = Fitted(solution, terms.loss, terms.recipe, work.scaling)
    try:
        write_model(stem_of(path), fitted, {"run": terms.run_id})
    except OSError as error:
        raise ConfigError(f"cannot write the model to {path}: {error.strerror}") from error


def _end_with_parent() -> None:
    """Exit when standard input closes: the parent process is gone."""
    while os.read(0, 1):  # not sys.stdin, whose lock would block the interpreter's exit
        pass
    os._exit(130)
