"""Where the time of a round goes."""

from __future__ import annotations

import numpy as np
import pytest

from fism_server.archive.timing import duration, split


def test_round_is_split_by_the_client_that_answers_last() -> None:
    """Its computing, what else it was waited for, and the rest: together the whole round."""
    rounds = np.array([[0.010, 0.005, 0.008], [0.020, 0.002, 0.018], [0.030, 0.003, 0.031]])
    np.testing.assert_allclose(split(rounds), [[0.005, 0.003, 0.002], [0.002, 0.016, 0.002], [0.003, 0.028, 0.0]])


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.01234, "0.0123 s"), (59.4, "59.4 s"), (61.0, "1 min 1 s"), (7260.0, "2 h 1 min")]
)
def test_duration_is_readable(seconds: float, text: str) -> None:
    """Three digits, then minutes, then hours."""
    assert duration(seconds) == text
