"""The server's end of one client's stream: what is to be sent on it, and what was asked and is not answered yet."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fism_common.data.moments import MOMENTS, Moments
from fism_common.errors import ContractError
from fism_common.exchange import Reply
from fism_common.wire.codec import Assembly, from_message

if TYPE_CHECKING:
    from collections.abc import Callable

    from fism_common.exchange import Evaluation
    from fism_common.wire.pb import federation_pb2 as pb
    from fism_server.federation.roster import Member

CLOSING, MEASURING = 0, -1
Key = tuple[int, int]
"""A question: its round, or CLOSING, or MEASURING; and which attempt at it."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer to a question that was asked on the stream."""

    key: Key
    reply: Reply
    """Empty in an answer to MEASURING."""
    seconds: float = 0.0
    """How long the client says that it computed."""
    evaluation: Evaluation | None = None
    moments: Moments | None = None
    fault: str | None = None
    """Why it cannot be used, as far as the stream alone shows it."""


class Link:
    """One stream."""

    def __init__(self, member: Member, end: Callable[[], object]) -> None:
        """Take the member, and what ends the stream."""
        self.member, self.end = member, end
        self.outbox: asyncio.Queue[list[bytes] | None] = asyncio.Queue()
        self.finished = False
        """Whether the last word is said: what is still on its way has no effect."""
        self._asked: deque[Key] = deque()
        self._assembly = Assembly(member.width, 1)
        self._moments: Assembly | None = None
        self._evaluation: Evaluation | None = None

    def ask(self, key: Key, messages: list[bytes]) -> None:
        """Send a question."""
        self._asked.append(key)
        self.outbox.put_nowait(messages)

    def post(self, *messages: pb.ServerMessage) -> None:
        """Send what needs no answer."""
        self.outbox.put_nowait([message.SerializeToString() for message in messages])

    def say_goodbye(self, message: pb.ServerMessage) -> None:
        """Send the last word, and take no more: the client hangs up when it has read it."""
        self.finished = True
        self.post(message)

    def hang_up(self, message: pb.ServerMessage) -> None:
        """Send the last word, and end the stream whether the client has read it or not."""
        self.say_goodbye(message)
        self.outbox.put_nowait(None)

    def take(self, message: pb.ClientMessage, x: bytes | memoryview) -> Answer | None:
        """Take a message; return the answer that it completes, if it does.

        Raises ContractError for a message that answers nothing that was asked here.
        """
        match message.WhichOneof("kind"):
            case "reply":
                return self._reply(message.reply, x)
            case "closed":
                return self._closed(message.closed)
            case "moments":
                return self._measured(message.moments)
            case kind:
                raise ContractError(f"a message {kind!r} has no place in an open stream")

    def _reply(self, message: pb.Reply, x: bytes | memoryview) -> Answer | None:
        key = (message.round, message.attempt)
        if key not in self._asked or message.round == CLOSING:
            raise ContractError(
                f"a reply to round {message.round}, attempt {message.attempt}, which was not asked or is answered"
            )
        shards, vector = self.member.shards, self._assembly.vectors[0]
        if message.offset == 0:
            self._evaluation = from_message(message.evaluation) if message.HasField("evaluation") else None
        try:
            if not self._assembly.add(message.offset, x):
                return None
        except ContractError as error:
            self._assembly.clear()
            return self._answered(Answer(key, Reply(vector, message.inner, shards), fault=str(error)))
        return self._answered(Answer(key, Reply(vector, message.inner, shards), message.seconds, self._evaluation))

    def _closed(self, message: pb.Closed) -> Answer:
        key = next((key for key in self._asked if key[0] == CLOSING), None)
        if key is None:
            raise ContractError("a closing answer, which was not asked or is given")
        evaluation = from_message(message.evaluation) if message.HasField("evaluation") else None
        reply = Reply(self._assembly.vectors[0], message.inner, self.member.shards)
        return self._answered(Answer(key, reply, evaluation=evaluation))

    def _measured(self, message: pb.Moments) -> Answer | None:
        key = (MEASURING, message.attempt)
        if key not in self._asked:
            raise ContractError("moments, which were not asked or are given")
        self._moments = self._moments or Assembly(self.member.width, len(MOMENTS))
        nothing = Reply(self._assembly.vectors[0], 0.0, self.member.shards)
        try:
            if not self._moments.add(message.offset, *(getattr(message, name) for name in MOMENTS)):
                return None
        except ContractError as error:
            self._moments.clear()
            return self._answered(Answer(key, nothing, fault=str(error)))
        return self._answered(Answer(key, nothing, moments=Moments(*self._moments.vectors)))

    def _answered(self, answer: Answer) -> Answer:
        """Expect no more answers to this question and those before it."""
        while self._asked.popleft() != answer.key:
            pass
        return answer
