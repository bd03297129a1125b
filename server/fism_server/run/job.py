"""A new or resumed run: its plan, its folder, its archive."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fism_common import __version__
from fism_common.errors import ConfigError
from fism_common.settings import check
from fism_server.archive.configuration import read_beginning, write_beginning
from fism_server.archive.database import is_begun
from fism_server.archive.reader import Saved, is_finished, load
from fism_server.archive.schema import FILE
from fism_server.archive.writer import Archive
from fism_server.problem.config import RunConfig
from fism_server.problem.plan import make_plan, read_plan

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from fism_server.problem.plan import Plan

_FREE = ("limits.", "security.", "local.")
"""What may differ when a run is resumed: who to wait for, and how long. None of it is part of the problem."""


@dataclass(frozen=True)
class Job:
    """Everything that ``serve`` needs."""

    run_id: str
    plan: Plan
    out: Path
    archive: Archive
    saved: Saved | None
    """Where to continue; None for a run whose rounds have not begun."""


def new_job(plan: Plan, out: Path) -> Job:
    """Return a new run in ``out``, a folder that is new or empty."""
    folder = _new_folder(out)
    run_id = uuid.uuid4().hex
    write_beginning(folder, plan)
    facts = {"id": run_id, "name": plan.config.federation.name, "version": __version__}
    return Job(run_id, plan, folder, Archive.create(folder, facts), None)


def resumed_job(out: Path, config: Path | None = None, overrides: Sequence[str] = ()) -> Job:
    """Return the run in ``out``, to continue where it was saved.

    Its configuration is the one that it began with, or ``config`` if that differs in limits, security and local only.
    """
    archive = Archive.open(out)
    try:
        saved = load(archive.database)
        plan = _same_plan(out, saved, config, overrides)
        if saved.state is not None:
            archive.rewind(saved.state.round)
    except BaseException:
        archive.close()
        raise
    return Job(saved.facts["id"], plan, out, archive, saved if saved.state is not None else None)


def new_name(name: str) -> str:
    """Return the name of a new run's folder: the federation's, and the time."""
    return f"{name}-{time.strftime('%Y%m%d-%H%M%S')}"


def latest_unfinished(runs: Path, name: str) -> Path | None:
    """Return the latest run of a federation in a folder of runs, if it is not finished; older ones do not count."""
    found = runs.glob(f"{name}-{'[0-9]' * 8}-{'[0-9]' * 6}/{FILE}")
    latest = max((file.parent for file in found if is_begun(file)), default=None)
    return None if latest is None or is_finished(latest) else latest


def _same_plan(out: Path, saved: Saved, config: Path | None, overrides: Sequence[str]) -> Plan:
    """Return the plan of a run to resume; refuse a run that is finished, and another configuration."""
    if "stopped" in saved.facts:
        raise ConfigError(f"the run in {out} is finished; its model is {out / 'model.npz'}")
    version = saved.facts.get("version", "unknown")
    if version != __version__:
        raise ConfigError(
            f"the run in {out} was started with version {version} of fism, and this is {__version__}; resume it with "
            "that version, or move its folder away and start a new run"
        )
    beginning = read_beginning(out)
    if config is not None:
        plan = read_plan(config, overrides)
    else:
        now = check(RunConfig, beginning.table, str(beginning.file), overrides)
        plan = make_plan(now, beginning.folder, str(beginning.file))
    different = _differences(beginning.config, beginning.inputs, plan)
    if different:
        raise ConfigError(
            f"the run in {out} was started with another configuration: {'; '.join(different)}. Resume it without "
            "a configuration, or move its folder away and start a new run"
        )
    return plan


def _new_folder(out: Path) -> Path:
    """Create the run's folder; refuse one that is not empty."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        if (out / FILE).exists():
            raise ConfigError(f"there is a run in {out}; resume it with --resume {out}, or choose another with --out")
        if any(out.iterdir()):
            raise ConfigError(f"the run folder {out} is not empty; choose another with --out")
    except OSError as error:
        raise ConfigError(f"cannot make the run folder {out}: {error.strerror}") from error
    return out


def _differences(begun_with: RunConfig, inputs: dict[str, str], plan: Plan) -> list[str]:
    before, now = _flat(begun_with.model_dump(mode="json")), _flat(plan.config.model_dump(mode="json"))
    keys = [
        f"{key} was {before.get(key)!r} and is {now.get(key)!r}"
        for key in dict.fromkeys([*before, *now])
        if before.get(key) != now.get(key) and not key.startswith(_FREE)
    ]
    files = [key for key in inputs if plan.inputs.get(key) != inputs[key] and not any(key in one for one in keys)]
    return keys + [f"the file of {key} has changed" for key in files]


def _flat(value: Any, key: str = "") -> dict[str, Any]:  # noqa: ANN401  # any JSON value
    """Return nested tables as one, with keys like a.b."""
    if not isinstance(value, dict):
        return {key: value}
    parts = [_flat(part, f"{key}.{name}" if key else name) for name, part in value.items()]
    return {name: found for part in parts for name, found in part.items()}
