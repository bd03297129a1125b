"""The public problem on the wire."""

from __future__ import annotations

import numpy as np
import pytest

import fism
from fism_common.errors import ContractError
from fism_common.problem.sets import ConstraintSet
from fism_common.wire.codec import SLICE, Assembly
from fism_common.wire.pb import federation_pb2 as pb
from fism_common.wire.terms import (
    NamedLoss,
    loss_message,
    read_loss,
    read_set,
    set_message,
    setup_messages,
    vectors_to_come,
)

LONG = SLICE + 5
SETS: dict[str, ConstraintSet] = {
    "box": fism.Box(-1.5, 0.0),
    "box with one vector": fism.Box(-1.0, np.linspace(0, 1, LONG)),
    "box of vectors": fism.Box(np.linspace(-1, 0, LONG), np.linspace(0, 1, LONG)),
    "ball": fism.Ball(2.5),
    "ball with center": fism.Ball(2.5, np.linspace(0, 1, LONG)),
    "simplex": fism.Simplex(3.0),
    "1-norm ball": fism.L1Ball(4.0),
}


@pytest.mark.parametrize("name", SETS)
def test_set_arrives_as_it_was(name: str) -> None:
    """Numbers in the message, vectors in slices."""
    constraint = SETS[name]
    message = pb.Set.FromString(set_message(constraint).SerializeToString())
    coming = vectors_to_come(message)
    assembly = Assembly(LONG, len(coming))
    for raw in setup_messages(constraint):
        part = pb.ServerMessage.FromString(raw).setup
        assembly.add(part.offset, *(getattr(part, vector) for vector in coming))
    arrived = read_set(message, dict(zip(coming, assembly.vectors, strict=True)))
    assert type(arrived) is type(constraint)
    for key, value in vars(constraint).items():
        np.testing.assert_array_equal(getattr(arrived, key), value)
    assert bool(coming) == ("vector" in name or "center" in name)


def test_loss_arrives_as_it_was() -> None:
    """Name and parameters."""
    loss = NamedLoss("huber", {"delta": 0.5})
    assert read_loss(pb.Loss.FromString(loss_message(loss).SerializeToString())) == loss


def test_unknown_set_is_refused() -> None:
    """As a newer server might send it."""
    with pytest.raises(ContractError, match="install the server's version"):
        read_set(pb.Set(), {})
