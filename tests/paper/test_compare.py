"""`fism compare`: the methods on one problem, against a solution that is given or FISM's own."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from fism.compare import compare
from fism.methods import Method
from fism_common.errors import ProblemError
from fism_server.problem.plan import read_plan

from ..federation.harness import federation, fism_command


def test_command_shows_all_methods_that_fit(tmp_path: Path) -> None:
    """One table and one plot; those that need a smooth H are left out by name."""
    given = federation(tmp_path, 2, rounds=20)
    done = fism_command("compare", given.config, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert "skipping explicit-descent: " in done.stderr
    with (tmp_path / "out/compare.csv").open() as file:
        rows = {row["method"]: row for row in csv.DictReader(file)}
    assert list(rows) == ["fism", "ir-ig", "tikhonov", "incremental", "(lowest F found; H of FISM after 400 rounds)"]
    assert all(float(row["F_gap"]) >= 0 for row in rows.values()), "no run is below what it is measured by"
    assert rows["fism"]["subgradients"] == str(20 * (10 + 1))
    assert float(rows["fism"]["F"]) == given.solve().inner
    assert {"compare.png", "compare.svg"} <= {file.name for file in (tmp_path / "out").iterdir()}


@pytest.mark.long
def test_gaps_are_to_the_reference_and_signed(tmp_path: Path) -> None:
    """H may be below the solution's where F is above: that is not better."""
    given = federation(tmp_path, 2, rounds=20)
    np.savez(tmp_path / "model.npz", x=given.solve(rounds=5).x)
    (row,) = compare(read_plan(given.config), tmp_path / "out", methods=[Method.FISM], reference=tmp_path / "model.npz")
    at = given.solve(rounds=5)
    assert row.F_gap == pytest.approx(row.F - at.inner, abs=1e-12)
    assert row.H_gap == pytest.approx(row.H - at.outer, abs=1e-12)
    assert row.F_gap < 0


def test_reference_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    """Of another length, or no array at all."""
    given = federation(tmp_path, 2, rounds=2)
    plan = read_plan(given.config)
    np.save(tmp_path / "short.npy", np.zeros(3))
    with pytest.raises(ProblemError, match="has 3 entries, but the rows have 5 columns"):
        compare(plan, tmp_path / "out", methods=[Method.FISM], reference=tmp_path / "short.npy")
    with pytest.raises(ProblemError, match=r"is not an \.npy file"):
        compare(plan, tmp_path / "out", methods=[Method.FISM], reference=given.config)


def test_method_that_there_is_not_is_told(tmp_path: Path) -> None:
    """With those that there are."""
    given = federation(tmp_path, 1)
    done = fism_command("compare", given.config, "--method", "adam")
    assert done.returncode == 2
    assert "there is no method 'adam'; there are fism, ir-ig" in done.stderr
