"""Delivery firms place one depot: customers want it within reach, the coordinator wants it near the motorway."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

import numpy as np

import fism

if TYPE_CHECKING:
    from pathlib import Path

REGIONS = {"coast": (-4.0, 1.0, 40), "hills": (3.5, 3.0, 25), "plain": (1.0, -3.5, 60)}
MOTORWAY = (1.5, 1.0)


def prepare(folder: Path) -> None:
    """Write one table per firm: where its customers are, and how far each will go."""
    rng = np.random.default_rng(5)
    for name, (east, north, count) in REGIONS.items():
        with (folder / f"{name}.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["east_km", "north_km", "reach_km"])
            for x, y in rng.normal((east, north), 1.0, (count, 2)):
                # Everybody can reach the middle of the map, some only just.
                reach = float(np.hypot(x, y) + 0.6 + rng.exponential(1.0))
                writer.writerow([f"{x:.3f}", f"{y:.3f}", f"{reach:.3f}"])
    np.save(folder / "motorway.npy", np.array(MOTORWAY))


def show(folder: Path) -> None:
    """Print the place, and draw the map."""
    place = fism.load(folder / "run").coef
    table = [np.genfromtxt(folder / f"{name}.csv", delimiter=",", skip_header=1) for name in REGIONS]
    reached = np.concatenate([np.hypot(*(rows[:, :2] - place).T) - rows[:, 2] for rows in table])
    away = np.hypot(*(place - MOTORWAY))
    print(f"\nthe depot is at ({place[0]:.2f}, {place[1]:.2f}), {away:.2f} km from the motorway")
    lacking = max(*reached, 0)
    print(f"{np.mean(reached <= 0):.0%} of {reached.size} customers reach it; the worst falls {lacking:.3f} km short")
    draw(folder, table, place)


def draw(folder: Path, tables: list[np.ndarray], place: np.ndarray) -> None:
    """Draw the customers, the area that all of them reach, the motorway and the depot."""
    import matplotlib.pyplot as plt  # noqa: PLC0415  # an optional dependency

    figure, ax = plt.subplots(figsize=(6.4, 6.0))
    grid = np.stack(np.meshgrid(np.linspace(-3, 4, 400), np.linspace(-3, 4, 400)), axis=-1)
    rows = np.vstack(tables)
    lacking = np.max(np.hypot(*(grid[:, :, None] - rows[:, :2]).transpose(3, 0, 1, 2)) - rows[:, 2], axis=2)
    ax.contourf(grid[..., 0], grid[..., 1], lacking, levels=[-np.inf, 0.0], colors=["#cfe6cf"])
    ax.contour(grid[..., 0], grid[..., 1], lacking, levels=[0.0], colors=["#4b8b4b"], linewidths=1)
    for name, table, color in zip(REGIONS, tables, ("#1f6fb4", "#8a5fbf", "#b8860b"), strict=True):
        ax.scatter(table[:, 0], table[:, 1], s=14, color=color, label=f"customers, {name}")
    ax.plot(*MOTORWAY, "s", color="#222222", ms=8, label="motorway (the coordinator's wish)")
    ax.plot(*place, "*", color="#d9541e", ms=16, label="depot")
    ax.set(xlabel="east, km", ylabel="north, km", title="Green: where every customer can go", aspect="equal")
    ax.legend(fontsize=8, loc="upper left")
    figure.tight_layout()
    for kind in ("png", "svg"):
        figure.savefig(folder / f"depots.{kind}", dpi=150)
    plt.close(figure)
    print(f"map in {folder / 'depots.png'}")
