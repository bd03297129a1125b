"""The interface of every method: it asks questions and receives sums."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fism_common.exchange import Question, Total
    from fism_common.vectors import Vector
    from fism_server.algorithm.record import Record, Stop
    from fism_server.algorithm.state import State


class Method(ABC):
    """One run of a method. Each question is one round.

    ::

        while (question := method.ask()) is not None:
            record = method.tell(total of all answers to question)
        H = method.conclude(F at method.x)
    """

    @property
    @abstractmethod
    def round(self) -> int:
        """The current round, or the one after the last."""

    @property
    @abstractmethod
    def x(self) -> Vector:
        """The current point: x_k before round k, and the answer at the end."""

    @property
    @abstractmethod
    def stopped(self) -> Stop | None:
        """Why there are no more rounds; None while there are."""

    @property
    @abstractmethod
    def since(self) -> int:
        """The first round since which the clients have been the same."""

    @abstractmethod
    def ask(self) -> Question | None:
        """Return the question of this round, the same object until ``tell``; None when there are no more rounds."""

    @abstractmethod
    def tell(self, total: Total) -> Record | None:
        """Take the sums over all answers, and move on to the next round.

        Returns the round's record; None if the sums only showed that the previous round was the last.
        """

    @abstractmethod
    def restart(self, rows: int) -> None:
        """Start the current round again with other clients, which have ``rows`` rows in all."""

    @abstractmethod
    def conclude(self, inner: float) -> float:
        """Take F at the answer, which the stop rule still needs after the last round; return H there."""

    @abstractmethod
    def state(self) -> State:
        """Return everything needed to continue from here."""

    @abstractmethod
    def means(self) -> Mapping[str, Vector]:
        """Return the other vectors that belong in the result, by name."""
