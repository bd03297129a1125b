"""Section IV.A: zeros and ones of MNIST. Time against m, and accuracy and loss by round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fism.paper.contest import CONTESTANTS, Contestant, in_workers, usual_runs
from fism.paper.digits import read_digits
from fism.plotting import legend, new_folder, plot, write_table
from fism.problem import Problem
from fism.solving import solve
from fism_common.problem.sets import Box
from fism_server.algorithm.step_rules import PowerSteps
from fism_server.problem.outer import ElasticNet

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from matplotlib.axes import Axes

    from fism_common.vectors import Vector

BOUND = 100.0
ROUNDS, FIRST = 200, 50
STEPS = PowerSteps(gamma=10.0, a=0.8, lam=1.0, b=0.1)
SIZES = (1000, 3000, 5000, 7000, 9000, 11000)
PROBLEM = Problem("logistic", Box(-BOUND, BOUND), ElasticNet(l1=1.0, l2=1.0))


@dataclass(frozen=True, eq=False)
class Course:
    """One method on one sample: its values before each round and at the end."""

    m: int
    run: int
    method: str
    loss: Vector
    accuracy: Vector
    seconds: Vector
    """Since the start, in one process; ``critical`` is the same on the critical path."""
    critical: Vector


@dataclass(frozen=True)
class Time:
    """A method's time for 200 rounds on m images: means over the runs."""

    m: int
    method: str
    one_process: float
    critical_path: float


@dataclass(frozen=True)
class Point:
    """A method after some rounds: mean, minimum and maximum over the runs."""

    method: str
    rounds: int
    critical_path: float
    one_process: float
    loss: float
    loss_least: float
    loss_most: float
    accuracy: float
    accuracy_least: float
    accuracy_most: float


@dataclass(frozen=True)
class Final:
    """A method after the last round: means over the runs."""

    method: str
    accuracy: float
    lowest_accuracy: float
    loss: float
    one_process: float
    critical_path: float


@dataclass(frozen=True)
class Lead:
    """How often the faster method has the lower loss, at the times when the slower one's first 50 rounds end."""

    faster: str
    slower: str
    moments: int
    ahead: int


def mnist(
    folder: Path,
    data: Path,
    *,
    quick: bool = False,
    runs: int | None = None,
    tick: Callable[[str, int, int], None] = lambda *_: None,
) -> list[Final]:
    """Run all methods for 200 rounds on samples of all sizes; write tables and plots to ``folder``."""
    new_folder(folder)
    read_digits(data)  # reports bad data here rather than in a worker
    sizes = (1000, 3000) if quick else SIZES
    runs = runs or usual_runs(quick=quick)
    tasks = [(data, m, run) for run in range(runs) for m in reversed(sizes)]
    courses: list[Course] = []
    for found in in_workers(follow, tasks):
        courses += found
        tick("200 rounds", len(courses) // len(CONTESTANTS), len(tasks))
    courses.sort(key=lambda one: (one.m, one.run))
    times = [_time(m, one.name, courses) for m in sizes for one in CONTESTANTS]
    largest = {one.name: [c for c in courses if (c.m, c.method) == (sizes[-1], one.name)] for one in CONTESTANTS}
    points = [_point(name, k, its) for name, its in largest.items() for k in range(ROUNDS + 1)]
    finals = [_final(name, its) for name, its in largest.items()]
    write_table(folder, "mnist-time", times)
    write_table(folder, "mnist-rounds", points)
    write_table(folder, "mnist-lead", leads(points))
    write_table(folder, "mnist", finals)
    draw_time(folder, times)
    draw_course(folder, points)
    return finals


def follow(data: Path, m: int, run: int) -> list[Course]:
    """Run every method on one sample from the same random start; return their courses."""
    train, test = read_digits(data)
    rng = np.random.default_rng([m, run])
    sample, start = train.sample(m, rng), rng.uniform(-BOUND, BOUND, train.rows.shape[1])
    pixels = test.rows / 255.0
    courses = []
    for one in CONTESTANTS:
        accuracy: list[float] = []

        def look(_: int, x: Vector, seen: list[float] = accuracy) -> None:
            seen.append(float(np.mean(test.labels * (pixels @ x) > 0)))

        result = solve(
            PROBLEM, one.share(sample), steps=STEPS, rounds=ROUNDS, start=start, method=one.method, callback=look
        )
        loss = np.append(result.history["inner"], result.inner) / m
        since = [np.concatenate([[0.0], np.cumsum(result.history[name])]) for name in ("seconds", "critical")]
        courses.append(Course(m, run, one.name, loss, np.array(accuracy), *since))
    return courses


def leads(points: Sequence[Point]) -> list[Lead]:
    """Return how often S = 4 and 8 lead the others in training loss, by critical path, over the first 50 rounds."""
    found = []
    for faster in ("S = 4", "S = 8"):
        its = [point for point in points if point.method == faster]
        for slower in ("IR-IG", "S = 1", "S = 2"):
            others = [point for point in points if point.method == slower][1 : FIRST + 1]
            moments = [point.critical_path for point in others]
            loss = np.interp(moments, [point.critical_path for point in its], [point.loss for point in its])
            found.append(Lead(faster, slower, len(others), int(np.sum(loss < [point.loss for point in others]))))
    return found


def _time(m: int, method: str, courses: Sequence[Course]) -> Time:
    its = [one for one in courses if (one.m, one.method) == (m, method)]
    return Time(
        m, method, *(float(np.mean([getattr(one, name)[-1] for one in its])) for name in ("seconds", "critical"))
    )


def _point(method: str, k: int, its: Sequence[Course]) -> Point:
    loss, accuracy = (np.array([getattr(one, name)[k] for one in its]) for name in ("loss", "accuracy"))
    return Point(
        method,
        k,
        critical_path=float(np.mean([one.critical[k] for one in its])),
        one_process=float(np.mean([one.seconds[k] for one in its])),
        loss=float(loss.mean()),
        loss_least=float(loss.min()),
        loss_most=float(loss.max()),
        accuracy=float(accuracy.mean()),
        accuracy_least=float(accuracy.min()),
        accuracy_most=float(accuracy.max()),
    )


def _final(method: str, its: Sequence[Course]) -> Final:
    accuracy = [float(one.accuracy[-1]) for one in its]
    ends = {name: float(np.mean([getattr(one, name)[-1] for one in its])) for name in ("loss", "seconds", "critical")}
    return Final(method, float(np.mean(accuracy)), min(accuracy), ends["loss"], ends["seconds"], ends["critical"])


def draw_time(folder: Path, times: Sequence[Time]) -> None:
    """Plot seconds for 200 rounds against m: in one process, and on the critical path."""
    with plot(folder, "mnist-time", 2) as axes:
        for ax, name in zip(axes, ("one_process", "critical_path"), strict=True):
            for one in CONTESTANTS:
                its = [time for time in times if time.method == one.name]
                ax.plot(
                    [time.m for time in its], [getattr(time, name) for time in its], label=one.name, ms=4, **one.style
                )
            ax.set(title=name.replace("_", " "), xlabel="images m", ylabel=f"seconds for {ROUNDS} rounds")
            ax.set_ylim(bottom=0)
        legend(axes)


def draw_course(folder: Path, points: Sequence[Point]) -> None:
    """Plot accuracy and loss against seconds on the critical path, and against rounds; the bands cover all runs."""
    for what, label in (("accuracy", "test accuracy"), ("loss", "train loss, mean over rows")):
        with plot(folder, f"mnist-{what}", 2) as axes:
            for ax, over in zip(axes, ("critical_path", "rounds"), strict=True):
                for one in CONTESTANTS:
                    # Starts at the first round: a log axis cannot show round 0.
                    _draw_line(ax, one, [point for point in points if point.method == one.name][1:], over, what)
                ax.set(xlabel="seconds, critical path" if over == "critical_path" else "rounds", ylabel=label)
                ax.set_xscale("log")
                if what == "loss":
                    ax.set_yscale("log")
                else:
                    ax.set_ylim(0.99, 1.0005)
            legend(axes)


def _draw_line(ax: Axes, one: Contestant, its: Sequence[Point], over: str, what: str) -> None:
    x = [getattr(point, over) for point in its]
    mean, least, most = ([getattr(point, name) for point in its] for name in (what, f"{what}_least", f"{what}_most"))
    ax.plot(x, mean, label=one.name, **{**one.style, "marker": None})
    ax.fill_between(x, least, most, color=one.style["color"], alpha=0.12, lw=0)
