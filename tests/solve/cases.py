"""Every loss, set and outer objective, once as the product takes it and once as the literal transcription does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

import fism

from ..literal import Map, Vector, project_ball, project_l1_ball, project_simplex

if TYPE_CHECKING:
    from fism_common.problem.losses import Loss
    from fism_common.problem.sets import ConstraintSet

N = 6
_RNG = np.random.default_rng(20)
_LO, _HI = -_RNG.random(N), _RNG.random(N)
_CENTER, _ANCHOR, _WEIGHTS = _RNG.normal(size=(3, N))
_WEIGHTS = np.abs(_WEIGHTS)
_ROOT = _RNG.normal(size=(N, N))
_Q = _ROOT @ _ROOT.T + np.eye(N)
_GROUPS = [[0, 2], [1, 4, 5]]

LOSSES: dict[str, Loss] = {
    "logistic": fism.Logistic(),
    "hinge": fism.Hinge(),
    "squared-hinge": fism.SquaredHinge(),
    "squared": fism.Squared(),
    "absolute": fism.Absolute(),
    "huber": fism.Huber(0.7),
    "quantile": fism.Quantile(0.3),
    "ball-distance": fism.BallDistance(),
}

SETS: dict[str, tuple[ConstraintSet, Map]] = {
    "box": (fism.Box(-0.4, 0.5), lambda x: np.clip(x, -0.4, 0.5)),
    "box of vectors": (fism.Box(_LO, _HI), lambda x: np.clip(x, _LO, _HI)),
    "ball": (fism.Ball(0.8), lambda x: project_ball(x, 0.8)),
    "ball with center": (fism.Ball(0.9, _CENTER), lambda x: project_ball(x, 0.9, _CENTER)),
    "simplex": (fism.Simplex(1.5), lambda x: project_simplex(x, 1.5)),
    "1-norm ball": (fism.L1Ball(1.2), lambda x: project_l1_ball(x, 1.2)),
}


def _group_subgradient(x: Vector) -> Vector:
    result = 0.6 * x
    for weight, group in zip((0.5, 2.0), _GROUPS, strict=True):
        norm = np.linalg.norm(x[group])
        if norm > 0:
            result[group] += weight * x[group] / norm
    return result


OUTERS: dict[str, tuple[fism.OuterObjective, Map]] = {
    "squared norm": (fism.SquaredNorm(), lambda x: x),
    "squared distance": (fism.SquaredDistance(_ANCHOR), lambda x: x - _ANCHOR),
    "elastic net": (fism.ElasticNet(0.5, 2.0), lambda x: 0.5 * np.sign(x) + 2.0 * x),
    "weighted elastic net": (fism.ElasticNet(_WEIGHTS, 1.5), lambda x: _WEIGHTS * np.sign(x) + 1.5 * x),
    "group lasso": (fism.GroupLasso(_GROUPS, [0.5, 2.0], 0.6), _group_subgradient),
    "quadratic": (fism.Quadratic(_Q, _ANCHOR), lambda x: _Q @ x + _ANCHOR),
}


@dataclass(frozen=True)
class Data:
    """Shards of unequal sizes and a start."""

    shards: list[tuple[Vector, Vector]]
    start: Vector


def data(seed: int, loss: str, clients: int, *, n: int = N, largest: int = 12, spread: float = 1.0) -> Data:
    """Return random sparse rows for ``clients`` clients with labels that fit the loss; a start in or out of X."""
    rng = np.random.default_rng(seed)
    shards = []
    for count in rng.integers(1, largest, clients):
        rows = rng.normal(size=(count, n)) * (rng.random((count, n)) < 0.5)
        labels = rng.normal(size=count)
        if loss in {"logistic", "hinge", "squared-hinge"}:
            labels = np.where(labels < 0, -1.0, 1.0)
        elif loss == "ball-distance":
            labels = np.abs(labels)
        shards.append((rows, labels))
    return Data(shards, spread * rng.normal(size=n))
