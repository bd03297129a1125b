"""List the runs in a folder with their progress."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fism_common.errors import ConfigError, FismError
from fism_server.archive.schema import FILE
from fism_server.archive.snapshot import glance

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Run:
    """One line of the list."""

    folder: str
    name: str
    stage: str
    begun: float
    """Start time, in seconds since 1970."""
    clients: int
    rounds: int
    inner: float | None
    outer: float | None
    seconds: float


def find_runs(folder: Path) -> list[Run]:
    """Return the runs in a folder, oldest first, or the one run if the folder is a run's."""
    if not folder.is_dir():
        raise ConfigError(f"there is no folder {folder}; runs are in runs/ unless started with --out")
    files = [folder / FILE] if (folder / FILE).is_file() else folder.glob(f"*/{FILE}")
    return sorted((_run(file.parent) for file in files), key=lambda run: (run.begun, run.folder))


def _run(folder: Path) -> Run:
    begun = 0.0
    try:
        begun = (folder / "config.json" if (folder / "config.json").exists() else folder).stat().st_mtime
        return Run(str(folder), begun=begun, **glance(folder))
    except (FismError, OSError) as error:
        return Run(str(folder), "", str(error), begun, 0, 0, None, None, 0.0)


def table(runs: list[Run]) -> list[str]:
    """Return runs as lines of aligned columns."""
    if not runs:
        return ["no runs"]
    rows: list[tuple[str, ...]] = [("run", "begun", "stage", "clients", "rounds", "F", "H", "seconds")]
    rows += [
        (
            run.folder,
            time.strftime("%Y-%m-%d %H:%M", time.localtime(run.begun)),
            run.stage,
            str(run.clients),
            str(run.rounds),
            *("-" if value is None else f"{value:.6g}" for value in (run.inner, run.outer)),
            f"{run.seconds:.1f}",
        )
        for run in runs
    ]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    left = 3
    return [
        "  ".join(
            cell.ljust(width) if i < left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
