"""Messages that are written and read by hand are protobuf's own."""

from __future__ import annotations

import numpy as np
import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from fism_common.wire.codec import read_client_message, read_server_message
from fism_common.wire.framing import unwrap, wrap
from fism_common.wire.pb import federation_pb2 as pb

X, H = pb.Order.X_FIELD_NUMBER, pb.Order.H_FIELD_NUMBER
heads = st.builds(
    pb.Order,
    round=st.integers(0, 2**64 - 1),
    attempt=st.integers(0, 2**32 - 1),
    gamma=st.floats(allow_nan=False),
    offset=st.integers(0, 2**40),
    evaluate=st.booleans(),
)


@given(heads, st.integers(0, 300), st.integers(0, 300))
def test_what_is_wrapped_is_what_protobuf_reads(head: pb.Order, n: int, m: int) -> None:
    """Any head, any lengths, also such whose length takes two bytes."""
    x, h = np.arange(n, dtype=float), np.arange(m, dtype=float)
    raw = wrap(pb.ServerMessage.ORDER_FIELD_NUMBER, head, {X: x, H: h})
    expected = pb.Order()
    expected.CopyFrom(head)
    expected.x, expected.h = x.tobytes(), h.tobytes()
    assert pb.ServerMessage.FromString(raw) == pb.ServerMessage(order=expected)


@given(heads, st.binary(max_size=300), st.binary(max_size=300))
def test_what_protobuf_wrote_is_unwrapped(head: pb.Order, x: bytes, h: bytes) -> None:
    """The long fields apart, and the rest as it was."""
    whole = pb.Order()
    whole.CopyFrom(head)
    whole.x, whole.h = x, h
    rest, parts = unwrap(memoryview(whole.SerializeToString()), (X, H))
    assert pb.Order.FromString(rest) == head
    assert [bytes(part) for part in parts] == [x, h]


@pytest.mark.parametrize("size", [10, 100_000])
def test_short_and_long_messages_read_alike(size: int) -> None:
    """By protobuf, or by hand."""
    x, h = b"x" * size, b"h" * size
    evaluation = pb.Evaluation(rows=3, loss=0.5)
    order = pb.ServerMessage(order=pb.Order(round=7, gamma=0.5, x=x, h=h))
    reply = pb.ClientMessage(reply=pb.Reply(round=7, inner=0.5, x=x, evaluation=evaluation))
    message, *parts = read_server_message(order.SerializeToString())
    assert (message.order.round, message.order.gamma, [bytes(part) for part in parts]) == (7, 0.5, [x, h])
    answer, part = read_client_message(reply.SerializeToString())
    assert (answer.reply.round, answer.reply.inner, answer.reply.evaluation, bytes(part)) == (7, 0.5, evaluation, x)


def test_long_messages_of_other_kinds_are_read_too() -> None:
    """A long closing, and a long name of a reason."""
    closing = pb.ServerMessage(closing=pb.Closing(x=b"x" * 100_000))
    assert read_server_message(closing.SerializeToString())[0] == closing
    leaving = pb.ClientMessage(leaving=pb.Leaving(reason="r" * 100_000))
    assert read_client_message(leaving.SerializeToString())[0] == leaving


@pytest.mark.parametrize(
    "raw", [b"\x32\xff\xff\x7f", b"\x80" * 12, b"\x0f", b"\x09\0"], ids=["too long", "endless", "odd kind", "cut off"]
)
def test_what_is_no_message_is_refused(raw: bytes) -> None:
    """And never read beyond its end."""
    with pytest.raises(DecodeError):
        unwrap(memoryview(raw), (X, H))
