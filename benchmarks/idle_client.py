"""A client of a real federation that sends back the x it is given."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fism_client.data.matrix import Matrix
from fism_client.data.shard import Shard
from fism_client.session.participant import Participant
from fism_client.session.session import Session
from fism_common.exchange import Evaluation, Order, Reply
from fism_common.wire.tls import TlsFiles

if TYPE_CHECKING:
    from fism_common.data.moments import Scaling
    from fism_common.problem.sets import ConstraintSet
    from fism_common.vectors import Vector
    from fism_common.wire.terms import NamedLoss


class Idle:
    """A worker that does no work."""

    def answer(self, order: Order) -> Reply:
        """Return x as it came."""
        return Reply(order.x, 0.0)

    def inner(self, x: Vector) -> float:  # noqa: ARG002
        """Return nothing lost."""
        return 0.0

    def evaluate(self, x: Vector) -> Evaluation | None:  # noqa: ARG002
        """Hold nothing out."""
        return None


class Idler(Participant):
    """A client with a row that it does nothing with."""

    def worker(self, told: NamedLoss, constraint: ConstraintSet, scaling: Scaling | None) -> Idle:  # noqa: ARG002
        """Return who does no work."""
        return Idle()


address, name, columns, *certs = sys.argv[1:]
tls = TlsFiles.of(Path(certs[0]), name) if certs else None
one_row = Matrix("one row", Shard.of(np.zeros((1, int(columns))), [1.0]))
Session(address, Idler(name, one_row), tls=tls).run()
