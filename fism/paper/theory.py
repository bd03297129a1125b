"""Check the paper's claims, on problems with a known solution and by counting and timing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from fism.methods import Client, Method
from fism.paper.federation import over_grpc
from fism.paper.known import Known, absolute_deviations, dealt, least_squares, two_balls
from fism.plotting import legend, new_folder, plot, write_table
from fism.problem import Problem
from fism.solving import solve
from fism_client.compute.local_pass import LocalPass
from fism_client.data.shard import Shard
from fism_common.problem.sets import Box
from fism_common.sums.grid import grid_of
from fism_server.algorithm.methods.fism import Fism
from fism_server.algorithm.methods.fism import start as begin
from fism_server.algorithm.step_rules import ConstantWeight, PowerSteps
from fism_server.federation.aggregation import OpenAggregation
from fism_server.problem.outer import SquaredDistance, SquaredNorm

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from fism_common.vectors import Vector
    from fism_server.algorithm.step_rules import StepRule

BLUE, ORANGE, INK, GREY = "#1f6fb4", "#d9541e", "#222222", "#8a8a8a"


@dataclass(frozen=True)
class Distance:
    """The distance of a run to x*_H after some rounds."""

    problem: str
    rounds: int
    last: float
    weighted: float
    ergodic: float
    clients: float
    """The farthest of the clients' local points."""
    without: float
    """The last point of a run without H (lambda = 0)."""


@dataclass(frozen=True)
class Bound:
    """The F gap after some rounds, and its bounds by the rate theorem."""

    rounds: int
    F_gap_ergodic: float
    F_gap_last: float
    sharp_bound: float
    paper_bound: float


@dataclass(frozen=True)
class Count:
    """Subgradients computed in a round: one of f per row, and those of H as counted."""

    method: str
    rows: int
    of_inner: int
    of_outer: float
    by_the_paper: int


@dataclass(frozen=True)
class Round:
    """Median times of a round over gRPC, in milliseconds, and of the two terms of the paper's bound."""

    clients: int
    T_FISM: float
    compute: float
    """Of the slowest client."""
    communication: float
    """The most of any client: the time that the server waits for it while it does not compute."""
    server: float
    """The server's own time, which the paper does not count."""
    T_IRIG: float
    share: float
    """T_FISM divided by its bound, T_IRIG + communication."""


@dataclass(frozen=True)
class ClientTime:
    """Median times of one client in a round, in milliseconds."""

    clients: int
    client: str
    rows: int
    compute: float
    communication: float


def theory(
    folder: Path, *, quick: bool = False, tick: Callable[[str, int, int], None] = lambda *_: None
) -> tuple[list[Distance], list[Bound], list[Count], list[Round]]:
    """Check convergence, the rate, and a round's subgradients and time; write tables and plots to ``folder``."""
    new_folder(folder)
    longest = 3 if quick else 5
    problems = [absolute_deviations(), two_balls(), least_squares()]
    distances = []
    for i, known in enumerate(problems, 1):
        distances += converge(known, longest)
        tick("convergence", i, len(problems))
    bounds = rate(longest)
    tick("rate", 1, 1)
    counts = count()
    rounds: list[Round] = []
    each: list[ClientTime] = []
    clients = (1, 2) if quick else (1, 2, 4, 8)
    for found, its in times_of_a_round(clients, 100 if quick else 1000):
        rounds.append(found)
        each += its
        tick("time of a round", len(rounds), len(clients))
    write_table(folder, "convergence", distances)
    write_table(folder, "rate", bounds)
    write_table(folder, "subgradients", counts)
    write_table(folder, "round", rounds)
    write_table(folder, "round-clients", each)
    draw_convergence(folder, distances)
    draw_rate(folder, bounds)
    return distances, bounds, counts, rounds


def converge(known: Known, longest: int) -> list[Distance]:
    """Return the distances to x*_H over up to 10 ** ``longest`` rounds: with H, of the clients, and without H."""
    at = _at(longest)
    answers = follow(known, known.steps, at)
    control = follow(known, ConstantWeight(known.steps, 0.0), at)
    return [Distance(known.name, k, *answers[k], control[k][0]) for k in at]


def follow(known: Known, steps: StepRule, at: Sequence[int]) -> dict[int, tuple[float, float, float, float]]:
    """Return the distances to x*_H of the last point, both means and the farthest client, after the rounds ``at``."""
    sites = [LocalPass(shard, known.problem.loss, known.problem.constraint) for shard in known.shards]
    start = known.problem.constraint.project(known.start)
    loop = Fism(known.problem.outer, steps, m=known.m, state=begin(start), last_round=at[-1])
    clients = [Client(site) for site in sites]
    aggregation = OpenAggregation(known.problem.constraint, start.size)
    grid = grid_of(known.problem.constraint, start.size, len(sites))

    def away(x: Vector) -> float:
        return float(np.linalg.norm(x - known.solution))

    found, wanted = {}, set(at)
    while (question := loop.ask()) is not None:
        k, sums = loop.round, aggregation.begin(clients)
        asked = replace(question, summands=sums.summands)
        answers = [site.answer(asked) for site in sites]
        for client, answer in zip(clients, answers, strict=True):
            sums.add(answer, client)
        loop.tell(sums.total())
        if k in wanted:
            means, farthest = loop.means(), max(away(grid.values(answer.points)) for answer in answers)
            found[k] = (away(loop.x), away(means["weighted"]), away(means["average"]), farthest)
    return found


def rate(longest: int) -> list[Bound]:
    """Return the F gap, and the bound of Theorem 2 with the paper's constant and with the sharp one."""
    rng = np.random.default_rng(1)
    n, sizes, bound, epsilon = 6, (2, 6, 16), 2.0, 0.1
    m, S = sum(sizes), len(sizes)
    A = rng.normal(size=(m, 3)) @ rng.normal(size=(3, n))
    A /= np.linalg.norm(A, axis=1, keepdims=True)
    b = A @ rng.uniform(-1, 1, n)
    anchor, start = rng.uniform(-bound, bound, (2, n))
    problem = Problem("absolute", Box(-bound, bound), SquaredDistance(anchor))
    steps = PowerSteps.for_rate(epsilon, gamma=0.3, lam=1.0)
    solution = anchor + np.linalg.pinv(A) @ (b - A @ anchor)  # A x = b is consistent, so F* = 0

    at = _at(longest)
    k = np.arange(1, at[-1] + 1)
    gamma, lam = (np.array([f(int(j)) for j in k]) for f in (steps.gamma, steps.lam))
    C_f, C_H = 1.0, float(np.linalg.norm(np.abs(anchor) + bound))
    gap_H = problem.outer.value(solution)  # H is 0 at its own minimum
    apart = float(np.sum((problem.constraint.project(start) - solution) ** 2))
    sharp_noise = gamma**2 * np.mean(np.square(sizes)) * (C_f + lam * C_H / m) ** 2
    M_H = max(C_H, C_H**2 / 2)  # the paper's C_H, which also bounds H itself
    C = 4 * m**3 * (C_f**2 + 2 * M_H**2 / m**2) + 2 * C_f * m**2 * (C_f + M_H / m)
    sums = np.cumsum(gamma)
    sharp = (S * (apart + np.cumsum(sharp_noise)) + 2 * gap_H * np.cumsum(gamma * lam)) / (2 * sums)
    paper = (S * (apart + C * np.cumsum(gamma**2)) + 4 * M_H * np.cumsum(gamma * lam)) / (2 * sums)
    found = []
    for K in at:
        result = solve(problem, dealt(A, b, sizes), steps=steps, rounds=K, start=start)
        ergodic, last = (float(np.sum(np.abs(A @ x - b))) for x in (result.average, result.x))
        found.append(Bound(K, ergodic, last, float(sharp[K - 1]), float(paper[K - 1])))
    return found


class Asked(SquaredNorm):
    """H = |x|^2 / 2 that counts the calls of ``subgradient``."""

    times = 0

    def subgradient(self, x: Vector) -> Vector:
        self.times += 1
        return super().subgradient(x)


def count() -> list[Count]:
    """Return how many subgradients one round of IR-IG and of FISM computes."""
    known, rounds = least_squares(), 7
    found = []
    for method, formula in ((Method.IR_IG, 2 * known.m), (Method.FISM, known.m + 1)):
        outer = Asked()
        problem = Problem(known.problem.loss, known.problem.constraint, outer)
        solve(problem, known.shards, steps=known.steps, rounds=rounds, start=known.start, method=method)
        found.append(Count(method.value, known.m, known.m, outer.times / rounds, formula))
    return found


def times_of_a_round(clients: Sequence[int], rounds: int) -> Iterator[tuple[Round, list[ClientTime]]]:
    """Yield the times of a round over gRPC, in total and per client, with IR-IG's time in one process."""
    rng = np.random.default_rng(0)
    m, n, bound = 10_000, 100, 10.0
    rows, radii, anchor = rng.uniform(-bound, bound, (m, n)), rng.uniform(0, 1, m), rng.uniform(-bound, bound, n)
    whole = Shard.of(rows, radii)
    steps = PowerSteps(gamma=1.0, a=0.8, lam=1.0, b=0.1)
    table = {
        "inner": {"loss": "ball-distance", "constraint": {"kind": "box", "lo": -bound, "hi": bound}},
        "outer": {"kind": "squared-distance", "anchor": "anchor.npy"},
        "steps": {"gamma": steps.gamma_1, "a": steps.a, "lambda": steps.lam_1, "b": steps.b},
        "stop": {"rounds": rounds},
    }
    problem = Problem("ball-distance", Box(-bound, bound), SquaredDistance(anchor))
    irig = solve(problem, [whole], steps=steps, rounds=rounds, method=Method.IR_IG).history["seconds"]
    T_IRIG = 1e3 * float(np.median(irig))
    for S in clients:
        summary, times = over_grpc(table, whole.split(S), anchor=anchor)
        computed, waited = np.moveaxis(times.answers, 2, 0)
        spent = [computed.max(axis=1), (waited - computed).max(axis=1), times.seconds - waited.max(axis=1)]
        compute, eps, server = (1e3 * float(np.median(each)) for each in spent)
        T_FISM = summary["round_ms"]
        yield (
            Round(S, T_FISM, compute, eps, server, T_IRIG, T_FISM / (T_IRIG + eps)),
            [
                ClientTime(S, one["name"], one["rows"], one["compute_ms"], one["network_ms"])
                for one in summary["clients"]
            ],
        )


def _at(longest: int) -> list[int]:
    return [int(k) for k in np.unique(np.logspace(0, longest, 4 * longest + 1).astype(int))]


def draw_convergence(folder: Path, distances: Sequence[Distance]) -> None:
    """Plot the distances to x*_H against rounds."""
    names = list(dict.fromkeys(one.problem for one in distances))
    lines = (
        ("last", "the last point", ORANGE, "-"),
        ("weighted", "the k-weighted mean", BLUE, "-"),
        ("ergodic", "the ergodic mean", GREY, "-"),
        ("clients", "the farthest client's own", INK, ":"),
        ("without", "without H (lambda = 0)", GREY, "--"),
    )
    with plot(folder, "convergence", len(names)) as axes:
        for ax, name in zip(axes, names, strict=True):
            its = [one for one in distances if one.problem == name]
            for field, label, color, style in lines:
                ax.loglog(
                    [one.rounds for one in its],
                    [getattr(one, field) for one in its],
                    label=label,
                    color=color,
                    ls=style,
                )
            ax.set(title=name, xlabel="rounds", ylabel="distance to the preferred minimiser")
        legend(axes)


def draw_rate(folder: Path, bounds: Sequence[Bound]) -> None:
    """Plot the F gap and the bounds of the rate theorem."""
    K = [one.rounds for one in bounds]
    with plot(folder, "rate", size=(6.0, 4.2)) as (ax,):
        for field, label, color, style in (
            ("paper_bound", "bound with the paper's constant", GREY, "--"),
            ("sharp_bound", "bound with the sharp constant", INK, "-"),
            ("F_gap_ergodic", "measured at the ergodic mean", BLUE, "-"),
            ("F_gap_last", "measured at the last point", ORANGE, "-"),
        ):
            marker = "o" if field.startswith("F") else None
            ax.loglog(
                K, [getattr(one, field) for one in bounds], label=label, color=color, ls=style, marker=marker, ms=3
            )
        slope = bounds[-1].F_gap_ergodic * (np.array(K) / K[-1]) ** -0.4
        ax.loglog(K, slope, color=BLUE, ls=":", lw=1, label="slope of the theorem, -0.4")
        ax.set(xlabel="rounds", ylabel="F gap to the optimum")
        ax.legend(fontsize=8)
