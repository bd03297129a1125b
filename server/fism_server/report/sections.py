"""What there is to see of a run: each section of the page, made from what its folder tells."""

from __future__ import annotations

import math
import time
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from fism_server.archive.snapshot import Stage
from fism_server.archive.timing import duration
from fism_server.report import words
from fism_server.report.downsample import stretches, thinned
from fism_server.report.view import Kind, Plot, Scale, Section, Series, Table, View

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from fism_common.vectors import Vector
    from fism_server.archive.snapshot import Snapshot
    from fism_server.report.view import Numbers

_MOST_COEFFICIENTS = 20
_MOST_EVENTS = 200
_MOST_BARS = 60
_STRETCHES = 240
_ROWS_OF_A_CURVE = 14
_PARTS = ("slowest client", "network", "server")


def view_of(run: Snapshot) -> View:
    """Return what there is to see of a run."""
    parts = [_problem(run), _progress(run), _time(run), _clients(run), _quality(run), _model(run), _events(run)]
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
        why = "the last round was done" if run.facts["stopped"] == "rounds" else "it had settled"
        return f"Finished after {count:,} rounds and {duration(seconds)}: {why}."
    if run.stage is Stage.BROKEN_OFF:
        return f"Broken off after {count:,} rounds, or run by another machine. Go on with --resume."
    waiting = ", ".join(run.waiting)
    if run.stage is Stage.WAITING:
        return f"Waiting for its clients: {waiting or 'all of them'}."
    # Rounds are in the headline: this is said aloud by a screen reader when it changes.
    return f"Running. Waiting for {waiting}." if waiting else "Running."


def _headline(run: Snapshot) -> list[tuple[str, str]]:
    rounds = run.rounds
    count = len(rounds["round"])
    ends = {key: run.facts.get(key, float(rounds[key][-1]) if count else None) for key in ("inner", "outer")}
    found = [
        ("F", _number(ends["inner"])),
        ("H", _number(ends["outer"])),
        ("rounds", f"{count:,}"),
        ("time", duration(float(rounds["seconds"].sum()))),
        ("clients", f"{sum(one.left_out is None for one in run.clients):,}"),
        ("rows", f"{sum(one.rows for one in run.clients if one.left_out is None):,}"),
    ]
    if run.qualities:
        last = run.qualities[-1]
        if last.right is not None:
            found.append(("right on held-out rows", f"{last.right / last.rows:.1%}"))
        else:
            found.append(("mean loss on held-out rows", _number(last.loss / last.rows)))
    return found


def _problem(run: Snapshot) -> Section:
    title = "The problem"
    if run.config is None:
        return Section("problem", title, [f"It cannot be told: {run.trouble}."])
    config, taking = run.config, [one for one in run.clients if one.left_out is None]
    columns = 0 if run.state is None else run.state.x.size
    clients = config.federation.clients
    expected = len(taking) or (clients if isinstance(clients, int) else len(clients))
    told = words.problem(config, expected, sum(one.rows for one in taking), columns)
    until = f"{config.stop.rounds:,} rounds"
    if config.stop.tolerance is not None:
        until += f", or changes of x, F and H below {config.stop.tolerance:g}"
    recipe = config.data
    facts = [
        ["loss", config.inner.loss.name],
        ["constraint", words.constraint(config.inner.constraint)],
        ["private objective", words.objective(config.outer)[0]],
        ["steps", words.steps(config.steps)],
        ["ends after", until],
        ["columns", "standardised" if recipe.standardise is True else str(recipe.standardise or "as they are")],
        ["intercept", "yes" if recipe.intercept else "no"],
        ["run", f"{run.facts.get('id', '')} in {run.folder}"],
    ]
    return Section("problem", title, told, tables=[Table("What the run was begun with", ["key", "value"], facts)])


def _progress(run: Snapshot) -> Section | None:
    rounds = run.rounds
    if not len(rounds["round"]):
        return None
    elapsed = rounds["seconds"].cumsum() - rounds["seconds"]  # when the round began, as F and H are those before it

    def curve(key: str, title: str, label: str, scale: Scale = Scale.CHOSEN) -> Plot:
        kept = thinned(rounds[key])
        series = [Series(title, _numbers(rounds[key][kept]))]
        at, seconds = _numbers(rounds["round"][kept]), _numbers(elapsed[kept])
        return Plot(key, title, Kind.LINES, label, series, at, seconds, scale=scale)

    chosen = _spread(len(elapsed))
    cells = [
        [
            f"{int(rounds['round'][i]):,}",
            f"{elapsed[i]:.3g}",
            *(_number(rounds[key][i]) for key in ("inner", "outer")),
            f"{rounds['change'][i]:.2e}",
        ]
        for i in chosen
    ]
    return Section(
        "progress",
        "F and H",
        ["F is brought to its least value, and H as low as F's minimisers allow. Both are those before the round."],
        [
            curve("inner", "F, what all clients minimise", "F"),
            curve("outer", "H, the private preference", "H"),
            curve("change", "Change of x in a round", "|x_k+1 - x_k| / (|x_k| + 1)", Scale.LOG),
        ],
        [Table("Rounds", ["round", "seconds", "F", "H", "change"], cells)],
    )


def _time(run: Snapshot) -> Section | None:
    if not len(run.timed):
        return None
    ms = 1e3 * run.split
    elapsed = run.rounds["seconds"].cumsum()[run.timed.astype(int) - 1]
    edges = stretches(len(ms), _STRETCHES) if len(ms) > _STRETCHES else np.arange(len(ms) + 1)
    medians = np.array([np.median(ms[a:b], axis=0) for a, b in pairwise(edges)])
    last = edges[1:] - 1
    plot = Plot(
        "split",
        "Milliseconds a round, by what they were spent on",
        Kind.AREAS,
        "time of a round (ms, medians)",
        [Series(name, _numbers(medians[:, i])) for i, name in enumerate(_PARTS)],
        _numbers(run.timed[last]),
        _numbers(elapsed[last]),
        top=_top(medians.sum(axis=1)),
    )
    whole = 1e3 * run.rounds["seconds"]
    columns = [*(ms[:, i] for i in range(len(_PARTS))), whole]
    cells = [
        [name, *(f"{np.quantile(values, q):.3g}" for q in (0.5, 0.95)), f"{values.max():.3g}"]
        for name, values in zip([*_PARTS, "whole round"], columns, strict=True)
    ]
    text = (
        "A round waits for its last client: its computing, its messages' way there and back, and the server's own work."
    )
    table = Table("Milliseconds a round", ["part", "median", "95 % below", "most"], cells)
    return Section("time", "Where the time goes", [text], [plot], [table])


def _top(totals: NDArray[np.float64]) -> float | None:
    """Return where to end the axis, if a few rounds, as the first often is, would make all others flat."""
    usual = 1.25 * float(np.quantile(totals, 0.98))
    return None if totals.max() <= 2 * usual else float(f"{usual:.2g}")


def _clients(run: Snapshot) -> Section | None:
    names = [one.name for one in run.clients] or [*run.present, *run.waiting]
    if not names:
        return None
    spent = dict.fromkeys(names, (0.0, 0.0))
    for name, answers in run.answers.items():
        if len(answers):
            computed, waited = 1e3 * np.median(answers, axis=0)
            spent[name] = float(computed), float(max(0.0, waited - computed))
    rows = {one.name: one for one in run.clients}
    happened: Counter[str] = Counter()
    for event in run.events:
        for name in event.client.split(", "):
            happened[name] += event.count
    cells = []
    for name in names:
        one = rows.get(name)
        shape = [f"{one.rows:,}", str(one.shards)] if one else ["", ""]
        cells.append([name, _where(run, name), *shape, *(f"{ms:.3g}" for ms in spent[name]), str(happened[name])])
    plots = []
    if len(run.timed):
        shown = names if len(names) <= _MOST_BARS else sorted(names, key=lambda name: -sum(spent[name]))[:_MOST_BARS]
        title = "Each client's milliseconds" if len(shown) == len(names) else f"The slowest {_MOST_BARS} clients"
        parts = [
            Series(part, _numbers([spent[n][i] for n in shown])) for i, part in enumerate(("computing", "network"))
        ]
        plots.append(Plot("clients", title, Kind.BARS, "time of a round (ms, medians)", parts, categories=shown))
    columns = ["client", "now", "rows", "shards", "computing (ms)", "network (ms)", "events"]
    return Section("clients", "Clients", [], plots, [Table("Clients", columns, cells)])


def _where(run: Snapshot, name: str) -> str:
    left = next((one.left_out for one in run.clients if one.name == name), None)
    if left is not None:
        return f"left out in round {left:,}"
    if name in run.waiting:
        return f"waited for since {time.strftime('%H:%M:%S', time.localtime(run.waiting[name]))}"
    if run.stage in {Stage.RUNNING, Stage.WAITING}:
        return "present" if name in run.present else "away"
    return "took part"


def _quality(run: Snapshot) -> Section | None:
    if not run.qualities:
        return None
    counted = run.qualities[0].right is not None
    values = np.array([(one.right or 0) / one.rows if counted else one.loss / one.rows for one in run.qualities])
    at = np.array([one.round for one in run.qualities], float)
    elapsed = run.rounds["seconds"].cumsum() - run.rounds["seconds"]
    kept = thinned(values)
    seconds = elapsed[np.minimum(at[kept].astype(int), len(elapsed)) - 1]
    title = "Share of held-out rows that are right" if counted else "Mean loss on held-out rows"
    label = "share of rows (%)" if counted else "mean loss"
    shown = 100 * values if counted else values
    plot = Plot(
        "quality",
        title,
        Kind.LINES,
        label,
        [Series(title, _numbers(shown[kept]))],
        _numbers(at[kept]),
        _numbers(seconds),
    )
    cells = [
        [
            f"{one.round:,}",
            f"{one.rows:,}",
            *([f"{one.right / one.rows:.2%}"] if one.right is not None else []),
            _number(one.loss / one.rows),
        ]
        for one in (run.qualities[i] for i in _spread(len(at)))
    ]
    columns = ["round", "rows", *(["right"] if counted else []), "mean loss"]
    text = "Clients hold out rows that nobody learns from, and tell how the model does on them."
    return Section("quality", "Held-out quality", [text], [plot], [Table("On held-out rows", columns, cells)])


def _model(run: Snapshot) -> Section | None:
    state = run.state
    if state is None or state.k_sum == 0:
        return None
    points = {"last x": state.x, "k-weighted mean": state.weighted, "step-weighted mean": state.average}
    fitted = run.fitted
    entries = fitted.recipe.entries() if fitted is not None else []
    largest = _largest(state.x)
    names = [entries[i].name if entries else f"column {i}" for i in largest]
    plot = Plot(
        "coefficients",
        f"The largest {len(largest)} of {state.x.size:,} coefficients"
        if len(largest) < state.x.size
        else "Coefficients",
        Kind.MARKED,
        "coefficient" if fitted is None or fitted.scaling is None else "coefficient (of standardised columns)",
        [Series(name, _numbers(x[largest])) for name, x in points.items()],
        categories=names,
    )
    cells = [[name, *(_number(x[i]) for x in points.values())] for name, i in zip(names, largest, strict=True)]
    columns = ["column", *points]
    if fitted is not None and fitted.scaling is not None:
        original, constant = fitted.in_original_units()
        columns.append("in original units")
        for row, i in zip(cells, largest, strict=True):
            row.append(_number(original[i]) if i < original.size else _number(constant))
        if not fitted.recipe.intercept:
            cells.append(["constant", *("0" for _ in points), _number(constant)])
    return Section(
        "model",
        "The model",
        [
            "The last x is the answer. The two means over all rounds still hold the first ones, and so are behind.",
            "Where they agree with the last x, the run has settled.",
        ],
        [plot],
        [Table("Largest coefficients", columns, cells), _iterates(run, points)],
    )


def _iterates(run: Snapshot, points: dict[str, Vector]) -> Table:
    last = points["last x"]
    H = run.objective
    cells = []
    for name, x in points.items():
        away = float(np.linalg.norm(x - last) / (np.linalg.norm(last) + 1.0))
        small = 1e-6 * max(1.0, float(np.abs(x).max(initial=0.0)))
        size, entries = float(np.linalg.norm(x)), int((np.abs(x) > small).sum())
        cells.append([name, "" if H is None else _number(H.value(x)), _number(size), f"{entries:,}", f"{away:.2e}"])
    columns = ["point", "H", "|x|", "entries that are not 0", "distance to last x, over |x| + 1"]
    return Table("Last and averaged iterates", columns, cells)


def _events(run: Snapshot) -> Section:
    count = sum(event.count for event in run.events)
    if not count:
        return Section("events", "Events", ["Nothing went wrong."])
    newest = run.events[: -_MOST_EVENTS - 1 : -1]
    cells = [
        [
            time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(event.at)),
            f"{event.round:,}",
            str(event.kind),
            event.client or "-",
            event.text + (f" ({event.count:,} times)" if event.count > 1 else ""),
        ]
        for event in newest
    ]
    text = (
        f"{count:,} event{'' if count == 1 else 's'}; the newest are first."
        if len(newest) == len(run.events)
        else (f"{count:,} events, of which the newest {len(newest)} are here; fism events {run.folder} has all.")
    )
    table = Table("Events", ["when", "round", "kind", "client", "what"], cells)
    return Section("events", "Events", [text], tables=[table])


def _largest(x: Vector) -> NDArray[np.intp]:
    """Return the indices of the entries that are largest in absolute value, in that order."""
    sizes, most = np.abs(x), min(_MOST_COEFFICIENTS, x.size)
    found = np.argpartition(-sizes, most - 1)[:most]
    return found[np.lexsort((found, -sizes[found]))]


def _spread(n: int) -> list[int]:
    """Return a few indices of n rounds to put in a table: the first, the last, and between them ever fewer."""
    if n <= _ROWS_OF_A_CURVE:
        return list(range(n))
    return [int(i) - 1 for i in np.unique(np.geomspace(1, n, _ROWS_OF_A_CURVE).round())]


def _numbers(values: Iterable[float] | NDArray[np.float64]) -> Numbers:
    """Return numbers as they are drawn: of seven digits, and none where there is none."""
    return [float(f"{value:.7g}") if math.isfinite(value) else None for value in values]


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.6g}"
