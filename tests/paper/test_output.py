"""Tables and plots: all digits for programs, four for people, the same bytes for the same figure."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

import pytest

from fism.plotting import new_folder, plot, write_table
from fism_common.errors import ConfigError


@dataclass(frozen=True)
class Row:
    """A row of a table."""

    name: str
    some_seconds: float | None


def test_table_has_all_digits_in_csv_and_four_in_markdown(tmp_path: Path) -> None:
    """Columns line up, and what is not there is empty."""
    write_table(tmp_path, "t", [Row("a", 1 / 3), Row("long name", None)])
    with (tmp_path / "t.csv").open() as file:
        assert list(csv.DictReader(file)) == [
            {"name": "a", "some_seconds": repr(1 / 3)},
            {"name": "long name", "some_seconds": ""},
        ]
    assert (tmp_path / "t.md").read_text().splitlines() == [
        "|      name | some seconds |",
        "|----------:|-------------:|",
        "|         a |       0.3333 |",
        "| long name |              |",
    ]


def test_plot_is_written_as_png_and_svg_with_the_same_bytes_again(tmp_path: Path) -> None:
    """A figure in a document changes only if what it shows does."""
    for folder in (tmp_path / "1", tmp_path / "2"):
        with plot(new_folder(folder), "p", 2) as axes:
            axes[0].plot([1, 2], [3, 4], label="line")
            axes[1].set(xlabel="rounds")
    assert (tmp_path / "1/p.png").read_bytes().startswith(b"\x89PNG")
    assert b">rounds<" in (tmp_path / "1/p.svg").read_bytes()
    for name in ("p.png", "p.svg"):
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes()


def test_without_matplotlib_it_is_said_before_the_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not needed by a federation."""
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(ConfigError, match=r"pip install 'fism\[pictures\]'"):
        new_folder(tmp_path / "out")


def test_folder_that_cannot_be_made_is_told_before_the_runs(tmp_path: Path) -> None:
    """A file is in its place."""
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="cannot create the folder"):
        new_folder(tmp_path / "file/folder")
