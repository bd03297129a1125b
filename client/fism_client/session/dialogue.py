"""One stream of a client, from its opening to its end: messages in, answers out."""

from __future__ import annotations

import logging
import math
import time
from functools import partial
from typing import TYPE_CHECKING

from fism_client.session.assembly import Incoming
from fism_client.session.states import Stage, after, incoming_of
from fism_client.session.stream import LostError
from fism_client.session.threads import in_thread
from fism_common.errors import ContractError, RefusedError, StoppedError
from fism_common.exchange import Solution
from fism_common.wire.codec import answer_messages
from fism_common.wire.messages import Goodbye, QuestionSlice, Refused, SetupSlice

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fism_client.session.assembly import Asked
    from fism_client.session.stream import ServerStream
    from fism_client.session.work import Work
    from fism_common.vectors import Vector
    from fism_common.wire.messages import ServerMessage

_log = logging.getLogger(__name__)
_LONG_WORK = 0.05
"""Work that takes at least this many seconds runs in a thread, so that a goodbye or a signal is noticed meanwhile. For
shorter work a thread costs more than it gains."""


class Dialogue:
    """Answers the questions on one stream."""

    def __init__(self, stream: ServerStream, work: Work) -> None:
        """Take an open stream, and the work that answers its questions."""
        self._stream, self._work = stream, work
        self._incoming = Incoming(work.columns, work.expected)
        self._last_seconds = math.inf
        self._stage = Stage.OPEN if work.solution is None else Stage.SOLVED
        self.heard = False
        """Whether the server has sent anything."""

    async def run(self) -> Vector:
        """Answer until the server says goodbye; return the solution.

        Raises LostError if the stream ends without a goodbye, StoppedError if the run was stopped, RefusedError if this
        client is excluded.
        """
        sent = True
        async for message in self._stream.messages():
            self.heard = True
            self._stage = after(self._stage, incoming_of(message))
            if isinstance(message, Goodbye):
                return self._goodbye(message)
            if sent:  # otherwise only a goodbye matters now
                answers = await self._react(message)
                sent = answers is not None and await self._stream.write(answers)
        if not sent:  # the status has no reason; joining again will give one
            raise LostError("the stream ended before the answer was sent")
        raise await self._stream.end()

    async def _react(self, message: ServerMessage) -> Iterable[bytes] | None:
        """Handle a message other than a goodbye; return the answer, or None if a goodbye arrived meanwhile."""
        match message:
            case QuestionSlice():
                asked = self._incoming.question(message)
                return [] if asked is None else await self._answer(asked)
            case SetupSlice():
                vectors = self._incoming.setup(message)
                if vectors is None:
                    return []
                return await self._stream.unless_goodbye(in_thread(partial(self._set_up, vectors)))
            case Refused(round_, reason, excluded):
                if excluded:
                    self._work.solution = None  # even if it has one: the run continues without its answer to it
                    raise RefusedError(f"the server excluded this client: {reason}")
                _log.warning("refused: %s round=%d", reason, round_)
                return []
        raise TypeError(f"no reaction to {message!r}")  # a goodbye is handled before

    async def _answer(self, asked: Asked) -> Iterable[bytes] | None:
        """Answer a question; None if a goodbye arrived meanwhile."""
        if isinstance(asked.question, Solution):
            self._work.solution = asked.question.x.copy()
        quick = self._last_seconds < _LONG_WORK and not isinstance(asked.question, Solution)
        if quick:
            return self._compute(asked)
        return await self._stream.unless_goodbye(in_thread(partial(self._compute, asked)))

    def _set_up(self, vectors: dict[str, Vector]) -> Iterable[bytes]:
        """Complete the problem; nothing is sent."""
        self._work.set_up(vectors)
        return []

    def _compute(self, asked: Asked) -> Iterable[bytes]:
        began = time.perf_counter()
        answer = self._work.answer(asked.question)
        seconds = time.perf_counter() - began
        if not isinstance(asked.question, Solution):
            self._last_seconds = seconds
        return answer_messages(answer, asked.key, seconds)

    def _goodbye(self, message: Goodbye) -> Vector:
        if not message.finished:
            self._work.solution = None
            raise StoppedError(
                f"the server stopped the run: {message.reason}; restart this client when the run continues"
            )
        if self._work.solution is None:
            raise ContractError(
                "the server finished the run before its solution was complete; ask its coordinator for it"
            )
        return self._work.solution
