"""What a finished run leaves: its summary, and the files of its model."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fism_common.errors import StoreError
from fism_common.files import write_bytes
from fism_common.model import Fitted, write_model

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fism_common.data.columns import Recipe
    from fism_common.data.moments import Scaling
    from fism_common.exchange import Evaluation
    from fism_server.algorithm.rounds import State
    from fism_server.federation.roster import Member
    from fism_server.run.job import Job

REPORT = "report.html"
_FILES = ("model.npz", "model.json", "summary.json", "run.sqlite", REPORT)


@dataclass(frozen=True)
class Outcome:
    """How a run ended."""

    state: State
    inner: float
    outer: float
    held_out: Evaluation | None
    members: Sequence[Member]
    recipe: Recipe
    scaling: Scaling | None


def summarise(job: Job, outcome: Outcome) -> dict[str, Any]:
    """Return the summary of a finished run."""
    state, store = outcome.state, job.store
    times = store.times(state.since)
    summary: dict[str, Any] = {
        "run": job.run_id,
        "name": job.plan.config.federation.name,
        "rounds": state.round - 1,
        "stopped": str(state.stopped),
        "inner": outcome.inner,
        "outer": outcome.outer,
        "seconds": store.seconds(),
        "round_ms": 1e3 * float(np.median(times.seconds)),
        "split_ms": times.median_split(),
        "clients": [
            {"name": one.name, "rows": one.rows, "shards": one.shards, **times.medians_of(one.name)}
            for one in outcome.members
        ],
        "events": store.event_counts(),
        "files": {name: str(job.out / name) for name in _FILES},
    }
    held = outcome.held_out
    if held is not None:
        summary["held_out"] = {"rows": held.rows, "right": held.right, "loss": held.loss}
    return summary


def write_files(job: Job, outcome: Outcome, summary: dict[str, Any]) -> None:
    """Write the model and the summary to the run's folder; raise StoreError where that cannot be done."""
    plan, state = job.plan, outcome.state
    told = {key: summary[key] for key in ("run", "name", "rounds", "stopped", "inner")}
    told["constraint"] = plan.config.inner.constraint.model_dump(mode="json", by_alias=True, exclude_unset=True)
    told["clients"] = [{"name": one.name, "rows": one.rows} for one in outcome.members]
    fitted = Fitted(state.x, plan.loss, outcome.recipe, outcome.scaling)
    try:
        write_model(job.out / "model", fitted, told, weighted=state.weighted, average=state.average)
        write_bytes(job.out / "summary.json", json.dumps(summary, indent=2).encode() + b"\n")
    except OSError as error:
        raise StoreError(
            f"cannot write the model to {job.out}: {error.strerror}; the run's state is saved: go on with --resume"
        ) from error


def table(summary: dict[str, Any]) -> list[tuple[str, str]]:
    """Return a summary as lines to read, each with its name."""
    split = ", ".join(f"{name} {ms:.2f}" for name, ms in summary["split_ms"].items())
    rows = [
        ("rounds", f"{summary['rounds']}, stopped by {summary['stopped']}"),
        ("F, H", f"{summary['inner']:.8g}, {summary['outer']:.8g}"),
        ("time", f"{summary['seconds']:.2f} s, {summary['round_ms']:.2f} ms a round ({split})"),
        ("clients", ", ".join(f"{client['name']} ({client['rows']} rows)" for client in summary["clients"][:8])),
    ]
    held = summary.get("held_out")
    if held and held["right"] is not None:
        rows.append(("held out", f"{held['right']} of {held['rows']} rows right"))
    elif held:
        rows.append(("held out", f"mean loss {held['loss'] / held['rows']:.6g} on {held['rows']} rows"))
    if summary["events"]:
        rows.append(("events", ", ".join(f"{count} {kind}" for kind, count in summary["events"].items())))
    return [*rows, ("model", summary["files"]["model.npz"]), ("report", summary["files"][REPORT])]
