"""The front door: every public name, and nothing heavy before it is needed."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import fism

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [*ROOT.glob("examples/**/*.py"), ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")]
)


def run(code: str) -> str:
    """Return what ``code`` prints in a new Python."""
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip()


def test_importing_fism_imports_nothing_heavy() -> None:
    """Numba and scipy wait for the first solve; so does the compiler when a problem is only written down."""
    code = "import sys, fism; fism.Problem('hinge', fism.Box(0, 1), fism.SquaredNorm()); print(*sys.modules)"
    loaded = set(run(code).split())
    assert "fism_server.problem.outer" in loaded
    assert not loaded & {"numba", "llvmlite", "scipy", "grpc"}


def test_dense_rows_do_not_import_sparse_ones() -> None:
    """scipy.sparse is loaded by those who have it already."""
    code = (
        "import sys, fism; fism.solve(fism.Problem('hinge', fism.Box(0, 1), fism.SquaredNorm()), [([[1.0]], [1.0])], "
        "steps=fism.PowerSteps(0.1, 0.7, 1, 0.2), rounds=1); print('scipy.sparse' in sys.modules)"
    )
    assert run(code) == "False"


def test_every_public_name_is_there() -> None:
    """The list, the lazy table and what can be fetched are one."""
    names = vars(fism)["__getattr__"]("__all__")
    for name in names:
        assert getattr(fism, name).__name__ == name
    assert (
        {"solve", "Problem", "Logistic", "Box", "ElasticNet", "PowerSteps", "FismError"} <= set(names) <= set(dir(fism))
    )


def test_star_import_has_every_public_name() -> None:
    """And nothing else."""
    code = "before = set(globals()); from fism import *; print(sorted(set(globals()) - before - {'before'}))"
    assert run(code) == str(sorted(vars(fism)["__getattr__"]("__all__")))


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_examples_and_pages_import_only_the_public_package(page: Path) -> None:
    """What they use, a reader may use."""
    text = page.read_text()
    blocks = [text] if page.suffix == ".py" else re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    for block in blocks:
        for node in ast.walk(ast.parse(block)):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
                if node.module == "fism":
                    assert {alias.name for alias in node.names} <= set(vars(fism)["__getattr__"]("__all__"))
            assert not [name for name in names if name.startswith(("fism.", "fism_"))]


def test_unknown_name_is_an_attribute_error() -> None:
    """As of any module."""
    with pytest.raises(AttributeError, match="no attribute 'nonesuch'"):
        fism.nonesuch  # type: ignore[attr-defined]  # noqa: B018


def test_version_is_the_distribution_s() -> None:
    """One number, in two files."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert fism.__version__ == project["version"]
