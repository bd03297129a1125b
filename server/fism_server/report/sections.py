"""The sections of a run's page, made from a snapshot of its folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fism_server.archive.snapshot import Stage
from fism_server.archive.timing import duration
from fism_server.report import words
from fism_server.report.clients import clients_section, events_section
from fism_server.report.coefficients import model_section, quality_section
from fism_server.report.numbers import number
from fism_server.report.rounds import progress_section, time_section
from fism_server.report.view import Section, Table, View

if TYPE_CHECKING:
    from fism_server.archive.snapshot import Snapshot


def view_of(run: Snapshot) -> View:
    """Return the page of a run."""
    parts = [
        _problem(run),
        progress_section(run),
        time_section(run),
        clients_section(run),
        quality_section(run),
        model_section(run),
        events_section(run),
    ]
    return View(
        title=run.facts.get("name", run.folder.name),
        stage=str(run.stage),
        status=_status(run),
        headline=_headline(run),
        sections=[part for part in parts if part is not None],
    )


def _status(run: Snapshot) -> str:
    count, seconds = len(run.rounds["round"]), float(run.rounds["seconds"].sum())
    if run.stage is Stage.FINISHED:
        reached = run.facts["stopped"] == "rounds"
        why = "it reached the last round" if reached else "it met the stop rule (changes below the tolerance)"
        return f"Finished after {count:,} rounds and {duration(seconds)}: {why}."
    if run.stage is Stage.INTERRUPTED:
        return f"Interrupted after {count:,} rounds, or running on another machine. Continue with --resume."
    waiting = ", ".join(run.waiting)
    if run.stage is Stage.WAITING:
        return f"Waiting for clients: {waiting or 'all of them'}."
    # The headline has the rounds: a screen reader reads this text aloud when it changes.
    return f"Running. Waiting for {waiting}." if waiting else "Running."


def _headline(run: Snapshot) -> list[tuple[str, str]]:
    rounds = run.rounds
    count = len(rounds["round"])
    ends = {key: run.facts.get(key, float(rounds[key][-1]) if count else None) for key in ("inner", "outer")}
    found = [
        ("F", number(ends["inner"])),
        ("H", number(ends["outer"])),
        ("rounds", f"{count:,}"),
        ("time", duration(float(rounds["seconds"].sum()))),
        ("clients", f"{sum(one.dropped is None for one in run.clients):,}"),
        ("rows", f"{sum(one.rows for one in run.clients if one.dropped is None):,}"),
    ]
    if run.qualities:
        last = run.qualities[-1]
        if last.right is not None:
            found.append(("correct on held-out rows", f"{last.right / last.rows:.1%}"))
        else:
            found.append(("mean loss on held-out rows", number(last.loss / last.rows)))
    return found


def _problem(run: Snapshot) -> Section:
    title = "The problem"
    if run.config is None:
        return Section("problem", title, [f"Unknown: {run.trouble}."])
    config, taking = run.config, [one for one in run.clients if one.dropped is None]
    columns = 0 if run.state is None else run.state.x.size
    clients = config.federation.clients
    expected = len(taking) or (clients if isinstance(clients, int) else len(clients))
    text = words.problem(config, expected, sum(one.rows for one in taking), columns)
    until = f"{config.stop.rounds:,} rounds"
    if config.stop.tolerance is not None:
        until += f", or changes of x, F and H below {config.stop.tolerance:g}"
    recipe = config.data
    facts = [
        ["loss", config.inner.loss.kind],
        ["constraint", words.constraint(config.inner.constraint)],
        ["private objective", words.objective(config.outer)[0]],
        ["steps", words.steps(config.steps)],
        ["stops after", until],
        ["columns", "standardised" if recipe.standardise is True else str(recipe.standardise or "not standardised")],
        ["intercept", "yes" if recipe.intercept else "no"],
        ["run", f"{run.facts.get('id', '')} in {run.folder}"],
    ]
    return Section("problem", title, text, tables=[Table("Configuration of the run", ["key", "value"], facts)])
