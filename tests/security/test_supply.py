"""What the code itself does not do."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted(
    file for folder in ("common", "server", "client", "fism", "examples") for file in (ROOT / folder).rglob("*.py")
)
CODE_IN_DATA = {"pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib"}


def calls(tree: ast.AST, name: str) -> list[ast.Call]:
    """Return the calls of a method or function of this name."""
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and (getattr(node.func, "attr", None) == name or getattr(node.func, "id", None) == name)
    ]


@pytest.mark.parametrize("file", SOURCES, ids=lambda file: str(file.relative_to(ROOT)))
def test_no_code_is_read_from_data(file: Path) -> None:
    """No pickle in any form, arrays without objects, no eval."""
    tree = ast.parse(file.read_text())
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not {name.partition(".")[0] for name in imported} & CODE_IN_DATA
    for call in calls(tree, "load"):
        if isinstance(call.func, ast.Attribute) and getattr(call.func.value, "id", "") == "np":
            given = {keyword.arg: getattr(keyword.value, "value", None) for keyword in call.keywords}
            assert given.get("allow_pickle") is False, f"np.load in line {call.lineno}"
    assert not calls(tree, "eval")
    assert not calls(tree, "exec")
