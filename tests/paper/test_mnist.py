"""Zeros and ones: the course of every method, and on the real images the paper's accuracy."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from fism.paper import mnist
from fism.paper.contest import CONTESTANTS

from .test_digits import write_digits

REAL = Path(os.environ.get("FISM_DATA", Path(__file__).parents[3] / "shared/data/mnist"))
METHODS = [one.name for one in CONTESTANTS]


def test_course_has_a_point_before_every_round_and_the_end(tmp_path: Path) -> None:
    """Accuracy, loss and both times; a problem that a line separates is learnt by all."""
    courses = mnist.follow(write_digits(tmp_path / "mnist"), 40, 0)
    assert [one.method for one in courses] == METHODS
    for one in courses:
        assert {array.size for array in (one.loss, one.accuracy, one.seconds, one.critical)} == {mnist.ROUNDS + 1}
        assert one.loss[-1] < 0.1 * one.loss[0]
        assert one.accuracy[-1] > 0.95
        assert (np.diff(one.seconds) > 0).all()
        assert one.critical[-1] <= one.seconds[-1]


@pytest.mark.long
def test_tables_and_plots_are_written(tmp_path: Path) -> None:
    """With means over runs, for every size and method."""
    data = write_digits(tmp_path / "mnist", count=1500, side=2)
    finals = mnist.mnist(tmp_path / "out", data, quick=True, runs=1)
    assert [one.method for one in finals] == METHODS
    tables = {
        f"{name}.{kind}" for name in ("mnist", "mnist-time", "mnist-rounds", "mnist-lead") for kind in ("csv", "md")
    }
    plots = {f"mnist-{name}.{kind}" for name in ("time", "accuracy", "loss") for kind in ("png", "svg")}
    assert {file.name for file in (tmp_path / "out").iterdir()} == tables | plots
    assert len((tmp_path / "out/mnist-rounds.csv").read_text().splitlines()) == 1 + len(METHODS) * (mnist.ROUNDS + 1)


def test_lead_is_counted_at_the_same_moments() -> None:
    """A run that is twice as fast and loses as much a round is ahead until both have ended; not one that is as fast."""
    names = {"S = 4": 0.5, "S = 8": 1.0, "IR-IG": 1.0, "S = 1": 1.0, "S = 2": 1.0}
    points = [
        mnist.Point(name, k, k * pace, 0.0, 1000.0 - k, 0.0, 0.0, 1.0, 0.0, 0.0)
        for name, pace in names.items()
        for k in range(mnist.ROUNDS + 1)
    ]
    found = {(lead.faster, lead.slower): (lead.ahead, lead.moments) for lead in mnist.leads(points)}
    assert found["S = 4", "IR-IG"] == (50, 50)
    assert found["S = 8", "S = 2"] == (0, 50)


@pytest.mark.long
@pytest.mark.skipif(not REAL.is_dir(), reason=f"there is no MNIST in {REAL}; FISM_DATA names its folder")
def test_real_images_are_told_apart() -> None:
    """After 200 rounds on all 11000: mean accuracy of 0.998 on the 2115 others, for every number of clients."""
    runs = [mnist.follow(REAL, 11_000, run) for run in range(2)]
    for i in range(1, len(METHODS)):
        assert np.mean([run[i].accuracy[-1] for run in runs]) >= 0.998, METHODS[i]
