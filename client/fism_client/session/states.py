"""A client's side of the protocol, as a table; docs/faults.md shows it."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from fism_common.errors import ContractError
from fism_common.wire.messages import QuestionKind, QuestionSlice, Refused, SetupSlice

if TYPE_CHECKING:
    from fism_common.wire.messages import ServerMessage


class Stage(StrEnum):
    """The state of a client."""

    JOINING = "joining"
    OPEN = "stream open"
    SOLVED = "stream open, solution received"
    ENDED = "ended"


class Incoming(StrEnum):
    """What a client may receive."""

    TERMS = "the terms of the run"
    REFUSAL = "a refusal"
    NAME_TAKEN = "a refusal: the name is taken"
    NO_ANSWER = "no answer"
    SETUP = "Setup, slice after slice"
    QUESTION = "Question, slice after slice"
    SOLUTION = "Question with the solution"
    REFUSED = "Refused"
    EXCLUDED = "Refused, excluded"
    FINISHED = "Goodbye, finished"
    STOPPED = "Goodbye, stopped"
    END = "end of stream"


class Transition(NamedTuple):
    """The next stage, and what the client does."""

    stage: Stage
    effect: str


_STREAM = {
    Incoming.SETUP: "completes the problem; nothing is sent",
    Incoming.QUESTION: "answers; still reacts to a goodbye during long work",
    Incoming.SOLUTION: "answers with F_i at the solution",
    Incoming.REFUSED: "logs the reason; the server repeats a rejected question",
}
_END = {
    Incoming.EXCLUDED: Transition(Stage.ENDED, "exit code 3"),
    Incoming.STOPPED: Transition(Stage.ENDED, "hangs up, exit code 4"),
}
TRANSITIONS: dict[tuple[Stage, Incoming], Transition] = {
    (Stage.JOINING, Incoming.TERMS): Transition(
        Stage.OPEN, "opens a stream; exit code 3 if the terms differ from the first join"
    ),
    (Stage.JOINING, Incoming.REFUSAL): Transition(Stage.ENDED, "exit code 3"),
    (Stage.JOINING, Incoming.NAME_TAKEN): Transition(Stage.JOINING, "retries for 20 s, then exit code 3"),
    (Stage.JOINING, Incoming.NO_ANSWER): Transition(Stage.JOINING, "retries for --patience seconds, then exit code 4"),
    **{
        (stage, incoming): Transition(Stage.SOLVED if incoming is Incoming.SOLUTION else stage, effect)
        for stage in (Stage.OPEN, Stage.SOLVED)
        for incoming, effect in _STREAM.items()
    },
    **{(stage, incoming): transition for stage in (Stage.OPEN, Stage.SOLVED) for incoming, transition in _END.items()},
    (Stage.OPEN, Incoming.END): Transition(Stage.JOINING, "joins again"),
    (Stage.SOLVED, Incoming.END): Transition(
        Stage.JOINING, "joins again; if the server is gone, ends with exit code 0"
    ),
    (Stage.SOLVED, Incoming.FINISHED): Transition(Stage.ENDED, "hangs up, exit code 0"),
}
"""Everything that may happen to a client. Anything not in the table is an error of the server: exit code 3."""


def incoming_of(message: ServerMessage) -> Incoming:
    """Return what a message on the stream is to the table."""
    match message:
        case QuestionSlice():
            return Incoming.SOLUTION if message.kind is QuestionKind.SOLUTION else Incoming.QUESTION
        case SetupSlice():
            return Incoming.SETUP
        case Refused():
            return Incoming.EXCLUDED if message.excluded else Incoming.REFUSED
    return Incoming.FINISHED if message.finished else Incoming.STOPPED


def after(stage: Stage, incoming: Incoming) -> Stage:
    """Return the stage that follows; raise ContractError for what the table does not allow."""
    transition = TRANSITIONS.get((stage, incoming))
    if transition is None:
        raise ContractError(
            f"the server sent {incoming.value!r} when this client was {stage.value!r}, which the protocol does not "
            "allow; install the same version of fism on both sides"
        )
    return transition.stage
