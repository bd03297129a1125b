"""What the documentation shows runs."""

from __future__ import annotations

import math
import re
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import fism

ROOT = Path(__file__).parents[2]
BLOCKS = [
    pytest.param(block, id=f"{page}-{i}")
    for page in (
        "README.md",
        "docs/mathematics.md",
        *sorted(f"docs/how-to/{p.name}" for p in ROOT.glob("docs/how-to/*")),
    )
    for i, block in enumerate(re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL))
]


@pytest.mark.parametrize("block", BLOCKS)
def test_python_block_runs(block: str) -> None:
    """Every Python block, with the usual names at hand."""
    exec(compile(block, "a block", "exec"), {"np": np, "math": math, "fism": fism})  # noqa: S102  # our own pages


def test_example_selects_the_preferred_model() -> None:
    """It shows a run that selects, and one without the preference that does not."""
    example = ROOT / "examples/selection.py"
    lines = subprocess.run([sys.executable, example], check=True, capture_output=True, text=True).stdout.splitlines()
    last = {line.split()[0]: float(line.split()[-1]) for line in lines if line.split()[1:2] == ["10000"]}
    assert last["fism"] < 0.1
    assert last["incremental"] > 5


def test_demo_shows_what_the_hospitals_gained() -> None:
    """`make demo`: a real federation, as right as its best hospital, with a smaller model than without preference."""
    demo = ROOT / "examples/hospitals/demo.py"
    shown = subprocess.run([sys.executable, demo], check=True, capture_output=True, text=True).stdout
    numbers = {name: float(number) for name, number in re.findall(r"^  (\S.*?\S) {2,}([0-9.]+)", shown, re.MULTILINE)}
    alone = [number for name, number in numbers.items() if name.endswith("alone")]
    assert len(alone) == 4
    assert numbers["the federation"] >= max(alone)
    assert numbers["with the preference"] < 0.5 * numbers["without (lambda = 0)"]


def test_links_between_pages_lead_somewhere() -> None:
    """Every relative link and picture of every page; `make docs` looks at headings too, and makes the reference."""
    made = {ROOT / f"docs/reference/{name}.md" for name in runpy.run_path(str(ROOT / "docs/generated.py"))["PAGES"]}
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]:
        for target in re.findall(r"\]\(([^)#]+)\)|src=\"([^\"]+)\"", page.read_text()):
            link = target[0] or target[1]
            if "://" not in link:
                assert (page.parent / link).exists() or page.parent / link in made, f"{page.name}: {link}"
