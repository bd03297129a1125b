"""The server's end of one client's stream: a queue of bytes to send, and the state of the conversation."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from fism_server.federation.conversation import Conversation

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fism_common.wire.messages import Key, QuestionKind
    from fism_server.federation.roster import Member


class Connection:
    """One stream."""

    def __init__(self, member: Member, end: Callable[[], object]) -> None:
        """Take the member, and a function that ends the stream."""
        self.member, self.end = member, end
        self.outbox: asyncio.Queue[Sequence[bytes] | None] = asyncio.Queue()
        self.conversation = Conversation(member.width)
        self.ending = False
        """Whether the last message has been sent."""

    def ask(self, key: Key, kind: QuestionKind, messages: Sequence[bytes]) -> None:
        """Send a question."""
        self.conversation.ask(key, kind)
        self.outbox.put_nowait(messages)

    def send(self, *messages: bytes) -> None:
        """Send messages that need no answer."""
        self.outbox.put_nowait(messages)

    def say_goodbye(self, message: bytes) -> None:
        """Send the last message, and accept no more: the client hangs up when it has read it."""
        self.ending = True
        self.conversation.end()
        self.send(message)

    def hang_up(self, message: bytes) -> None:
        """Send the last message, and end the stream whether the client has read it or not."""
        self.say_goodbye(message)
        self.outbox.put_nowait(None)
