"""The structure that docs/architecture.md describes is the structure that there is."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/architecture.md").read_text()
MODULES = [
    file
    for top in ("common/fism_common", "server/fism_server", "client/fism_client", "fism")
    for file in sorted((ROOT / top).rglob("*.py"))
    if "pb" not in file.parts
]
MOST_LINES, MOST_MEMBERS = 300, 12


def test_path_of_a_round_leads_through_functions_that_exist() -> None:
    """Every `file:function` in the list."""
    steps = re.findall(r"^\d+\. `([^`:]+):([^`]+)`", PAGE, re.MULTILINE)
    assert len(steps) > 10
    for file, name in steps:
        *outer, function = name.split(".")
        body: list[ast.stmt] = ast.parse((ROOT / file).read_text()).body
        for one in outer:
            body = next(node.body for node in body if isinstance(node, ast.ClassDef) and node.name == one)
        functions = {node.name for node in body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))}
        assert function in functions, f"{file}:{name}"


def test_changes_name_files_that_exist() -> None:
    """Every path in the table of changes."""
    table = PAGE[PAGE.index("## Where to make a change") :]
    paths = re.findall(r"`((?:common|server|client|proto|fism)/[\w./-]+)`", table)
    assert len(paths) > 15
    for path in paths:
        assert (ROOT / path).exists(), path


@pytest.mark.parametrize("file", MODULES, ids=lambda file: str(file.relative_to(ROOT)))
def test_module_is_of_one_idea(file: Path) -> None:
    """Or at least short."""
    assert len(file.read_text().splitlines()) <= MOST_LINES


def crowded() -> Iterator[tuple[Path, ast.ClassDef, int, int]]:
    """Yield classes with many methods or attributes."""
    for file in MODULES:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ClassDef):
                methods = [one for one in node.body if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef))]
                plain = [one.name for one in methods if not (one.name.startswith("__") and one.name.endswith("__"))]
                own = {
                    target.attr
                    for one in methods
                    for inner in ast.walk(one)
                    if isinstance(inner, (ast.Assign, ast.AnnAssign))
                    for target in _targets(inner)
                    if isinstance(target.value, ast.Name) and target.value.id == "self"
                }
                if len(plain) > MOST_MEMBERS or len(own) > MOST_MEMBERS:
                    yield file, node, len(plain), len(own)


def _targets(node: ast.Assign | ast.AnnAssign) -> list[ast.Attribute]:
    """Return the attributes that an assignment sets."""
    given = node.targets if isinstance(node, ast.Assign) else [node.target]
    parts = [part for one in given for part in (one.elts if isinstance(one, ast.Tuple) else [one])]
    return [part for part in parts if isinstance(part, ast.Attribute)]


def test_crowded_class_gives_its_reason() -> None:
    """Over twelve methods or attributes: the docstring says why ("more than twelve")."""
    for file, node, methods, attributes in crowded():
        reason = ast.get_docstring(node) or ""
        assert "more than twelve" in " ".join(reason.split()), (
            f"{file.relative_to(ROOT)}: {node.name} has {methods} methods and {attributes} attributes"
        )
