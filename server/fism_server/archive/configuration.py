"""The configuration that a run began with, in its folder, for its owner only: it reveals H."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fism_common.errors import ConfigError
from fism_common.files import write_bytes
from fism_common.settings import check
from fism_server.problem.config import RunConfig

if TYPE_CHECKING:
    from fism_server.problem.plan import Plan

_FILE = "config.json"


@dataclass(frozen=True)
class Beginning:
    """What a run began with."""

    file: Path
    table: dict[str, Any]
    """The configuration as it was given."""
    config: RunConfig
    folder: Path
    """What its paths are relative to."""
    inputs: dict[str, str]
    """A digest of every file that it names, by the key that names it."""


def write_beginning(folder: Path, plan: Plan) -> None:
    """Write what a run begins with; raise ConfigError if that fails."""
    table = {
        "config": plan.config.model_dump(mode="json", by_alias=True, exclude_unset=True),
        "folder": str(plan.folder.absolute()),
        "inputs": plan.inputs,
    }
    try:
        # Not in the database, which can be shared with anyone.
        write_bytes(folder / _FILE, json.dumps(table, indent=2).encode() + b"\n", mode=0o600)
    except OSError as error:
        raise ConfigError(f"cannot write to the run folder {folder}: {error.strerror}") from error


def read_beginning(folder: Path) -> Beginning:
    """Return what a run began with; raise ConfigError if that cannot be read."""
    file = folder / _FILE
    try:
        found = json.loads(file.read_bytes())
        config = check(RunConfig, found["config"], str(file))
        return Beginning(file, found["config"], config, Path(str(found["folder"])), found["inputs"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(
            f"cannot read the configuration of the run in {folder}: {file}: {error}; restore it from a backup"
        ) from error
