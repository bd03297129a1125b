"""Draw the figures in docs/: the idea of selection, its effect, and the rate theorem's bound."""

from __future__ import annotations

import runpy
import shutil
import tempfile
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Circle

import fism
from fism.paper import theory

DOCS = Path(__file__).resolve().parent.parent / "docs"
INK, BLUE, ORANGE, GREY = "#222222", "#1f6fb4", "#d9541e", "#8a8a8a"


def paths(problem: fism.Problem, shards: list[tuple[object, object]], start: np.ndarray, method: str) -> np.ndarray:
    """Return the iterates of a run, one row each."""
    steps = fism.PowerSteps(gamma=0.35, a=0.6, lam=3.0, b=0.2)
    x, points = start, [start]
    for k in range(1, 600):
        x = fism.solve(problem, shards, steps=steps, rounds=1, start=x, first_round=k, method=method).x  # type: ignore[arg-type]
        points.append(x)
    return np.array(points)


def draw_idea(axes: Axes) -> None:
    """Draw the line of minimisers of F, circles of equal H, and the end points of runs with and without H."""
    shards: list[tuple[object, object]] = [([[0.8, 0.6]], [0.5]), ([[0.4, 0.3]], [0.25]), ([[1.6, 1.2]], [1.0])]
    anchor = np.array([1.6, 1.3])
    problem = fism.Problem("absolute", fism.Box(-2, 2), fism.SquaredDistance(anchor))
    u, v = np.meshgrid(np.linspace(-2, 2, 41), np.linspace(-2, 2, 41))
    F = (1 + 0.5 + 2) * np.abs(0.8 * u + 0.6 * v - 0.5)
    axes.contourf(u, v, F, levels=12, cmap="Greys", alpha=0.45)
    axes.plot([2.0, -0.875], [-1.8333, 2.0], color=INK, lw=2.5, label="all of these fit equally well (minimise F)")
    for radius in (0.52, 1.04, 1.56, 2.08):
        axes.add_patch(Circle(tuple(anchor), radius, fill=False, color=BLUE, lw=0.8, ls=":"))
    axes.plot(*anchor, "o", color=BLUE, ms=6, label="what the coordinator would like best (minimises H)")
    start = np.array([-1.7, 1.2])
    for method, color, label in (
        ("incremental", GREY, "a run without the preference"),
        ("fism", ORANGE, "FISM: the preferred one of those that fit"),
    ):
        points = paths(problem, shards, start, method)
        axes.plot(points[:, 0], points[:, 1], color=color, lw=1.5)
        axes.plot(
            *points[-1], "*" if method == "fism" else "s", color=color, ms=14 if method == "fism" else 7, label=label
        )
    axes.plot(*start, "x", color=INK, ms=8, label="start")
    axes.set(xlim=(-2, 2), ylim=(-2, 2), aspect="equal", xlabel="first coefficient", ylabel="second coefficient")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), frameon=False, fontsize=9)


def draw_selected(fit: Axes, near: Axes) -> None:
    """Draw what examples/selection.py prints: the misfit and the distance to the preferred model, by round."""
    given = runpy.run_path(str(DOCS.parent / "examples/selection.py"))["problem"]()
    for method, color, label in (
        ("incremental", GREY, "without the preference"),
        ("fism", ORANGE, "FISM"),
    ):
        misfit, distance = [], []
        rounds = np.unique(np.geomspace(1, 10_000, 60).astype(int))
        for k in rounds:
            result = given.solve(int(k), method)
            misfit.append(result.inner)
            distance.append(float(np.linalg.norm(result.x - given.preferred)))
        fit.loglog(rounds, misfit, color=color, label=label)
        near.loglog(rounds, distance, color=color, label=label)
    fit.set(xlabel="rounds", ylabel="misfit F", title="Both fit")
    near.set(xlabel="rounds", ylabel="distance to the preferred model", title="One selects")
    near.legend(frameon=False)


def main() -> None:
    """Write every figure as SVG."""
    mpl.rcParams.update(
        {"svg.hashsalt": "fism", "font.family": "DejaVu Sans", "axes.spines.top": False, "axes.spines.right": False}
    )
    figure, axes = plt.subplots(figsize=(5.6, 6.9), layout="constrained")
    draw_idea(axes)
    figure.savefig(DOCS / "idea.svg", metadata={"Date": None})
    figure, panels = plt.subplots(1, 2, figsize=(7.6, 3.2), layout="constrained")
    draw_selected(*panels)
    figure.savefig(DOCS / "selected.svg", metadata={"Date": None})
    with tempfile.TemporaryDirectory() as scratch:
        theory.draw_rate(Path(scratch), theory.rate(5))
        shutil.copy(Path(scratch, "rate.svg"), DOCS)


if __name__ == "__main__":
    main()
