"""Vectors on the wire."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fism_common.errors import ContractError
from fism_common.exchange import Evaluation, Order, Reply
from fism_common.wire.codec import (
    MESSAGE_LIMIT,
    SLICE,
    Assembly,
    closing_messages,
    from_message,
    order_messages,
    pack,
    reply_messages,
    slices,
)
from fism_common.wire.pb import federation_pb2 as pb

LONG = 3 * SLICE + 17


def order(n: int) -> Order:
    """Return an order of n columns."""
    x, h = np.random.default_rng(n).normal(size=(2, n))
    return Order(4, x, h, 0.25, 0.5)


@given(st.integers(1, 10**7), st.integers(1, 10**6))
def test_slices_cover_the_vector_once(n: int, size: int) -> None:
    """In order, without gap or overlap, none longer than the size."""
    parts = list(slices(n, size)) if n / size < 1000 else [slice(0, n)]
    assert parts[0].start == 0
    assert parts[-1].stop == n
    assert all(a.stop == b.start for a, b in pairwise(parts))


@pytest.mark.parametrize(("n", "count"), [(1, 1), (SLICE, 1), (SLICE + 1, 2), (LONG, 4)])
def test_order_is_one_message_while_it_fits_and_is_cut_beyond(n: int, count: int) -> None:
    """Each far below gRPC's limit; put together again they are the order."""
    given_order = order(n)
    messages = order_messages(given_order, attempt=2, evaluate=True)
    assert len(messages) == count
    assert max(map(len, messages)) < MESSAGE_LIMIT / 3
    assembly = Assembly(n, 2)
    for i, raw in enumerate(messages):
        part = pb.ServerMessage.FromString(raw).order
        assert (part.round, part.attempt, part.gamma, part.weight, part.evaluate) == (4, 2, 0.25, 0.5, True)
        assert assembly.add(part.offset, part.x, part.h) == (i == count - 1)
    np.testing.assert_array_equal(assembly.vectors, [given_order.x, given_order.h])


@pytest.mark.parametrize("n", [1, 2 * SLICE, LONG])
def test_reply_comes_back_whole(n: int) -> None:
    """With the round and attempt that it answers, and the evaluation once."""
    x = order(n).x
    evaluation = Evaluation(9, 7, 1.5)
    raw = reply_messages(Reply(x, 3.5), pb.Order(round=8, attempt=3), 0.125, evaluation)
    messages = [pb.ClientMessage.FromString(one) for one in raw]
    assembly = Assembly(n, 1)
    done = [assembly.add(message.reply.offset, message.reply.x) for message in messages]
    assert done == [False] * (len(messages) - 1) + [True]
    np.testing.assert_array_equal(assembly.vectors[0], x)
    first, last = messages[0].reply, messages[-1].reply
    assert (last.round, last.attempt, last.inner, last.seconds) == (8, 3, 3.5, 0.125)
    assert from_message(first.evaluation) == evaluation
    assert sum(message.reply.HasField("evaluation") for message in messages) == 1


def test_solution_comes_back_whole() -> None:
    """In the closing exchange."""
    x = order(LONG).x
    assembly = Assembly(LONG, 1)
    for raw in closing_messages(x):
        part = pb.ServerMessage.FromString(raw).closing
        assembly.add(part.offset, part.x)
    np.testing.assert_array_equal(assembly.vectors[0], x)


def test_bytes_are_little_endian_float64() -> None:
    """1.0 and -2.0, as any language would read them."""
    assert pack(np.array([1.0, -2.0])).hex() == "000000000000f03f00000000000000c0"


def test_vector_that_broke_off_is_noticed_and_can_be_cleared() -> None:
    """A slice at 0 does not continue a half; after clear() it begins anew, and so it does after a whole."""
    assembly = Assembly(4, 1)
    assert not assembly.add(0, pack(np.array([9.0, 9.0])))
    with pytest.raises(ContractError, match="2 of 4 entries are there"):
        assembly.add(0, pack(np.array([1.0, 2.0])))
    assembly.clear()
    for _ in range(2):
        assert not assembly.add(0, pack(np.array([1.0, 2.0])))
        assert assembly.add(2, pack(np.array([3.0, 4.0])))
    np.testing.assert_array_equal(assembly.vectors[0], [1.0, 2.0, 3.0, 4.0])


@pytest.mark.parametrize(
    ("offset", "parts"),
    [
        (1, [b"\0" * 8, b"\0" * 8]),
        (0, [b"\0" * 7, b"\0" * 7]),
        (0, [b"\0" * 8, b"\0" * 16]),
        (0, [b"", b""]),
        (0, [b"\0" * 40, b"\0" * 40]),
        (2**60, [b"\0" * 8, b"\0" * 8]),
    ],
    ids=["a gap", "half an entry", "uneven", "empty", "too long", "far away"],
)
def test_slice_that_does_not_continue_is_refused(offset: int, parts: list[bytes]) -> None:
    """Before a byte of it is used."""
    assembly = Assembly(4, 2)
    before = [vector.copy() for vector in assembly.vectors]
    with pytest.raises(ContractError, match="does not continue the vector"):
        assembly.add(offset, *parts)
    np.testing.assert_array_equal(assembly.vectors, before)


def test_evaluations_add_up() -> None:
    """Counts and sums; a client whose loss has no classes makes the count of right ones unknown."""
    assert Evaluation(3, 2, 0.5) + Evaluation(4, 1, 0.25) == Evaluation(7, 3, 0.75)
    assert (Evaluation(3, None, 0.5) + Evaluation(4, 1, 0.25)).right is None
    assert from_message(pb.Evaluation(rows=2, right=0, loss=1.0)) == Evaluation(2, 0, 1.0)
    assert from_message(pb.Evaluation(rows=2, loss=1.0)) == Evaluation(2, None, 1.0)
