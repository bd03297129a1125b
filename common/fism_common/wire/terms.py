"""The public problem on the wire: the loss by name, the set with its vectors in slices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fism_common.data.moments import SCALING
from fism_common.errors import ContractError
from fism_common.problem.sets import Ball, Box, ConstraintSet, L1Ball, Simplex
from fism_common.wire.codec import SLICE, pack, slices
from fism_common.wire.pb import federation_pb2 as pb

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fism_common.data.moments import Scaling
    from fism_common.vectors import Vector


@dataclass(frozen=True)
class NamedLoss:
    """A loss as it is told: by its name and parameters. A name with a colon is a client's own module and object."""

    name: str
    parameters: Mapping[str, float]


def loss_message(loss: NamedLoss) -> pb.Loss:
    """Return the loss as a message."""
    return pb.Loss(name=loss.name, parameters=dict(loss.parameters))


def read_loss(message: pb.Loss) -> NamedLoss:
    """Return the loss in a message."""
    return NamedLoss(message.name, dict(message.parameters))


def set_message(constraint: ConstraintSet) -> pb.Set:
    """Return the set as a message, without its vectors."""
    match constraint:
        case Box():
            lo, hi = (None if isinstance(bound, np.ndarray) else bound for bound in (constraint.lo, constraint.hi))
            return pb.Set(box=pb.Box(lo=lo, hi=hi))
        case Ball():
            return pb.Set(ball=pb.Ball(radius=constraint.radius, has_center=constraint.center is not None))
        case Simplex():
            return pb.Set(simplex=pb.Simplex(total=constraint.total))
        case L1Ball():
            return pb.Set(l1_ball=pb.L1Ball(radius=constraint.radius))
    raise TypeError(f"{type(constraint).__name__} has no message")


def setup_messages(constraint: ConstraintSet, scaling: Scaling | None = None) -> list[bytes]:
    """Return the vectors of the set and of the scaling as messages, serialised once; none if there are none."""
    named = {
        name: vector
        for given, names in ((constraint, ("lo", "hi", "center")), (scaling, SCALING))
        for name in names
        if isinstance(vector := getattr(given, name, None), np.ndarray)
    }
    n = max((vector.size for vector in named.values()), default=0)
    return [
        pb.ServerMessage(
            setup=pb.Setup(offset=part.start, **{name: pack(vector[part]) for name, vector in named.items()})
        ).SerializeToString()
        for part in slices(n, SLICE // 2)  # up to five vectors
    ]


def vectors_to_come(message: pb.Set) -> tuple[str, ...]:
    """Return the names of the vectors that Setup will bring."""
    if message.HasField("box"):
        return tuple(name for name in ("lo", "hi") if not message.box.HasField(name))
    return ("center",) if message.HasField("ball") and message.ball.has_center else ()


def read_set(message: pb.Set, vectors: Mapping[str, Vector]) -> ConstraintSet:
    """Return the set in a message, with the ``vectors`` that came with Setup."""
    match message.WhichOneof("kind"):
        case "box":
            return Box(vectors.get("lo", message.box.lo), vectors.get("hi", message.box.hi))
        case "ball":
            return Ball(message.ball.radius, vectors.get("center"))
        case "simplex":
            return Simplex(message.simplex.total)
        case "l1_ball":
            return L1Ball(message.l1_ball.radius)
    raise ContractError("the server names a set that this client does not know; install the server's version")
