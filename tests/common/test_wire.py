"""Questions, answers and vectors on the wire."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fism_client.session.assembly import Incoming
from fism_common.data.moments import ColumnMoments
from fism_common.errors import ContractError
from fism_common.exchange import (
    Answer,
    Evaluation,
    Moments,
    MomentsAnswer,
    Pass,
    PassAnswer,
    Probe,
    ProbeAnswer,
    Question,
    Solution,
    SolutionAnswer,
)
from fism_common.vectors import Vector
from fism_common.wire.channel import MESSAGE_LIMIT
from fism_common.wire.codec import (
    answer_messages,
    kind_of,
    question_messages,
    read_client_message,
    read_server_message,
)
from fism_common.wire.messages import AnswerSlice, Key, Part, QuestionSlice
from fism_common.wire.slices import SLICE, Assembly, pack, slices
from fism_server.federation.conversation import Answered, Conversation

LONG = 3 * SLICE + 17
KEY = Key(8, 3)
EVALUATION = Evaluation(9, 7, 1.5)


def vector(n: int, seed: int = 0) -> Vector:
    """Return a random vector."""
    return np.random.default_rng(seed).normal(size=n)


@given(st.integers(1, 10**7), st.integers(1, 5))
def test_slices_cover_the_vector_once(n: int, vectors: int) -> None:
    """In order, without gap or overlap; together no longer than a message may be."""
    parts = list(slices(n, vectors))
    assert parts[0].start == 0
    assert parts[-1].stop == n
    assert all(a.stop == b.start for a, b in pairwise(parts))
    assert all(vectors * (part.stop - part.start) <= SLICE for part in parts)


def questions(n: int) -> dict[str, Question]:
    """Return one question of each kind."""
    x, h = vector(n), vector(n, 1)
    return {
        "pass": Pass(x, h, 0.25, 0.5, evaluate=True, summands=3),
        "probe": Probe(x, evaluate=True),
        "moments": Moments(),
        "solution": Solution(x),
    }


def answers(n: int) -> dict[str, Answer]:
    """Return one answer to each kind of question."""
    x = vector(n)
    return {
        "pass": PassAnswer(np.arange(n) - 2**61, (3.5, 1e-30), EVALUATION),
        "probe": ProbeAnswer((3.5,), x, EVALUATION),
        "moments": MomentsAnswer(ColumnMoments(*(vector(n, i) for i in range(4)))),
        "solution": SolutionAnswer((3.5,), EVALUATION),
    }


def same(a: object, b: object) -> None:
    """Compare two dataclasses field by field, vectors bit by bit."""
    assert type(a) is type(b)
    for name in (field.name for field in fields(a)):  # type: ignore[arg-type]
        left, right = getattr(a, name), getattr(b, name)
        if isinstance(left, np.ndarray):
            assert left.tobytes() == right.tobytes(), name
        elif isinstance(left, ColumnMoments):
            same(left, right)
        else:
            assert left == right, name


@pytest.mark.parametrize("n", [1, SLICE // 2, LONG])
@pytest.mark.parametrize("kind", ["pass", "probe", "moments", "solution"])
def test_question_arrives_as_it_was(kind: str, n: int) -> None:
    """Cut into messages far below gRPC's limit, with its number, attempt and round in each."""
    question = questions(n)[kind]
    messages = question_messages(question, KEY, 4)
    assert max(map(len, messages)) < MESSAGE_LIMIT / 3
    incoming, found = Incoming(n, ()), []
    for raw in messages:
        message = read_server_message(raw)
        assert isinstance(message, QuestionSlice)
        found.append(incoming.question(message))
    assert found[:-1] == [None] * (len(messages) - 1)
    assert found[-1] is not None
    assert (found[-1].key, found[-1].round) == (KEY, 4)
    same(found[-1].question, question)


@pytest.mark.parametrize("n", [1, SLICE, LONG])
@pytest.mark.parametrize("kind", ["pass", "probe", "moments", "solution"])
def test_answer_arrives_as_it_was(kind: str, n: int) -> None:
    """With the number and attempt that it answers, and the evaluation once."""
    answer = answers(n)[kind]
    conversation = Conversation(n)
    conversation.ask(KEY, kind_of(questions(1)[kind]))
    read = [read_client_message(raw) for raw in answer_messages(answer, KEY, 0.125)]
    evaluations = [message.evaluation for message in read if isinstance(message, AnswerSlice)]
    assert evaluations[1:] == [None] * (len(read) - 1)
    found = [conversation.receive(message) for message in read]
    assert found[:-1] == [None] * (len(read) - 1)
    assert isinstance(found[-1], Answered)
    assert (found[-1].key, found[-1].seconds, found[-1].fault) == (KEY, 0.125, None)
    same(found[-1].answer, answer)


def test_bytes_are_little_endian_float64() -> None:
    """1.0 and -2.0, as any language would read them."""
    assert pack(np.array([1.0, -2.0])).hex() == "000000000000f03f00000000000000c0"


def only(*entries: float) -> Part:
    """Return slices of a message with these entries."""
    return lambda _: pack(np.array(entries))


def test_interrupted_vector_is_noticed_and_can_be_cleared() -> None:
    """A slice at 0 does not continue a half; after clear() it starts over, and so it does after a whole."""
    assembly = Assembly(4, ["x"])
    assert not assembly.add(0, only(9.0, 9.0))
    with pytest.raises(ContractError, match="2 of 4 entries have arrived"):
        assembly.add(0, only(1.0, 2.0))
    assembly.clear()
    for _ in range(2):
        assert not assembly.add(0, only(1.0, 2.0))
        assert assembly.add(2, only(3.0, 4.0))
    np.testing.assert_array_equal(assembly.vectors["x"], [1.0, 2.0, 3.0, 4.0])


@pytest.mark.parametrize(
    ("offset", "parts"),
    [
        (1, [b"\0" * 8, b"\0" * 8]),
        (0, [b"\0" * 7, b"\0" * 7]),
        (0, [b"\0" * 8, b"\0" * 16]),
        (0, [b"\0" * 8]),
        (0, [b"", b""]),
        (0, [b"\0" * 40, b"\0" * 40]),
        (2**60, [b"\0" * 8, b"\0" * 8]),
    ],
    ids=["a gap", "half an entry", "uneven", "one missing", "empty", "too long", "far away"],
)
def test_slice_that_does_not_continue_is_refused(offset: int, parts: Sequence[bytes]) -> None:
    """Before a byte of it is used."""
    assembly = Assembly(4, ["x", "h"])
    before = {name: vector.copy() for name, vector in assembly.vectors.items()}
    with pytest.raises(ContractError, match="does not continue the vector"):
        assembly.add(offset, lambda name: dict(zip(("x", "h"), parts, strict=False)).get(name, b""))
    for name, vector_ in assembly.vectors.items():
        np.testing.assert_array_equal(vector_, before[name])


def test_evaluations_add_up() -> None:
    """Counts and sums; a client whose loss has no classes makes the count of correct rows unknown."""
    assert Evaluation.total([Evaluation(3, 2, 0.5), Evaluation(4, 1, 0.25)]) == Evaluation(7, 3, 0.75)
    assert Evaluation.total([Evaluation(3, None, 0.5), Evaluation(4, 1, 0.25)]) == Evaluation(7, None, 0.75)
    assert Evaluation.total([]) is None


@pytest.mark.parametrize("right", [0, None])
def test_no_correct_row_differs_from_an_unknown_count(right: int | None) -> None:
    """Also on the wire."""
    (raw,) = answer_messages(SolutionAnswer((1.0,), Evaluation(2, right, 1.0)), KEY, 0.0)
    message = read_client_message(raw)
    assert isinstance(message, AnswerSlice)
    assert message.evaluation == Evaluation(2, right, 1.0)
