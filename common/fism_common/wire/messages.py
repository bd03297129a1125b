"""The messages of a Round stream, as plain data: what the rest of the system sees instead of protobuf."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

    from fism_common.exchange import Evaluation
    from fism_common.sums.doubles import Parts
    from fism_common.wire.slices import Bytes


class QuestionKind(StrEnum):
    """The kinds of questions."""

    PASS = "pass"  # noqa: S105  # not a password
    PROBE = "probe"
    MOMENTS = "moments"
    SOLUTION = "solution"


ASKED_WITH: dict[QuestionKind, tuple[str, ...]] = {
    QuestionKind.PASS: ("x", "h"),
    QuestionKind.PROBE: ("x",),
    QuestionKind.MOMENTS: (),
    QuestionKind.SOLUTION: ("x",),
}
"""The vectors of each question."""
ANSWERED_WITH: dict[QuestionKind, tuple[str, ...]] = {
    QuestionKind.PASS: ("points",),
    QuestionKind.PROBE: ("g",),
    QuestionKind.MOMENTS: ("count", "mean", "rest", "squares"),
    QuestionKind.SOLUTION: (),
}
"""The vectors of each answer."""


Part: TypeAlias = "Callable[[str], Bytes]"
"""Returns the bytes of a vector's slice by the vector's name; empty if the message has none."""


class Key(NamedTuple):
    """Which question, and which attempt at it."""

    number: int
    attempt: int


class SetupSlice(NamedTuple):
    """A slice of the vectors of the problem."""

    offset: int
    part: Part


class QuestionSlice(NamedTuple):
    """A slice of a question."""

    key: Key
    kind: QuestionKind
    round: int
    gamma: float
    weight: float
    evaluate: bool
    summands: int
    offset: int
    part: Part


class Refused(NamedTuple):
    """A message of the client was rejected."""

    round: int
    reason: str
    excluded: bool


class Goodbye(NamedTuple):
    """The server's last message."""

    finished: bool
    reason: str


class Opening(NamedTuple):
    """The client's first message."""

    token: bytes
    shard_digest: bytes


class AnswerSlice(NamedTuple):
    """A slice of an answer."""

    key: Key
    seconds: float
    inner: Parts
    offset: int
    part: Part
    evaluation: Evaluation | None


class Leaving(NamedTuple):
    """The client leaves on purpose."""

    reason: str


ServerMessage: TypeAlias = SetupSlice | QuestionSlice | Refused | Goodbye
ClientMessage: TypeAlias = Opening | AnswerSlice | Leaving
