"""The location problem: all methods find the same F, and a federation takes the rounds of one process."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import fism
from fism.paper import location
from fism.paper.contest import CONTESTANTS, FEDERATED
from fism.paper.literal import ball_distance, irig_ball_distance
from fism_common.errors import NumericalError

N, M = 3, 500


def test_methods_agree_on_f() -> None:
    """Each with its own rounds and times, on one instance, the same for the same numbers."""
    found = location.measure(N, M, 0)
    assert [one.method for one in found] == ["IR-IG", "S = 1", "S = 2", "S = 4", "S = 8"]
    F = [one.F for one in found]
    assert max(F) - min(F) <= location.AGREE * min(F)
    for one in found:
        assert 0 < one.critical <= one.seconds
        assert one.numpy > one.seconds
    assert [(one.rounds, one.F, one.H) for one in location.measure(N, M, 0)] == [
        (one.rounds, one.F, one.H) for one in found
    ]
    assert location.measure(N, M, 1)[0].F != found[0].F


def test_methods_that_do_not_agree_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """The table is not written with figures that compare different things."""
    monkeypatch.setattr(location, "AGREE", 1e-12)
    with pytest.raises(NumericalError, match="do not agree on F"):
        location.measure(N, M, 0)


@pytest.mark.long
def test_federation_takes_the_rounds_of_one_process_or_it_is_an_error() -> None:
    """Real client processes, the same rounds and the same F to the last bit."""
    two = FEDERATED[1]
    expected = next(one for one in location.measure(N, M, 0) if one.method == two.name)
    assert location.federate(N, M, two, expected) > 0
    with pytest.raises(NumericalError, match="over gRPC"):
        location.federate(N, M, two, replace(expected, rounds=expected.rounds + 1))


def test_literal_passes_are_the_methods() -> None:
    """What NumPy is timed on is what ours compute."""
    given = location.Instance.of(N, M, 0)
    gamma, weight = location.STEPS.gamma(1), location.STEPS.lam(1) / M
    rows, radii, x = np.asarray(given.balls.rows), given.balls.labels, given.start
    literal = {
        "fism": ball_distance(rows, radii, x, x - given.anchor, gamma, weight, 10.0),
        "ir-ig": irig_ball_distance(rows, radii, x, given.anchor, gamma, weight, 10.0),
    }
    for method, expected in literal.items():
        ours = fism.solve(given.problem, [given.balls], steps=location.STEPS, rounds=1, start=x, method=method).x
        np.testing.assert_allclose(ours, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.long
def test_quick_part_of_the_table_is_written_and_drawn(tmp_path: Path) -> None:
    """Ours beside the paper's, over gRPC too."""
    rows = location.location(tmp_path, quick=True)
    assert [(row.n, row.m) for row in rows] == [(10, 500)] * 5 + [(10, 1000)] * 5
    assert rows[5].paper == 42.88
    assert [row.grpc is not None for row in rows] == [False] * 6 + [True] * 4
    names = {"location.csv", "location.md", "location-runs.csv", "location-runs.md", "location.png", "location.svg"}
    assert {file.name for file in tmp_path.iterdir()} == names
    assert len((tmp_path / "location-runs.csv").read_text().splitlines()) == 1 + 2 * 2 * len(CONTESTANTS)
