"""Where the time of a round goes."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fism_server.archive.timing import Times, pack_times, took

ROUNDS = [
    (0.010, pack_times([(0.001, 0.004), (0.005, 0.008)])),
    (0.020, pack_times([(0.002, 0.018), (0.005, 0.007)])),
    (0.030, pack_times([(0.003, 0.028), (0.006, 0.009)])),
]


def test_round_is_split_by_the_client_that_answers_last() -> None:
    """Its computing, what else was waited for it, and the rest: together the whole round."""
    times = Times.of(["a", "b"], ROUNDS)
    np.testing.assert_allclose(
        times.split(), [[0.005, 0.003, 0.002], [0.002, 0.016, 0.002], [0.003, 0.025, 0.002]], rtol=1e-6
    )
    assert times.median_split() == pytest.approx({"client": 3.0, "network": 16.0, "server": 2.0})


def test_each_client_has_its_own_medians() -> None:
    """Of all rounds, whoever answered last."""
    times = Times.of(["a", "b"], ROUNDS)
    assert times.medians_of("a") == pytest.approx({"compute_ms": 2.0, "network_ms": 16.0})
    assert times.medians_of("b") == pytest.approx({"compute_ms": 5.0, "network_ms": 3.0})


@pytest.mark.parametrize(("said", "kept"), [(0.25, 0.25), (7.0, 0.5), (math.inf, 0.5), (-1.0, 0.0), (math.nan, 0.0)])
def test_client_cannot_claim_more_than_it_was_waited_for(said: float, kept: float) -> None:
    """What a client says of its time is its word; the server's clock bounds it."""
    assert took(said, 0.5) == (kept, 0.5)
