"""A run to be done, new or resumed: its plan, its folder, its database."""

from __future__ import annotations

import json
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fism_common import __version__
from fism_common.errors import ConfigError
from fism_common.files import write_bytes
from fism_common.settings import check
from fism_server.archive.reader import Saved, is_begun, is_finished, load
from fism_server.archive.writer import FILE, Store
from fism_server.problem.config import RunConfig
from fism_server.problem.plan import make_plan, read_plan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fism_server.problem.plan import Plan

_CONFIG = "config.json"
_FREE = ("limits.", "security.", "local.")
"""What may differ when a run is resumed: it says whom to wait for, and how long, and nothing of the problem."""


@dataclass(frozen=True)
class Job:
    """All that ``serve`` needs."""

    run_id: str
    plan: Plan
    out: Path
    store: Store
    saved: Saved | None
    """Where to go on; None for a run whose rounds have not begun."""


def new_job(plan: Plan, out: Path) -> Job:
    """Return a new run in ``out``, a folder that is new or empty."""
    folder = _new_folder(out)
    run_id = uuid.uuid4().hex
    begun_with = {
        "config": plan.config.model_dump(mode="json", by_alias=True, exclude_unset=True),
        "folder": str(plan.folder.absolute()),
        "inputs": plan.inputs,
    }
    try:
        # Not in the database, which can be given to anybody: this tells what H is.
        write_bytes(folder / _CONFIG, json.dumps(begun_with, indent=2).encode() + b"\n", mode=0o600)
    except OSError as error:
        raise ConfigError(f"cannot write to the run folder {out}: {error.strerror}") from error
    store = Store.create(folder, {"id": run_id, "name": plan.config.federation.name, "version": __version__})
    return Job(run_id, plan, folder, store, None)


def resumed_job(out: Path, config: Path | None = None, overrides: Sequence[str] = ()) -> Job:
    """Return the run in ``out``, to go on where it was saved.

    Its configuration is the one that it began with, or ``config`` if that says the same but for limits, security and
    local.
    """
    store = Store.open(out)
    try:
        saved = load(store.database, out / FILE)
        plan = _same_plan(out, saved, config, overrides)
        if saved.state is not None:
            store.rewind(saved.state.round)
    except BaseException:
        store.close()
        raise
    return Job(saved.facts["id"], plan, out, store, saved if saved.state is not None else None)


def new_name(name: str) -> str:
    """Return the name of a new run's folder: the federation's, and the time."""
    return f"{name}-{time.strftime('%Y%m%d-%H%M%S')}"


def broken_off(runs: Path, name: str) -> Path | None:
    """Return the newest run of a federation in a folder of runs, if it is not finished; older ones do not count."""
    found = runs.glob(f"{name}-{'[0-9]' * 8}-{'[0-9]' * 6}/{FILE}")
    newest = max((file.parent for file in found if is_begun(file.parent)), default=None)
    return None if newest is None or is_finished(newest) else newest


def _same_plan(out: Path, saved: Saved, config: Path | None, overrides: Sequence[str]) -> Plan:
    """Return the plan of a run that is to go on; refuse a run that is finished, and another configuration."""
    if "stopped" in saved.facts:
        raise ConfigError(f"the run in {out} is finished; its model is {out / 'model.npz'}")
    version = saved.facts.get("version", "unknown")
    if version != __version__:
        raise ConfigError(
            f"the run in {out} was begun with version {version} of fism, and this is {__version__}; go on with that "
            "version, or move the run away and begin a new one"
        )
    file, begun_with, before = _begun_with(out)
    if config is not None:
        plan = read_plan(config, overrides)
    else:
        now = check(RunConfig, begun_with["config"], str(file), overrides)
        plan = make_plan(now, Path(begun_with["folder"]), str(file))
    different = _differences(before, begun_with["inputs"], plan)
    if different:
        told = "; ".join(different)
        raise ConfigError(
            f"the run in {out} was begun with another configuration: {told}. Go on with the one that it has, by "
            "--resume alone, or move it away and begin a new one"
        )
    return plan


def config_begun_with(out: Path) -> tuple[RunConfig, Path]:
    """Return the configuration that a run was begun with, and the folder that its paths are relative to."""
    _, begun_with, config = _begun_with(out)
    return config, Path(begun_with["folder"])


def _begun_with(out: Path) -> tuple[Path, dict[str, Any], RunConfig]:
    """Return the file that says what a run was begun with, what is in it, and the configuration."""
    file = out / _CONFIG
    try:
        begun_with = json.loads(file.read_bytes())
        return (
            file,
            begun_with | {"folder": str(begun_with["folder"])},
            check(RunConfig, begun_with["config"], str(file)),
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(
            f"cannot read what the run in {out} was begun with: {file}: {error}; restore it from a copy"
        ) from error


def _new_folder(out: Path) -> Path:
    """Make the run's folder; refuse one that has something in it."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        if (out / FILE).exists():
            raise ConfigError(f"there is a run in {out}; go on with it by --resume {out}, or choose another with --out")
        if any(out.iterdir()):
            raise ConfigError(f"the run folder {out} is not empty; choose another with --out")
    except OSError as error:
        raise ConfigError(f"cannot make the run folder {out}: {error.strerror}") from error
    return out


def _differences(begun_with: RunConfig, inputs: dict[str, str], plan: Plan) -> list[str]:
    before, now = _flat(begun_with.model_dump(mode="json")), _flat(plan.config.model_dump(mode="json"))
    told = [
        f"{key} was {before.get(key)!r} and is {now.get(key)!r}"
        for key in dict.fromkeys([*before, *now])
        if before.get(key) != now.get(key) and not key.startswith(_FREE)
    ]
    files = [key for key in inputs if plan.inputs.get(key) != inputs[key] and not any(key in one for one in told)]
    return told + [f"the file of {key} has changed" for key in files]


def _flat(value: Any, key: str = "") -> dict[str, Any]:  # noqa: ANN401  # what JSON can be
    """Return nested tables as one, with keys like a.b."""
    if not isinstance(value, dict):
        return {key: value}
    parts = [_flat(part, f"{key}.{name}" if key else name) for name, part in value.items()]
    return {name: found for part in parts for name, found in part.items()}
