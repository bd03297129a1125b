"""A client of a real federation that sends every x back unchanged."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fism_client.data.matrix import Matrix
from fism_client.data.shard import Shard
from fism_client.session.participant import Participant
from fism_client.session.session import Session
from fism_common.exchange import Answer, Pass, PassAnswer, Question, SolutionAnswer
from fism_common.sums.grid import grid_of
from fism_common.wire.tls import TlsFiles

if TYPE_CHECKING:
    from fism_common.data.moments import Scaling
    from fism_common.problem.registry import Variant
    from fism_common.problem.sets import ConstraintSet


class Idle:
    """An answerer that does no work."""

    def __init__(self, constraint: ConstraintSet) -> None:
        """Take X."""
        self._constraint = constraint

    def answer(self, question: Question) -> Answer:
        """Return x unchanged."""
        if not isinstance(question, Pass):
            return SolutionAnswer((0.0,))
        return PassAnswer(grid_of(self._constraint, question.x.size, question.summands).words(question.x), (0.0,))


class Idler(Participant):
    """A client with one row that it never uses."""

    def answerer(self, loss: Variant, constraint: ConstraintSet, scaling: Scaling | None) -> Idle:  # noqa: ARG002
        """Return an answerer that does no work."""
        return Idle(constraint)


address, name, columns, *certs = sys.argv[1:]
tls = TlsFiles.of(Path(certs[0]), name) if certs else None
one_row = Matrix("one row", Shard.of(np.zeros((1, int(columns))), [1.0]))
Session(address, Idler(name, one_row), tls=tls).run()
