"""Means and spreads of columns, of one client and of all clients: merged without squaring large numbers."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fism_common.vectors import Vector


@dataclass(frozen=True)
class ColumnMoments:
    """For each column: the number of its values, their mean, and the sum of their squared distances to the mean.

    The mean is ``mean + rest``: one double holds the mean of times since 1970 only to 1e-7 seconds.
    """

    count: Vector
    mean: Vector
    rest: Vector
    squares: Vector


@dataclass(frozen=True)
class Scaling:
    """The mean, ``mean + rest``, and the spread of each column over all clients; 0 and 1 if it is not standardised."""

    mean: Vector
    rest: Vector
    spread: Vector


MOMENTS = tuple(field.name for field in fields(ColumnMoments))
SCALING = tuple(field.name for field in fields(Scaling))


def merge(parts: Sequence[ColumnMoments]) -> ColumnMoments:
    """Return the moments of all clients' rows together, by the formula of Chan, Golub and LeVeque."""
    near = np.zeros_like(parts[0].mean)
    for part in reversed(parts):  # the mean of a client that has values: differences from it are small
        np.copyto(near, part.mean, where=part.count > 0)
    count, shift = np.zeros_like(near), np.zeros_like(near)
    for part in parts:
        count += part.count
        shift += part.count * ((part.mean - near) + part.rest)
    shift /= np.maximum(count, 1.0)
    squares = np.zeros_like(near)
    for part in parts:
        squares += part.squares + part.count * (((part.mean - near) + part.rest) - shift) ** 2
    mean = near + shift
    return ColumnMoments(count, mean, (near - mean) + shift, squares)


def scaling(moments: ColumnMoments) -> Scaling:
    """Return the scaling for the moments of all rows; a column that is constant, or has no values, is not scaled."""
    spread = np.sqrt(moments.squares / np.maximum(moments.count, 1.0))
    # Below this, a column's differences are only rounding errors.
    constant = spread <= np.finfo(np.float64).eps * np.abs(moments.mean)
    return Scaling(moments.mean, moments.rest, np.where(constant, 1.0, spread))
