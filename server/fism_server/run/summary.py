"""The results of a finished run: its summary, and the files of its model."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fism_common.errors import StoreError
from fism_common.files import write_bytes
from fism_common.model import Fitted, write_model
from fism_server.archive.reader import event_counts
from fism_server.archive.timing import timings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fism_common.data.columns import Recipe
    from fism_common.data.moments import Scaling
    from fism_common.exchange import Evaluation
    from fism_server.algorithm.methods.base import Method
    from fism_server.federation.roster import Member
    from fism_server.run.job import Job

REPORT = "report.html"
_FILES = ("model.npz", "model.json", "summary.json", "run.sqlite", REPORT)


@dataclass(frozen=True)
class Outcome:
    """How a run ended."""

    method: Method
    inner: float
    outer: float
    held_out: Evaluation | None
    members: Sequence[Member]
    recipe: Recipe
    scaling: Scaling | None


def summarise(job: Job, outcome: Outcome) -> dict[str, Any]:
    """Return the summary of a finished run."""
    method, database = outcome.method, job.archive.database
    with database.reporting("read"):
        times, happened = timings(database.connection, method.since), event_counts(database.connection)
    summary: dict[str, Any] = {
        "run": job.run_id,
        "name": job.plan.config.federation.name,
        "rounds": method.round - 1,
        "stopped": str(method.stopped),
        "inner": outcome.inner,
        "outer": outcome.outer,
        "seconds": times.seconds,
        "round_ms": times.round_ms,
        "split_ms": times.split_ms,
        "clients": [
            {"name": one.name, "rows": one.rows, "virtual_clients": one.virtual_clients, **times.clients[one.name]}
            for one in outcome.members
        ],
        "events": happened,
        "files": {name: str(job.out / name) for name in _FILES},
    }
    held = outcome.held_out
    if held is not None:
        summary["held_out"] = {"rows": held.rows, "right": held.right, "loss": held.loss}
    return summary


def write_files(job: Job, outcome: Outcome, summary: dict[str, Any]) -> None:
    """Write the model and the summary to the run's folder; raise StoreError if that fails."""
    plan, method = job.plan, outcome.method
    provenance = {key: summary[key] for key in ("run", "name", "rounds", "stopped", "inner")}
    provenance["constraint"] = plan.config.inner.constraint.model_dump(mode="json", by_alias=True, exclude_unset=True)
    provenance["clients"] = [{"name": one.name, "rows": one.rows} for one in outcome.members]
    fitted = Fitted(method.x, plan.loss, outcome.recipe, outcome.scaling)
    try:
        write_model(job.out / "model", fitted, provenance, **method.means())
        write_bytes(job.out / "summary.json", json.dumps(summary, indent=2).encode() + b"\n")
    except OSError as error:
        raise StoreError(
            f"cannot write the model to {job.out}: {error.strerror}; the run's state is saved: continue with --resume"
        ) from error


def table(summary: dict[str, Any]) -> list[tuple[str, str]]:
    """Return a summary as lines for people, each with its name."""
    split = ", ".join(f"{name} {ms:.2f}" for name, ms in summary["split_ms"].items())
    rows = [
        ("rounds", f"{summary['rounds']}, stopped by {summary['stopped']}"),
        ("F, H", f"{summary['inner']:.8g}, {summary['outer']:.8g}"),
        ("time", f"{summary['seconds']:.2f} s, {summary['round_ms']:.2f} ms per round ({split})"),
        ("clients", ", ".join(f"{client['name']} ({client['rows']} rows)" for client in summary["clients"][:8])),
    ]
    held = summary.get("held_out")
    if held and held["right"] is not None:
        rows.append(("held out", f"{held['right']} of {held['rows']} rows correct"))
    elif held:
        rows.append(("held out", f"mean loss {held['loss'] / held['rows']:.6g} on {held['rows']} rows"))
    if summary["events"]:
        rows.append(("events", ", ".join(f"{count} {kind}" for kind, count in summary["events"].items())))
    return [*rows, ("model", summary["files"]["model.npz"]), ("report", summary["files"][REPORT])]
