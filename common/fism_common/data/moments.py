"""Means and spreads of columns, of one client and of all: merged without ever squaring a large number."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np

from fism_common.wire.codec import pack, slices
from fism_common.wire.pb import federation_pb2 as pb

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fism_common.vectors import Vector


@dataclass(frozen=True)
class Moments:
    """Of each column: how many values it has, their mean, and the sum of their squared distances to it.

    The mean is ``mean + rest``: one double holds the mean of times since 1970 to no more than 1e-7 seconds.
    """

    count: Vector
    mean: Vector
    rest: Vector
    squares: Vector


@dataclass(frozen=True)
class Scaling:
    """The mean, ``mean + rest``, and the spread of each column over all clients' rows; 0 and 1 where it is kept."""

    mean: Vector
    rest: Vector
    spread: Vector


MOMENTS = tuple(field.name for field in fields(Moments))
SCALING = tuple(field.name for field in fields(Scaling))


def merge(parts: Sequence[Moments]) -> Moments:
    """Return the moments of all clients' rows together, by the formula of Chan, Golub and LeVeque."""
    near = np.zeros_like(parts[0].mean)
    for part in reversed(parts):  # a mean of somebody who has values: differences to it are small
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
    return Moments(count, mean, (near - mean) + shift, squares)


def scaling(moments: Moments) -> Scaling:
    """Return the scaling that the moments of all rows give; a column that is constant, or has no values, is kept."""
    spread = np.sqrt(moments.squares / np.maximum(moments.count, 1.0))
    # Below this a column's differences are rounding alone.
    constant = spread <= np.finfo(np.float64).eps * np.abs(moments.mean)
    return Scaling(moments.mean, moments.rest, np.where(constant, 1.0, spread))


def moments_messages(moments: Moments, attempt: int) -> Iterator[bytes]:
    """Yield the answer to Measure."""
    for part in slices(moments.mean.size):
        named = {name: pack(getattr(moments, name)[part]) for name in MOMENTS}
        message = pb.Moments(attempt=attempt, offset=part.start, **named)
        yield pb.ClientMessage(moments=message).SerializeToString()
