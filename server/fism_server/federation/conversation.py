"""The server's end of one client's stream: which messages are allowed when, and what they complete. No I/O.

The protocol is the table ``TRANSITIONS``; docs/faults.md shows it.
"""

from __future__ import annotations

from collections import deque
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from fism_common.data.moments import ColumnMoments
from fism_common.errors import ContractError
from fism_common.exchange import MomentsAnswer, PassAnswer, ProbeAnswer, SolutionAnswer
from fism_common.wire.messages import ANSWERED_WITH, AnswerSlice, Key, Leaving, Opening, QuestionKind
from fism_common.wire.slices import Assembly

if TYPE_CHECKING:
    from fism_common.exchange import Answer, Evaluation
    from fism_common.sums.doubles import Parts
    from fism_common.wire.messages import ClientMessage


class Stage(StrEnum):
    """Where a stream is."""

    UNOPENED = "not open"
    IDLE = "open, nothing asked"
    ASKED = "open, question asked"
    ENDING = "goodbye sent"
    ENDED = "ended"


class Incoming(StrEnum):
    """What a client may send."""

    OPENING = "Opening"
    SLICE = "Answer, a slice that is not the last"
    ANSWER = "Answer, complete"
    LEAVING = "Leaving"
    END = "end of stream"


class Transition(NamedTuple):
    """What a message does."""

    stage: Stage
    effect: str


TRANSITIONS: dict[tuple[Stage, Incoming], Transition] = {
    (Stage.UNOPENED, Incoming.OPENING): Transition(
        Stage.IDLE, "an older stream of the client ends; the current question is sent, if there is one"
    ),
    (Stage.UNOPENED, Incoming.END): Transition(Stage.ENDED, "nothing"),
    (Stage.IDLE, Incoming.LEAVING): Transition(Stage.ENDED, "event `left`"),
    (Stage.IDLE, Incoming.END): Transition(Stage.ENDED, "event `lost`: this is also how a killed client looks"),
    (Stage.ASKED, Incoming.SLICE): Transition(Stage.ASKED, "waits for the next slice"),
    (Stage.ASKED, Incoming.ANSWER): Transition(
        Stage.IDLE, "checked, then used; or rejected, and asked again; to an abandoned attempt: event `late`"
    ),
    (Stage.ASKED, Incoming.LEAVING): Transition(Stage.ENDED, "event `left`"),
    (Stage.ASKED, Incoming.END): Transition(Stage.ENDED, "event `lost`"),
    (Stage.ENDING, Incoming.SLICE): Transition(Stage.ENDING, "ignored"),
    (Stage.ENDING, Incoming.ANSWER): Transition(Stage.ENDING, "ignored"),
    (Stage.ENDING, Incoming.LEAVING): Transition(Stage.ENDED, "ignored"),
    (Stage.ENDING, Incoming.END): Transition(Stage.ENDED, "the client has hung up, as expected"),
}
"""Everything that may happen on a stream. Anything else is a violation."""


class Answered(NamedTuple):
    """A complete answer to a question that was asked on the stream."""

    key: Key
    answer: Answer | None
    """None if its vectors were malformed."""
    seconds: float = 0.0
    """How long the client reports to have computed."""
    fault: str | None = None
    """Why it is malformed."""


class Arriving(NamedTuple):
    """An answer of which some slices have arrived."""

    key: Key
    assembly: Assembly
    inner: Parts
    evaluation: Evaluation | None

    def answer(self, kind: QuestionKind) -> Answer:
        """Return the complete answer."""
        vectors = self.assembly.vectors
        match kind:
            case QuestionKind.PASS:
                return PassAnswer(vectors["points"], self.inner, self.evaluation)
            case QuestionKind.PROBE:
                return ProbeAnswer(self.inner, vectors["g"], self.evaluation)
            case QuestionKind.MOMENTS:
                return MomentsAnswer(ColumnMoments(**vectors))
        return SolutionAnswer(self.inner, self.evaluation)


class Conversation:
    """One stream, from its opening on."""

    def __init__(self, n: int) -> None:
        """Expect vectors of n entries."""
        self._n = n
        self._points: Assembly | None = None
        self._asked: deque[tuple[Key, QuestionKind]] = deque()
        self._arriving: Arriving | None = None
        self._ending = False

    @property
    def stage(self) -> Stage:
        """Where the stream is."""
        if self._ending:
            return Stage.ENDING
        return Stage.ASKED if self._asked else Stage.IDLE

    def ask(self, key: Key, kind: QuestionKind) -> None:
        """Record a question that is sent."""
        self._asked.append((key, kind))

    def end(self) -> None:
        """Record that the last message is sent: messages still in transit have no effect."""
        self._ending = True

    def receive(self, message: ClientMessage) -> Answered | Leaving | None:
        """Handle a message; return the answer that it completes, or that the client leaves.

        Raises ContractError for a message that the table does not allow.
        """
        if self._ending:
            return None
        if isinstance(message, AnswerSlice):
            return self._receive_slice(message)
        incoming = Incoming.OPENING if isinstance(message, Opening) else Incoming.LEAVING
        if (self.stage, incoming) not in TRANSITIONS:
            raise ContractError(f"a message {incoming.value!r} is not allowed when the stream is {self.stage.value!r}")
        return message if isinstance(message, Leaving) else None

    def _receive_slice(self, message: AnswerSlice) -> Answered | None:
        kind = self._kind_of(message.key)
        if kind is None:
            raise ContractError(
                f"an answer to question {message.key.number}, attempt {message.key.attempt}, which was not asked or is "
                "answered"
            )
        arriving, self._arriving = self._arriving, None
        if arriving is None or arriving.key != message.key:
            arriving = Arriving(message.key, self._assembly(kind), message.inner, message.evaluation)
        try:
            if not arriving.assembly.add(message.offset, message.part):
                self._arriving = arriving
                return None
        except ContractError as error:
            self._expect_after(message.key)
            return Answered(message.key, None, fault=str(error))
        self._expect_after(message.key)
        return Answered(message.key, arriving.answer(kind), message.seconds)

    def _assembly(self, kind: QuestionKind) -> Assembly:
        """Return memory for an answer's vectors.

        All points of a stream are received into the same memory, since they are added up when they are complete: at a
        million columns, fresh memory takes longer than copying. Other vectors belong to the answer.
        """
        if kind is not QuestionKind.PASS:
            return Assembly(self._n, ANSWERED_WITH[kind])
        if self._points is None:
            self._points = Assembly(self._n, ANSWERED_WITH[kind])
        self._points.clear()
        return self._points

    def _kind_of(self, key: Key) -> QuestionKind | None:
        """Return the kind of a question that was asked; None if it was not."""
        for asked, kind in self._asked:
            if asked == key:
                return kind
        return None

    def _expect_after(self, key: Key) -> None:
        """Expect no more answers to this question and those before it."""
        while self._asked.popleft()[0] != key:
            pass
