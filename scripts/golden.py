"""Compare small ``fism.solve`` runs with recorded digests, bit for bit; ``--write`` records new ones.

The digests depend on the CPU that the kernels are compiled for. The runs therefore happen in a subprocess that fixes
the CPU target as the container image does.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

import fism

FILE = Path(__file__).parents[1] / "tests/solve/golden.json"
TARGET = {"NUMBA_CPU_NAME": "x86-64-v3", "NUMBA_CPU_FEATURES": ""}
N = 7
HISTORY = ("inner", "outer", "change")


def runs() -> Iterator[tuple[str, fism.Result]]:
    """Yield every recorded run with its name: together they use every loss, set, objective, storage and method."""
    rng = np.random.default_rng(2024)
    lo, hi = -rng.random(N) - 0.1, rng.random(N) + 0.1
    center, anchor = rng.normal(size=(2, N))
    root = rng.normal(size=(N, N))
    losses = [
        fism.Logistic(),
        fism.Hinge(),
        fism.SquaredHinge(),
        fism.Squared(),
        fism.Absolute(),
        fism.Huber(0.7),
        fism.Quantile(0.3),
        fism.BallDistance(),
    ]
    sets = {
        "box": fism.Box(-0.4, 0.5),
        "box-vectors": fism.Box(lo, hi),
        "ball": fism.Ball(0.8),
        "ball-center": fism.Ball(0.9, center),
        "simplex": fism.Simplex(1.5),
        "l1-ball": fism.L1Ball(1.2),
    }
    outers = [
        fism.SquaredNorm(),
        fism.SquaredDistance(anchor),
        fism.ElasticNet(0.5, 2.0),
        fism.ElasticNet(np.abs(center), 1.5),
        fism.GroupLasso([[0, 2], [1, 4, 5]], [0.5, 2.0], 0.6),
        fism.Quadratic(root @ root.T + np.eye(N), anchor),
    ]
    named = list(sets.items())
    for i, loss in enumerate(losses):
        for storage in ("dense", "sparse"):
            name, constraint = named[(i + (storage == "sparse")) % len(sets)]
            problem = fism.Problem(loss, constraint, outers[i % len(outers)])
            yield f"{loss.kind} {name} {storage}", _solve(problem, storage, seed=i)
    for name, constraint in named:
        problem = fism.Problem("logistic", constraint, outers[2])
        yield f"logistic {name} sparse elastic-net", _solve(problem, "sparse", seed=50)
    box, smooth = fism.Problem("logistic", sets["box"], outers[2]), fism.Problem("squared", sets["ball"], outers[1])
    yield "tolerance", _solve(box, "dense", seed=51, tolerance=3e-3, rounds=400)
    yield "first round", _solve(box, "dense", seed=52, first_round=9)
    yield "bytes with a scale", _solve(box, "bytes", seed=53)
    for method in ("ir-ig", "tikhonov", "incremental", "explicit-descent", "r-fedavg"):
        yield method, _solve(smooth, "dense", seed=54, method=method)


def _solve(problem: fism.Problem, storage: str, *, seed: int, **options: Any) -> fism.Result:  # noqa: ANN401  # passed to solve
    """Solve on random shards of unequal sizes, stored as ``storage``, from a random start."""
    rng = np.random.default_rng(seed)
    clients: list[Any] = []
    for count in (3, 11, 1, 20):
        rows = rng.normal(size=(count, N)) * (rng.random((count, N)) < 0.6)
        labels = rng.normal(size=count)
        if problem.loss.kind in {"logistic", "hinge", "squared-hinge"}:
            labels = np.where(labels < 0, -1.0, 1.0)
        elif problem.loss.kind == "ball-distance":
            labels = np.abs(labels)
        if storage == "bytes":
            clients.append(fism.Shard.of(np.abs(50 * rows).astype(np.uint8), labels, scale=1 / 255))
        else:
            clients.append((csr_array(rows) if storage == "sparse" else rows, labels))
    steps = fism.PowerSteps(gamma=0.4, a=0.7, lam=0.8, b=0.2)
    return fism.solve(problem, clients, steps=steps, start=rng.normal(size=N), **({"rounds": 60} | options))


def digests() -> dict[str, dict[str, Any]]:
    """Return per run the SHA-256 of its vectors and of its F/H history, and how it ended."""
    warnings.simplefilter("ignore", fism.StepWarning)
    return {name: _digest(result) for name, result in runs()}


def _digest(result: fism.Result) -> dict[str, Any]:
    vectors = {name: getattr(result, name) for name in ("x", "weighted", "average")}
    vectors |= {name: result.history[name] for name in HISTORY}
    found: dict[str, Any] = {name: sha256(part.astype("<f8").tobytes()).hexdigest() for name, part in vectors.items()}
    return found | {"rounds": result.rounds, "stopped": result.stopped}


def main() -> None:
    """Check or write the recorded digests."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="record the digests of this code")
    write = parser.parse_args().write
    if any(os.environ.get(key) != value for key, value in TARGET.items()):
        sys.exit(subprocess.run([sys.executable, *sys.argv], env=os.environ | TARGET, check=False).returncode)
    found = digests()
    if write:
        FILE.write_text(json.dumps(found, indent=1) + "\n")
        print(f"wrote {len(found)} runs to {FILE.name}")
        return
    recorded = json.loads(FILE.read_text())
    different = [
        f"{name}: {key}"
        for name in dict.fromkeys([*recorded, *found])
        for key in recorded.get(name, {}) | found.get(name, {})
        if recorded.get(name, {}).get(key) != found.get(name, {}).get(key)
    ]
    print(f"{len(found)} runs compared, {len(different)} values differ", *different, sep="\n")
    sys.exit(bool(different))


if __name__ == "__main__":
    main()
