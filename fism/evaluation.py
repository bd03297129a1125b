"""Measures of how well scores fit labels. Importing this module imports numba."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fism_client.compute.local_pass import total_loss

if TYPE_CHECKING:
    from fism_client.data.shard import Shard
    from fism_common.problem.losses import Loss
    from fism_common.vectors import Vector


def mean_loss(shard: Shard, loss: Loss, x: Vector) -> float:
    """Return the mean loss per row at ``x``."""
    loss.check_labels(shard.labels, "the data")
    return total_loss(shard, loss, x) / shard.count


def of_classes(scores: Vector, labels: Vector) -> dict[str, float]:
    """Return the accuracy, and the area under the ROC curve if both classes are present."""
    found = {"accuracy": float(np.mean((scores > 0) == (labels > 0)))}
    ones = labels > 0
    if ones.any() and not ones.all():
        found["auc"] = auc(scores, ones)
    return found


def auc(scores: Vector, ones: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> float:
    """Return how often a row of class 1 scores higher than one of the other class; ties count one half."""
    from scipy.stats import rankdata  # slow to load

    ranks = rankdata(scores)
    count = int(ones.sum())
    return float((ranks[ones].sum() - count * (count + 1) / 2) / (count * (ones.size - count)))


def error_measures(scores: Vector, labels: Vector) -> dict[str, float]:
    """Return the mean absolute and root mean squared errors, and the share of labels not above their score."""
    errors = labels - scores
    return {
        "mean_absolute_error": float(np.mean(np.abs(errors))),
        "root_mean_squared_error": float(np.sqrt(np.mean(errors**2))),
        "not_above": float(np.mean(errors <= 0)),
    }
