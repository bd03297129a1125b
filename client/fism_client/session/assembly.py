"""Assembles questions and the problem's vectors from the slices on a client's stream."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fism_common.exchange import Moments, Pass, Probe, Solution
from fism_common.wire.messages import ASKED_WITH, QuestionKind
from fism_common.wire.slices import Assembly

if TYPE_CHECKING:
    from fism_common.exchange import Question
    from fism_common.vectors import Vector
    from fism_common.wire.messages import Key, QuestionSlice, SetupSlice


class Asked(NamedTuple):
    """A complete question."""

    key: Key
    round: int
    question: Question


class Incoming:
    """One stream's vectors."""

    def __init__(self, n: int, expected: tuple[str, ...]) -> None:
        """Expect vectors of n entries; ``expected`` names those in the setup."""
        self._n = n
        self._setup = Assembly(n, expected)
        self._questions: dict[QuestionKind, Assembly] = {}

    def setup(self, message: SetupSlice) -> dict[str, Vector] | None:
        """Add a slice of the problem's vectors; return them once they are complete."""
        return self._setup.vectors if self._setup.add(message.offset, message.part) else None

    def question(self, message: QuestionSlice) -> Asked | None:
        """Add a slice of a question; return it once complete. Its vectors are valid until the next slice arrives."""
        kind = message.kind
        assembly = self._questions.get(kind)
        if assembly is None:
            assembly = self._questions[kind] = Assembly(self._n, ASKED_WITH[kind])
        if not assembly.add(message.offset, message.part):
            return None
        return Asked(message.key, message.round, _question(message, assembly.vectors))


def _question(message: QuestionSlice, vectors: dict[str, Vector]) -> Question:
    match message.kind:
        case QuestionKind.PASS:
            return Pass(vectors["x"], vectors["h"], message.gamma, message.weight, message.evaluate, message.summands)
        case QuestionKind.PROBE:
            return Probe(vectors["x"], message.evaluate)
        case QuestionKind.SOLUTION:
            return Solution(vectors["x"])
    return Moments()
