"""Messages of a Round stream to bytes and back."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from google.protobuf.message import DecodeError

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
)
from fism_common.wire.framing import fields, unwrap, wrap
from fism_common.wire.messages import (
    ANSWERED_WITH,
    ASKED_WITH,
    AnswerSlice,
    Goodbye,
    Key,
    Leaving,
    Opening,
    QuestionKind,
    QuestionSlice,
    Refused,
    SetupSlice,
)
from fism_common.wire.pb import federation_pb2 as pb
from fism_common.wire.slices import as_entries, pack, slices

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from fism_common.exchange import Answer, Question
    from fism_common.vectors import Vector
    from fism_common.wire.messages import ClientMessage, Part, ServerMessage
    from fism_common.wire.slices import Bytes, Entries

_LONG = 2**15
"""The size in bytes from which a message is read field by field; below it, protobuf's own copies cost less."""
_KINDS = {kind: pb.Question.Kind.Value(kind.name) for kind in QuestionKind}
_KIND_OF = {number: kind for kind, number in _KINDS.items()}
_QUESTION = {name: pb.Question.DESCRIPTOR.fields_by_name[name].number for name in ("x", "h")}
_ANSWER = {name: pb.Answer.DESCRIPTOR.fields_by_name[name].number for names in ANSWERED_WITH.values() for name in names}


def kind_of(question: Question) -> QuestionKind:
    """Return the kind of a question."""
    return _KIND_OF_TYPE[type(question)]


_KIND_OF_TYPE = {
    Pass: QuestionKind.PASS,
    Probe: QuestionKind.PROBE,
    Moments: QuestionKind.MOMENTS,
    Solution: QuestionKind.SOLUTION,
}


def question_messages(question: Question, key: Key, round_: int) -> list[bytes]:
    """Return a question as messages, serialised once: every client gets the same bytes."""
    kind = kind_of(question)
    head = pb.Question(number=key.number, attempt=key.attempt, kind=_KINDS[kind], round=round_)
    if isinstance(question, Pass):
        head.gamma, head.weight, head.summands = question.gamma, question.weight, question.summands
    if isinstance(question, (Pass, Probe)):
        head.evaluate = question.evaluate
    vectors = {name: getattr(question, name) for name in ASKED_WITH[kind]}
    return list(_sliced(pb.ServerMessage.QUESTION_FIELD_NUMBER, head, vectors, _QUESTION))


def setup_messages(vectors: Mapping[str, Vector]) -> list[bytes]:
    """Return the vectors of the problem as messages, serialised once; no message if there are none."""
    n = max((vector.size for vector in vectors.values()), default=0)
    return [
        pb.ServerMessage(
            setup=pb.Setup(offset=part.start, vectors={name: pack(vector[part]) for name, vector in vectors.items()})
        ).SerializeToString()
        for part in slices(n, len(vectors))
        if vectors
    ]


def refused_message(refused: Refused) -> bytes:
    """Return a rejection."""
    return pb.ServerMessage(
        refused=pb.Refused(round=refused.round, reason=refused.reason, excluded=refused.excluded)
    ).SerializeToString()


def goodbye_message(goodbye: Goodbye) -> bytes:
    """Return the server's last message."""
    return pb.ServerMessage(goodbye=pb.Goodbye(finished=goodbye.finished, reason=goodbye.reason)).SerializeToString()


def opening_message(opening: Opening) -> bytes:
    """Return the client's first message."""
    return pb.ClientMessage(
        opening=pb.Opening(token=opening.token, shard_digest=opening.shard_digest)
    ).SerializeToString()


def leaving_message(leaving: Leaving) -> bytes:
    """Return a client's goodbye."""
    return pb.ClientMessage(leaving=pb.Leaving(reason=leaving.reason)).SerializeToString()


def answer_messages(answer: Answer, key: Key, seconds: float) -> Iterator[bytes]:
    """Yield an answer as messages."""
    head = pb.Answer(number=key.number, attempt=key.attempt, seconds=seconds)
    vectors: dict[str, Entries] = {}
    if isinstance(answer, MomentsAnswer):
        vectors = {name: getattr(answer.moments, name) for name in ANSWERED_WITH[QuestionKind.MOMENTS]}
        yield from _sliced(pb.ClientMessage.ANSWER_FIELD_NUMBER, head, vectors, _ANSWER)
        return
    head.inner.extend(answer.inner)
    if isinstance(answer, PassAnswer):
        vectors = {"points": answer.points}
    elif isinstance(answer, ProbeAnswer):
        vectors = {"g": answer.subgradient}
    if answer.held_out is not None:
        head.evaluation.CopyFrom(_evaluation_message(answer.held_out))
    for message in _sliced(pb.ClientMessage.ANSWER_FIELD_NUMBER, head, vectors, _ANSWER):
        yield message
        head.ClearField("evaluation")  # both are in the first slice alone
        head.ClearField("inner")


def _sliced(
    field: int, head: pb.Question | pb.Answer, vectors: Mapping[str, Entries], numbers: Mapping[str, int]
) -> Iterator[bytes]:
    """Yield messages whose one ``field`` is ``head`` with a slice of each vector."""
    packed = {numbers[name]: as_entries(vector) for name, vector in vectors.items()}
    n = next(iter(packed.values())).size if packed else 0
    for part in slices(n, len(packed)):
        head.offset = part.start
        yield wrap(field, head, {number: vector[part] for number, vector in packed.items()})


def read_client_message(raw: bytes) -> ClientMessage:
    """Return a client's message; raise ContractError for invalid bytes."""
    try:
        inner = _only_field(raw, pb.ClientMessage.ANSWER_FIELD_NUMBER)
        if inner is not None:
            rest, vectors = unwrap(inner, _ANSWER)
            return _answer(pb.Answer.FromString(rest), partial(_one_of, vectors))
        message = pb.ClientMessage.FromString(raw)
    except DecodeError as error:
        raise _not_a_message(error) from error
    match message.WhichOneof("kind"):
        case "answer":
            return _answer(message.answer, partial(getattr, message.answer))
        case "opening":
            return Opening(message.opening.token, message.opening.shard_digest)
        case "leaving":
            return Leaving(message.leaving.reason)
    raise ContractError("an empty message")


def _answer(head: pb.Answer, part: Part) -> AnswerSlice:
    evaluation = _evaluation(head.evaluation) if head.HasField("evaluation") else None
    return AnswerSlice(Key(head.number, head.attempt), head.seconds, tuple(head.inner), head.offset, part, evaluation)


def read_server_message(raw: bytes) -> ServerMessage:
    """Return a message of the server; raise ContractError for invalid bytes."""
    try:
        inner = _only_field(raw, pb.ServerMessage.QUESTION_FIELD_NUMBER)
        if inner is not None:
            rest, vectors = unwrap(inner, _QUESTION)
            return _question(pb.Question.FromString(rest), partial(_one_of, vectors))
        message = pb.ServerMessage.FromString(raw)
    except DecodeError as error:
        raise _not_a_message(error) from error
    match message.WhichOneof("kind"):
        case "question":
            return _question(message.question, partial(getattr, message.question))
        case "setup":
            return SetupSlice(message.setup.offset, partial(_one_of, message.setup.vectors))
        case "refused":
            refused = message.refused
            return Refused(refused.round, refused.reason, refused.excluded)
        case "goodbye":
            return Goodbye(message.goodbye.finished, message.goodbye.reason)
    raise ContractError("a message of a kind that this client does not know; install the server's version of fism")


def _question(head: pb.Question, part: Part) -> QuestionSlice:
    if head.kind not in _KIND_OF:
        raise ContractError("a question that this client does not know; install the server's version of fism")
    key, kind = Key(head.number, head.attempt), _KIND_OF[head.kind]
    numbers = (head.gamma, head.weight, head.evaluate, head.summands)
    return QuestionSlice(key, kind, head.round, *numbers, head.offset, part)


def _not_a_message(error: DecodeError) -> ContractError:
    return ContractError(f"bytes that are not a message of the protocol: {error}")


def _one_of(vectors: Mapping[str, Bytes], name: str) -> Bytes:
    """Return a vector's slice; empty if there is none."""
    return vectors[name] if name in vectors else b""  # noqa: SIM401  # a map of protobuf's would add the key


def _only_field(raw: bytes, number: int) -> memoryview | None:
    """Return the content of a long message whose only field is ``number``; None for any other message."""
    if len(raw) < _LONG:
        return None
    view = memoryview(raw)
    found, _, begin, end = next(fields(view))
    return view[begin:end] if found == number and end == len(raw) else None


def _evaluation_message(evaluation: Evaluation) -> pb.Evaluation:
    return pb.Evaluation(rows=evaluation.rows, right=evaluation.right, loss=evaluation.loss)


def _evaluation(message: pb.Evaluation) -> Evaluation:
    return Evaluation(message.rows, message.right if message.HasField("right") else None, message.loss)
