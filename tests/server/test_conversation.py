"""The protocol table, and the stream that keeps to it."""

from __future__ import annotations

import numpy as np
import pytest

from fism_client.session import states as client
from fism_common.errors import ContractError
from fism_common.exchange import PassAnswer
from fism_common.wire.messages import AnswerSlice, Key, Leaving, Opening, QuestionKind
from fism_common.wire.slices import pack
from fism_server.federation.conversation import TRANSITIONS, Answered, Conversation, Incoming, Stage

KEY = Key(1, 1)


def piece(key: Key = KEY, offset: int = 0, *entries: int) -> AnswerSlice:
    """Return a slice of an answer to a pass."""
    return AnswerSlice(key, 0.5, (2.0,), offset, lambda _: pack(np.array(entries or (1, 2))), None)


def asked(*keys: Key) -> Conversation:
    """Return a stream on which questions were asked."""
    conversation = Conversation(2)
    for key in keys:
        conversation.ask(key, QuestionKind.PASS)
    return conversation


def test_complete_answer_ends_the_question() -> None:
    """The same one again is a violation."""
    conversation = asked(KEY)
    found = conversation.receive(piece())
    assert isinstance(found, Answered)
    assert isinstance(found.answer, PassAnswer)
    np.testing.assert_array_equal(found.answer.points, [1, 2])
    assert conversation.stage is Stage.IDLE
    with pytest.raises(ContractError, match="which was not asked or is answered"):
        conversation.receive(piece())


def test_answer_to_a_later_attempt_ends_the_earlier_ones() -> None:
    """The earlier one may come before it, and not after."""
    conversation = asked(Key(1, 1), Key(1, 2))
    first = conversation.receive(piece(Key(1, 1)))
    assert isinstance(first, Answered)
    conversation = asked(Key(1, 1), Key(1, 2))
    conversation.receive(piece(Key(1, 2)))
    with pytest.raises(ContractError, match="was not asked or is answered"):
        conversation.receive(piece(Key(1, 1)))


def test_malformed_answer_is_complete_with_its_fault() -> None:
    """So that the question can be asked again, and answered."""
    conversation = asked(KEY)
    found = conversation.receive(piece(KEY, 1, 5))
    assert isinstance(found, Answered)
    assert found.answer is None
    assert "does not continue the vector" in str(found.fault)
    conversation.ask(KEY, QuestionKind.PASS)
    again = conversation.receive(piece())
    assert isinstance(again, Answered)
    assert again.fault is None


def test_slices_of_an_answer_come_one_after_another() -> None:
    """It is complete with the last."""
    conversation = asked(KEY)
    assert conversation.receive(piece(KEY, 0, 1)) is None
    assert conversation.stage is Stage.ASKED
    assert isinstance(conversation.receive(piece(KEY, 1, 2)), Answered)


def test_nothing_has_an_effect_after_goodbye() -> None:
    """Whatever comes."""
    conversation = asked(KEY)
    conversation.end()
    assert conversation.stage is Stage.ENDING
    for message in (piece(), piece(Key(7, 7)), Opening(b"", b""), Leaving("bye")):
        assert conversation.receive(message) is None


@pytest.mark.parametrize("conversation", [Conversation(2), asked(KEY)], ids=["idle", "asked"])
def test_second_opening_is_a_violation_and_leaving_is_allowed(conversation: Conversation) -> None:
    """As the table says."""
    with pytest.raises(ContractError, match="'Opening' is not allowed"):
        conversation.receive(Opening(b"", b""))
    assert conversation.receive(Leaving("bye")) == Leaving("bye")


def test_tables_are_complete() -> None:
    """Every stage but the last can end, and every message is in the table."""
    for stage in Stage:
        assert stage is Stage.ENDED or any(key[0] is stage and key[1] is Incoming.END for key in TRANSITIONS)
    assert {incoming for _, incoming in TRANSITIONS} == set(Incoming)
    assert {incoming for _, incoming in client.TRANSITIONS} == set(client.Incoming)
    reached = {transition.stage for transition in client.TRANSITIONS.values()}
    assert reached == set(client.Stage)
