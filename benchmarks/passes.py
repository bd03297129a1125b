"""The compiled pass against the literal one, and against itself with other storage."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numba import njit
from scipy.sparse import csr_array

import fism
from fism.paper import literal
from fism_client.compute.local_pass import LocalPass
from fism_client.kernels.options import COMPILED
from fism_common.exchange import Pass
from timing import Ratio, best_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fism_common.problem.losses import Loss
    from fism_common.problem.sets import ConstraintSet

GAMMA, WEIGHT = 0.01, 1e-4


@njit(**COMPILED)
def pass_without_f(
    rows: np.ndarray, scale: float, labels: np.ndarray, drift: np.ndarray, gamma: float, bound: float, x: np.ndarray
) -> None:
    """Run only the logistic pass over a box: the baseline for the pass that also computes F."""
    for j in range(labels.size):
        row, z = rows[j], 0.0
        for t in range(x.size):
            z += row[t] * x[t]
        push = -gamma * scale * labels[j] / (1.0 + math.exp(labels[j] * scale * z))
        for t in range(x.size):
            y = x[t] - push * row[t] - drift[t]
            x[t] = -bound if y < -bound else (min(y, bound))


def random_question(n: int, seed: int) -> Pass:
    """Return a question at a random point."""
    x, h = np.random.default_rng(seed).normal(size=(2, n))
    return Pass(x, h, GAMMA, WEIGHT)


def site(rows: object, labels: object, loss: Loss, constraint: ConstraintSet, scale: float = 1.0) -> LocalPass:
    """Return a client, ready to answer."""
    return LocalPass(fism.Shard.of(rows, labels, scale=scale), loss, constraint)  # type: ignore[arg-type]


def dense_logistic() -> Iterator[Ratio]:
    """Yield the ratios on 11000 x 784, the size of the paper's digits."""
    m, n, bound = 11000, 784, 100.0
    rng = np.random.default_rng(0)
    labels = np.where(rng.random(m) < 0.5, -1.0, 1.0)
    pixels = (rng.integers(1, 256, (m, n)) * (rng.random((m, n)) < 0.2)).astype(np.uint8)
    floats = rng.normal(size=(m, n))
    asked, box = random_question(n, 1), fism.Box(-bound, bound)
    sites = {
        "uint8": site(pixels, labels, fism.Logistic(), box, 1 / 255),
        "float32": site(floats.astype(np.float32), labels, fism.Logistic(), box),
        "float64": site(floats, labels, fism.Logistic(), box),
    }
    drift = asked.gamma * asked.weight * asked.h
    times = best_of(
        9,
        literal=lambda: literal.logistic(floats, labels, asked.x, asked.h, GAMMA, WEIGHT, bound),
        alone=lambda: pass_without_f(floats, 1.0, labels, drift, GAMMA, bound, asked.x.copy()),
        alone_uint8=lambda: pass_without_f(pixels, 1 / 255, labels, drift, GAMMA, bound, asked.x.copy()),
        **{name: lambda one=one: one.answer(asked) for name, one in sites.items()},
    )
    size = f"logistic {m} x {n}"
    yield Ratio(f"{size}, uint8 with F: times faster than NumPy", times["literal"] / times["uint8"], 15)
    yield Ratio(f"{size}, float32 with F: times faster than NumPy", times["literal"] / times["float32"], None)
    yield Ratio(f"{size}, float64 with F: times faster than NumPy", times["literal"] / times["float64"], 8)
    yield Ratio(f"{size}, uint8: with F over the pass alone", times["uint8"] / times["alone_uint8"], 1.3, most=True)
    yield Ratio(f"{size}, float64: with F over the pass alone", times["float64"] / times["alone"], None, most=True)
    for name, one in sites.items():
        kept = float(one.shard.rows.dtype.itemsize)  # type: ignore[union-attr]
        yield Ratio(f"bytes kept per entry of {name} rows", kept, float(np.dtype(name).itemsize), most=True)


def ball_distance() -> Iterator[Ratio]:
    """Yield the ratios on the paper's location problem."""
    m, bound = 10000, 10.0
    for n, target in ((10, 100.0), (50, 80.0), (100, 60.0)):
        rng = np.random.default_rng(n)
        centers, radii = rng.uniform(-bound, bound, (m, n)), rng.random(m)
        asked = random_question(n, n)
        one = site(centers, radii, fism.BallDistance(), fism.Box(-bound, bound))
        times = best_of(
            7,
            literal=lambda c=centers, r=radii, o=asked: literal.ball_distance(  # type: ignore[misc]
                c, r, o.x, o.h, GAMMA, WEIGHT, bound
            ),
            ours=lambda one=one, o=asked: one.answer(o),  # type: ignore[misc]
        )
        found = times["literal"] / times["ours"]
        yield Ratio(f"ball-distance, m = {m}, n = {n}, with F: times faster than NumPy", found, target)


def sparse_logistic() -> Iterator[Ratio]:
    """Yield the ratios per row of 50 nonzeros in 100000 columns against dense rows of that width."""
    m, n, nonzeros, dense_m = 20000, 100000, 50, 400
    rng = np.random.default_rng(2)
    columns = np.sort(np.stack([rng.choice(n, nonzeros, replace=False) for _ in range(m)])).ravel()
    rows = csr_array((rng.normal(size=m * nonzeros), columns, np.arange(0, m * nonzeros + 1, nonzeros)), shape=(m, n))
    table = rng.normal(size=(dense_m, n))
    labels = np.where(rng.random(m) < 0.5, -1.0, 1.0)
    asked = random_question(n, 3)
    for name, constraint in (("box", fism.Box(-100, 100)), ("ball", fism.Ball(400.0))):
        lazy = site(rows, labels, fism.Logistic(), constraint)
        dense = site(table, labels[:dense_m], fism.Logistic(), constraint)
        times = best_of(
            5,
            lazy=lambda one=lazy: one.answer(asked),  # type: ignore[misc]
            dense=lambda one=dense: one.answer(asked),  # type: ignore[misc]
        )
        found = (times["dense"] / dense_m) / (times["lazy"] / m)
        yield Ratio(f"CSR {m} x {n}, {nonzeros} per row, {name}: times faster per row than dense", found, 120)
