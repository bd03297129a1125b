"""Write a report's plots as PNG and SVG, for papers and slides."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fism.plotting import new_folder, plot
from fism_server.archive.snapshot import Reader
from fism_server.report.sections import view_of
from fism_server.report.view import Kind, Scale, all_plots

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes

    from fism_server.report.view import Plot

_TONES = ("#0b5cad", "#b34700", "#1a7440")
_STYLES = ("-", "--", ":")
_MARKS = ("o", "D", "x")
_OVER = {"rounds": "round", "seconds": "time (s)"}


def write_pictures(run: Path, folder: Path) -> list[Path]:
    """Draw every plot of a run's report, curves over rounds and over seconds; return the files."""
    new_folder(folder)
    names = []
    for one in all_plots(view_of(Reader(run).read())):
        for over in _OVER if one.kind in {Kind.LINES, Kind.AREAS} else [""]:
            names.append(f"{one.id}-{over}" if over else one.id)
            height = 3.0 if over else 1.0 + 0.22 * len(one.categories)
            with plot(folder, names[-1], size=(5.6, height)) as (axes,):
                if over:
                    _curves(axes, one, over)
                else:
                    _bars(axes, one)
                axes.set_title(one.title, fontsize=9, loc="left")
                if len(one.series) > 1:
                    axes.legend(fontsize=8)
    return [folder / f"{name}.{form}" for name in names for form in ("png", "svg")]


def _curves(axes: Axes, given: Plot, over: str) -> None:
    x = np.array(given.rounds if over == "rounds" else given.seconds, float)
    values = [np.array(one.values, float) for one in given.series]
    names = [one.name for one in given.series]
    if given.kind is Kind.AREAS:
        axes.stackplot(x, *values, labels=names, colors=_TONES, alpha=0.85)
        axes.set_ylim(0, given.top)
    else:
        for y, name, tone, style in zip(values, names, _TONES, _STYLES, strict=False):
            axes.plot(x, y, style, label=name, color=tone, marker="o" if len(x) == 1 else "")
        if given.scale is not Scale.LINEAR and all((y > 0).all() for y in values):
            axes.set_yscale("log")
    if len(x) > 1 and x[0] > 0:
        axes.set_xscale("log")
    axes.set(xlabel=_OVER[over], ylabel=given.label)


def _bars(axes: Axes, given: Plot) -> None:
    places = np.arange(len(given.categories))
    before = np.zeros(len(places))
    for i, one in enumerate(given.series):
        values = np.array(one.values, float)
        if given.kind is Kind.BARS or i == 0:
            axes.barh(places, values, left=before, label=one.name, color=_TONES[i])
            before += values if given.kind is Kind.BARS else 0.0
        else:
            axes.plot(values, places, _MARKS[i], label=one.name, color=_TONES[i], fillstyle="none")
    axes.set_yticks(places, [name.replace("$", r"\$") for name in given.categories], fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel(given.label)
