"""The compiled pass of IR-IG: a new subgradient of H at every row. Not in the client, because it knows H."""

import numpy as np
from numba import njit

from fism_client.compute.kernel_cache import at_home
from fism_client.data.shard import Entries
from fism_client.kernels import Formula, Region, measure_two, project, step, value
from fism_client.kernels.options import COMPILED
from fism_common.vectors import Vector

with at_home():

    @njit(**COMPILED)
    def irig_pass(
        rows: Entries,
        scale: float,
        labels: Vector,
        loss: Formula,
        region: Region,
        x_k: Vector,
        l1: Vector,
        l2: float,
        anchor: Vector,
        weight: float,
        gamma: float,
        x: Vector,
    ) -> float:
        """Run x <- P_X[x - gamma g_j(x) - weight dH(x)] over all rows, in place; return the sum of f_j at ``x_k``.

        dH(x) = l1 sign(x) + l2 (x - anchor).
        """
        total = 0.0
        for j in range(labels.size):
            row = rows[j]
            z, z_k = measure_two(row, scale, loss, x, x_k)
            total += value(loss, z_k, labels[j])
            shrink, push = step(scale, z, labels[j], loss, gamma)
            for t in range(x.size):
                h = l1[t] * np.sign(x[t]) + l2 * (x[t] - anchor[t])
                x[t] = x[t] - shrink * (x[t] - scale * row[t]) - push * row[t] - weight * h
            project(region, x)
        return total
