"""Draw the pictures in docs/: the idea of selection, and the rate theorem's bound."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Circle

import fism

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
    """Draw a valley of minimisers of F, circles of H, and where runs with and without H end."""
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


def draw_rate(axes: Axes) -> None:
    """Draw F at the ergodic mean and at the last iterate over the rounds, below the bounds of the rate theorem."""
    rng = np.random.default_rng(1)
    n, sizes, bound, epsilon = 6, (2, 6, 16), 2.0, 0.1
    m, S = sum(sizes), len(sizes)
    A = rng.normal(size=(m, 3)) @ rng.normal(size=(3, n))
    A /= np.linalg.norm(A, axis=1, keepdims=True)
    b = A @ rng.uniform(-1, 1, n)
    anchor, start = rng.uniform(-bound, bound, (2, n))
    problem = fism.Problem("absolute", fism.Box(-bound, bound), fism.SquaredDistance(anchor))
    steps = fism.PowerSteps.for_rate(epsilon, gamma=0.3, lam=1.0)
    shards = list(zip(np.split(A, np.cumsum(sizes)[:-1]), np.split(b, np.cumsum(sizes)[:-1]), strict=True))
    solution = anchor + np.linalg.pinv(A) @ (b - A @ anchor)  # A x = b is consistent, so that F* = 0

    rounds = np.unique(np.logspace(0, 5, 21).astype(int))
    k = np.arange(1, rounds[-1] + 1)
    gamma, lam = (np.array([f(int(j)) for j in k]) for f in (steps.gamma, steps.lam))
    C_f, C_H = 1.0, float(np.linalg.norm(np.abs(anchor) + bound))
    gap_H = problem.outer.value(solution)  # H is 0 at its own minimum
    apart = float(np.sum((problem.constraint.project(start) - solution) ** 2))
    sharp_noise = gamma**2 * np.mean(np.square(sizes)) * (C_f + lam * C_H / m) ** 2
    C = 4 * m**3 * (C_f**2 + 2 * C_H**2 / m**2) + 2 * C_f * m**2 * (C_f + C_H / m)
    M_H = max(C_H, C_H**2 / 2)
    sums = np.cumsum(gamma)
    sharp = (S * (apart + np.cumsum(sharp_noise)) + 2 * gap_H * np.cumsum(gamma * lam)) / (2 * sums)
    paper = (S * (apart + C * np.cumsum(gamma**2)) + 4 * M_H * np.cumsum(gamma * lam)) / (2 * sums)

    F = {"average": [], "x": []}  # type: dict[str, list[float]]
    for K in rounds:
        result = fism.solve(problem, shards, steps=steps, rounds=int(K), start=start)
        for name, values in F.items():
            values.append(float(np.sum(np.abs(A @ getattr(result, name) - b))))
    axes.loglog(k, paper, color=GREY, ls="--", lw=1.2, label="bound with the paper's constant")
    axes.loglog(k, sharp, color=INK, lw=1.4, label="bound with the sharp constant")
    axes.loglog(rounds, F["average"], "o-", color=BLUE, ms=3.5, lw=1.2, label="measured at the ergodic mean")
    axes.loglog(rounds, F["x"], "s-", color=ORANGE, ms=3.5, lw=1.2, label="measured at the last iterate")
    axes.loglog(
        k, F["average"][-1] * (k / k[-1]) ** -(0.5 - epsilon), color=BLUE, ls=":", lw=1, label=r"slope of $K^{-0.4}$"
    )
    axes.set(xlabel="rounds K", ylabel="F gap to the optimum", xlim=(1, k[-1]))
    axes.grid(visible=True, which="major", alpha=0.3)
    axes.legend(frameon=False, fontsize=9)


def main() -> None:
    """Write every picture as SVG."""
    mpl.rcParams.update(
        {"svg.hashsalt": "fism", "font.family": "DejaVu Sans", "axes.spines.top": False, "axes.spines.right": False}
    )
    for name, draw, size in (("idea", draw_idea, (5.6, 6.9)), ("rate", draw_rate, (7.0, 5.0))):
        figure, axes = plt.subplots(figsize=size, layout="constrained")
        draw(axes)
        figure.savefig(DOCS / f"{name}.svg", metadata={"Date": None})
        plt.close(figure)


if __name__ == "__main__":
    main()
