"""How well scores fit labels. Importing this imports numba."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fism_client.compute.local_pass import LocalPass

if TYPE_CHECKING:
    from fism_client.data.shard import Shard
    from fism_common.problem.losses import Loss
    from fism_common.problem.sets import ConstraintSet
    from fism_common.vectors import Vector


def mean_loss(shard: Shard, loss: Loss, x: Vector, constraint: ConstraintSet) -> float:
    """Return the mean of the losses at ``x``, a point of the set."""
    return LocalPass(shard, loss, constraint, "the data").inner(x) / shard.count


def of_classes(scores: Vector, labels: Vector) -> dict[str, float]:
    """Return the share of rows on the right side, and the area under the ROC curve where both classes are there."""
    found = {"accuracy": float(np.mean((scores > 0) == (labels > 0)))}
    ones = labels > 0
    if ones.any() and not ones.all():
        found["auc"] = auc(scores, ones)
    return found


def auc(scores: Vector, ones: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> float:
    """Return how often a row of class 1 has the higher score than one of the other class; half for equal scores."""
    from scipy.stats import rankdata  # slow to load

    ranks = rankdata(scores)
    count = int(ones.sum())
    return float((ranks[ones].sum() - count * (count + 1) / 2) / (count * (ones.size - count)))


def error_measures(scores: Vector, labels: Vector) -> dict[str, float]:
    """Return the mean absolute and the root mean squared error, and the share of labels that are not above."""
    errors = labels - scores
    return {
        "mean_absolute_error": float(np.mean(np.abs(errors))),
        "root_mean_squared_error": float(np.sqrt(np.mean(errors**2))),
        "not_above": float(np.mean(errors <= 0)),
    }
