"""The chain of answerers that turns a question into an answer. ``Compute`` is its first link."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Protocol

import numpy as np

from fism_client.compute.local_pass import LocalPass
from fism_common.errors import ContractError
from fism_common.exchange import (
    Evaluation,
    Moments,
    MomentsAnswer,
    Pass,
    PassAnswer,
    Probe,
    ProbeAnswer,
    Solution,
    SolutionAnswer,
)
from fism_common.sums.doubles import parts_of

if TYPE_CHECKING:
    from fism_client.data.preparation import Rows
    from fism_common.exchange import Answer, Question
    from fism_common.problem.losses import Loss
    from fism_common.problem.sets import ConstraintSet
    from fism_common.vectors import Vector


class Answerer(Protocol):
    """Answers questions. A link that adds something, such as noise or masks, wraps the next link."""

    def answer(self, question: Question) -> Answer:
        """Return the answer; the same question gets the same answer."""


class Unscaled:
    """Answers what can be answered before the problem is complete: the moments of the columns."""

    def __init__(self, rows: Rows) -> None:
        """Take rows that are not standardised yet."""
        self._rows = rows

    def answer(self, question: Question) -> Answer:
        """Return the moments; raise ContractError for any other question."""
        if not isinstance(question, Moments):
            raise ContractError(f"the server asked for a {type(question).__name__} before it sent the whole problem")
        return MomentsAnswer(self._rows.moments())


class Compute:
    """Answers from the rows alone: one shard, or several virtual clients on threads, each with a part of it."""

    def __init__(self, rows: Rows, loss: Loss, constraint: ConstraintSet, virtual_clients: int = 1) -> None:
        """Split the rows, in order, into one part per virtual client; compile or load the kernels."""
        self._parts = [LocalPass(part, loss, constraint) for part in rows.train.split(virtual_clients)]
        self._held_out = None if rows.held_out is None else LocalPass(rows.held_out, loss, constraint)
        for part in (*self._parts, *([self._held_out] if self._held_out else [])):
            part.warm_points()
        self._classifies = loss.classifies
        self._pool = ThreadPoolExecutor(virtual_clients) if virtual_clients > 1 else None

    def answer(self, question: Question) -> Answer:
        """Return the answer, summed over the virtual clients."""
        match question:
            case Pass():
                return self._pass(question)
            case Probe():
                g = np.zeros_like(question.x)
                inner = parts_of([part.probe(question.x, g) for part in self._parts])
                return ProbeAnswer(inner, g, self._evaluate(question.x) if question.evaluate else None)
            case Solution():
                inner = parts_of([part.value(question.x) for part in self._parts])
                return SolutionAnswer(inner, self._evaluate(question.x))
        raise ContractError("the server asked for moments after it sent the scaling")

    def _pass(self, question: Pass) -> PassAnswer:
        held_out = self._evaluate(question.x) if question.evaluate else None
        if self._pool is None:
            found = self._parts[0].answer(question)
            return found if held_out is None else PassAnswer(found.points, found.inner, held_out)
        answers = list(self._pool.map(lambda part: part.answer(question), self._parts))
        points = answers[0].points
        for answer in answers[1:]:
            points += answer.points
        return PassAnswer(points, parts_of([value for answer in answers for value in answer.inner]), held_out)

    def _evaluate(self, x: Vector) -> Evaluation | None:
        """Return the evaluation of ``x`` on the held-out rows; None if there are none."""
        if self._held_out is None:
            return None
        shard = self._held_out.shard
        right = int(np.sum((shard.scores(x) > 0) == (shard.labels > 0))) if self._classifies else None
        return Evaluation(shard.count, right, self._held_out.value(x))
