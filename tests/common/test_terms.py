"""The public problem on the wire."""

from __future__ import annotations

import numpy as np
import pytest

import fism
from fism_common.data.columns import Column, Kind, Missing, Recipe, Standardise, Unknown
from fism_common.errors import ContractError, ProblemError
from fism_common.joining import JoinRequest, Status, Terms
from fism_common.problem.registry import Variant, parameters_of, variant_of, vectors_of
from fism_common.problem.sets import SETS, ConstraintSet
from fism_common.wire.codec import read_server_message, setup_messages
from fism_common.wire.messages import SetupSlice
from fism_common.wire.slices import SLICE, Assembly
from fism_common.wire.terms import (
    read_join_request,
    read_status,
    read_terms,
    write_join_request,
    write_status,
    write_terms,
)

LONG = SLICE + 5
GIVEN: dict[str, ConstraintSet] = {
    "box": fism.Box(-1.5, 0.0),
    "box with one vector": fism.Box(-1.0, np.linspace(0, 1, LONG)),
    "box of vectors": fism.Box(np.linspace(-1, 0, LONG), np.linspace(0, 1, LONG)),
    "ball": fism.Ball(2.5),
    "ball with vector": fism.Ball(2.5, np.linspace(0, 1, LONG)),
    "simplex": fism.Simplex(3.0),
    "l1-ball": fism.L1Ball(4.0),
}
RECIPE = Recipe(
    features=(Column("age", Kind.NUMBER), Column("sex", Kind.TEXT)),
    levels={"sex": ("f", "m")},
    unknown=Unknown.OTHER,
    missing=0.5,
    intercept=True,
    standardise=Standardise.FULL,
)


def terms(constraint: Variant) -> Terms:
    """Return terms with a given set."""
    loss = Variant("huber", {"delta": 0.5})
    return Terms(run_id="r", loss=loss, constraint=constraint, recipe=RECIPE, round=7, version="1", token=b"t")


@pytest.mark.parametrize("name", GIVEN)
def test_set_arrives_as_it_was(name: str) -> None:
    """Numbers in the terms, vectors in slices."""
    constraint = GIVEN[name]
    arrived = read_terms(write_terms(terms(variant_of(constraint)))).constraint
    assembly = Assembly(LONG, arrived.vectors)
    for raw in setup_messages(vectors_of(constraint)):
        message = read_server_message(raw)
        assert isinstance(message, SetupSlice)
        assembly.add(message.offset, message.part)
    made = SETS.from_variant(arrived, assembly.vectors)
    assert type(made) is type(constraint)
    for key, value in parameters_of(constraint).items():
        np.testing.assert_array_equal(getattr(made, key), value)
    assert bool(arrived.vectors) == ("vector" in name)


def test_terms_arrive_as_they_were() -> None:
    """Loss, recipe, round and all."""
    given = terms(Variant("box", {"lo": -1.0, "hi": 1.0}))
    assert read_terms(write_terms(given)) == given


@pytest.mark.parametrize("missing", [Missing.REFUSE, Missing.MEAN, 0.0])
def test_missing_numbers_have_one_meaning(missing: Missing | float) -> None:
    """Also a fill of 0, which protobuf would leave out."""
    given = Terms(run_id="", loss=Variant("hinge"), constraint=Variant("box"), recipe=Recipe(missing=missing))
    assert read_terms(write_terms(given)).recipe.missing == missing


def test_request_and_status_arrive_as_they_were() -> None:
    """All fields."""
    request = JoinRequest(
        name="north",
        rows=9,
        columns=2,
        virtual_clients=3,
        token=b"t",
        schema=RECIPE.features,
        version="1",
        dry_run=True,
    )
    assert read_join_request(write_join_request(request)) == request
    assert read_status(write_status(Status("r", 3, 1, 2))) == Status("r", 3, 1, 2)


def test_unknown_set_is_refused() -> None:
    """As a newer server might send it."""
    with pytest.raises(ProblemError, match="there is no constraint 'cone'; there are box, ball"):
        SETS.from_variant(Variant("cone"), {})


def test_bytes_that_are_not_a_message_are_refused() -> None:
    """With the reason."""
    with pytest.raises(ContractError, match="not a message of the protocol"):
        read_terms(b"\xff")
