"""Every example does what its page says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DATA = ROOT.parent / "shared/data"


def run(name: str, folder: Path, **variables: str) -> str:
    """Run an example; return what it says."""
    command = [sys.executable, str(ROOT / "examples/run.py"), name, str(folder)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=110, check=False, env=os.environ | variables, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def number(pattern: str, text: str) -> float:
    """Return the number that is found."""
    match = re.search(pattern, text)
    assert match is not None, text
    return float(match[1])


@pytest.mark.long
def test_words_that_tell_have_the_largest_weights(tmp_path: Path) -> None:
    """All but a few of them."""
    assert number(r"largest weights (\d+) are telling", run("words", tmp_path)) >= 38


@pytest.mark.long
def test_depot_is_where_all_customers_reach_it(tmp_path: Path) -> None:
    """And as near to the motorway as that allows; on a map."""
    said = run("depots", tmp_path)
    assert "100% of 125 customers reach it" in said
    assert number(r"([\d.]+) km from the motorway", said) == pytest.approx(1.02, abs=0.01)
    assert (tmp_path / "depots.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.long
def test_promised_times_hold_nine_times_out_of_ten(tmp_path: Path) -> None:
    """On tours that nobody has seen."""
    assert number(r"new tours ([\d.]+)% took no longer", run("deliveries", tmp_path)) == pytest.approx(90, abs=2)


@pytest.mark.long
def test_score_stays_near_the_one_in_use_and_fits(tmp_path: Path) -> None:
    """Better on new rows than the one in use, and far better than the smallest that fits."""
    said = run("prior", tmp_path)
    rows = {
        name: number(rf"{name} +[\d.]+ +([\d.]+) ", said)
        for name in ("in use", "smallest that fits", "nearest to .*?use")
    }
    nearest, in_use, smallest = rows["nearest to .*?use"], rows["in use"], rows["smallest that fits"]
    assert 2 * nearest < in_use < smallest


@pytest.mark.long
@pytest.mark.skipif(not (DATA / "a1a.t.gz").exists(), reason="needs a1a of LIBSVM")
def test_eight_offices_learn_from_census_data(tmp_path: Path) -> None:
    """From the file as it comes."""
    said = run("adult", tmp_path, FISM_A1A=str(DATA / "a1a.t.gz"))
    assert number(r"accuracy ([\d.]+)", said) > 0.845
    assert number(r"AUC ([\d.]+)", said) > 0.9


@pytest.mark.long
@pytest.mark.skipif(not (DATA / "mnist").exists(), reason="needs MNIST")
def test_eight_post_offices_tell_threes(tmp_path: Path) -> None:
    """From MNIST's own files."""
    said = run("digits", tmp_path, FISM_DATA=str(DATA / "mnist"))
    assert number(r"accuracy ([\d.]+)", said) > 0.97


def test_every_example_has_a_page_and_a_configuration() -> None:
    """And is in the list of all."""
    folders = [folder for folder in (ROOT / "examples").iterdir() if folder.is_dir() and folder.name != "__pycache__"]
    listed = (ROOT / "examples/README.md").read_text()
    for folder in folders:
        page = (folder / "README.md").read_text()
        assert "**What is selected.**" in page
        assert (folder / f"{folder.name}.toml").exists()
        assert f"]({folder.name}/README.md)" in listed
