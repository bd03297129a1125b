"""Messages that are written and read by hand are protobuf's own."""

from __future__ import annotations

import numpy as np
import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from fism_common.errors import ContractError
from fism_common.exchange import Evaluation
from fism_common.wire.codec import read_client_message, read_server_message
from fism_common.wire.framing import unwrap, wrap
from fism_common.wire.messages import AnswerSlice, Key, Leaving, QuestionSlice, SetupSlice
from fism_common.wire.pb import federation_pb2 as pb

X, H = pb.Question.X_FIELD_NUMBER, pb.Question.H_FIELD_NUMBER
heads = st.builds(
    pb.Question,
    round=st.integers(0, 2**64 - 1),
    attempt=st.integers(0, 2**32 - 1),
    gamma=st.floats(allow_nan=False),
    offset=st.integers(0, 2**40),
    evaluate=st.booleans(),
)


@given(heads, st.integers(0, 300), st.integers(0, 300))
def test_what_is_wrapped_is_what_protobuf_reads(head: pb.Question, n: int, m: int) -> None:
    """Any head, any lengths, also such whose length takes two bytes."""
    x, h = np.arange(n, dtype=float), np.arange(m, dtype=float)
    raw = wrap(pb.ServerMessage.QUESTION_FIELD_NUMBER, head, {X: x, H: h})
    expected = pb.Question()
    expected.CopyFrom(head)
    expected.x, expected.h = x.tobytes(), h.tobytes()
    assert pb.ServerMessage.FromString(raw) == pb.ServerMessage(question=expected)


@given(heads, st.binary(max_size=300), st.binary(max_size=300))
def test_what_protobuf_wrote_is_unwrapped(head: pb.Question, x: bytes, h: bytes) -> None:
    """The long fields apart, and the rest as it was."""
    whole = pb.Question()
    whole.CopyFrom(head)
    whole.x, whole.h = x, h
    rest, parts = unwrap(memoryview(whole.SerializeToString()), {"x": X, "h": H})
    assert pb.Question.FromString(rest) == head
    assert [bytes(parts.get(name, b"")) for name in ("x", "h")] == [x, h]


@pytest.mark.parametrize("size", [10, 100_000])
def test_short_and_long_messages_read_alike(size: int) -> None:
    """By protobuf, or by hand."""
    x, h = b"x" * size, b"h" * size
    asked = pb.Question(number=7, kind=pb.Question.PASS, gamma=0.5, x=x, h=h)
    question = read_server_message(pb.ServerMessage(question=asked).SerializeToString())
    assert isinstance(question, QuestionSlice)
    assert (question.key, question.gamma) == (Key(7, 0), 0.5)
    assert [bytes(question.part(name)) for name in ("x", "h")] == [x, h]
    said = pb.Answer(number=7, inner=[0.5, 2.0], points=x, evaluation=pb.Evaluation(rows=3, loss=0.5))
    answer = read_client_message(pb.ClientMessage(answer=said).SerializeToString())
    assert isinstance(answer, AnswerSlice)
    assert (answer.key, answer.inner, answer.evaluation) == (Key(7, 0), (0.5, 2.0), Evaluation(3, None, 0.5))
    assert [bytes(answer.part(name)) for name in ("points", "g")] == [x, b""]


def test_long_messages_of_other_kinds_are_read_too() -> None:
    """A long setup, and a long reason."""
    setup = pb.ServerMessage(setup=pb.Setup(vectors={"lo": b"x" * 100_000}))
    message = read_server_message(setup.SerializeToString())
    assert isinstance(message, SetupSlice)
    assert [message.part(name) for name in ("lo", "hi")] == [b"x" * 100_000, b""]
    leaving = pb.ClientMessage(leaving=pb.Leaving(reason="r" * 100_000))
    assert read_client_message(leaving.SerializeToString()) == Leaving("r" * 100_000)


def test_kind_that_this_version_does_not_know_is_refused() -> None:
    """As a newer server might ask."""
    with pytest.raises(ContractError, match="install the server's version"):
        read_server_message(pb.ServerMessage(question=pb.Question(number=1)).SerializeToString())


@pytest.mark.parametrize(
    "raw", [b"\x32\xff\xff\x7f", b"\x80" * 12, b"\x0f", b"\x09\0"], ids=["too long", "endless", "odd kind", "cut off"]
)
def test_what_is_no_message_is_refused(raw: bytes) -> None:
    """And never read beyond its end."""
    with pytest.raises(DecodeError):
        unwrap(memoryview(raw), {"x": X, "h": H})
