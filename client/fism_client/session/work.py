"""What a client keeps of a run across reconnections: the terms, its rows, its answerer, the solution."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fism_common.data.moments import SCALING, Scaling
from fism_common.errors import MismatchError
from fism_common.problem.sets import SETS

if TYPE_CHECKING:
    from fism_client.compute.answerer import Answerer
    from fism_client.session.participant import Participant
    from fism_common.exchange import Answer, Question
    from fism_common.joining import Terms
    from fism_common.vectors import Vector


class Work:
    """One client's work in one run."""

    def __init__(self, participant: Participant) -> None:
        """Take the participant."""
        self.who = participant
        self.terms: Terms | None = None
        """What to solve, once it is known."""
        self.scaling: Scaling | None = None
        """How all clients scale their columns; None if it is not known yet, or if they do not."""
        self.digest = b""
        self.columns = 0
        self.solution: Vector | None = None
        self._answerer: Answerer | None = None

    def accept(self, terms: Terms, server: str) -> None:
        """Take the terms of a join; prepare the rows the first time, and raise MismatchError if they differ later."""
        before = self.terms
        if before is not None and before.run_id != terms.run_id:
            raise MismatchError(f"{server} has begun another run; restart this client to take part in it")
        if before is not None and before.recipe != terms.recipe:
            raise MismatchError(f"{server} has since agreed on other columns; restart this client")
        if before is None:
            self.columns = self.who.prepare(terms.recipe).train.columns
            self.who.check_labels(terms.loss)
            self.digest = self.who.digest(terms.run_id)
        self.terms = terms

    @property
    def expected(self) -> tuple[str, ...]:
        """The problem's vectors that arrive on the stream before the first pass."""
        terms = self._terms()
        return terms.constraint.vectors + (SCALING if terms.recipe.measured else ())

    def load_kernels(self) -> None:
        """Compile or load the kernels now, so that no question has to wait for them."""
        terms = self._terms()
        if self._answerer is not None:
            return
        if not self.expected:
            self.set_up({})
        elif not terms.constraint.vectors:
            self.who.rehearse(terms.loss, SETS.from_variant(terms.constraint, {}))

    def set_up(self, vectors: dict[str, Vector]) -> None:
        """Complete the problem; later calls do nothing."""
        if self._answerer is None:
            terms = self._terms()
            copies = {name: vector.copy() for name, vector in vectors.items()}
            scaling = {name: copies[name] for name in SCALING if name in copies}
            self.scaling = Scaling(**scaling) if scaling else None
            constraint = SETS.from_variant(terms.constraint, copies)
            self._answerer = self.who.answerer(terms.loss, constraint, self.scaling)

    def answer(self, question: Question) -> Answer:
        """Return the answer to a question; raise ContractError if it arrives too early or too late."""
        return (self._answerer or self.who.unscaled()).answer(question)

    def _terms(self) -> Terms:
        assert self.terms is not None, "call accept first"  # noqa: S101
        return self.terms
