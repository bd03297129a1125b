"""The pages in reference/, made from the code before the site is built."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from enum import Enum
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, get_args

import typer
from pydantic import BaseModel

import fism
from fism.cli.main import app
from fism_client.config import ClientConfig
from fism_common.errors import FismError
from fism_server.problem.config import RunConfig

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sphinx.application import Sphinx

FOLDER = Path(__file__).parent / "reference"


def setup(site: Sphinx) -> dict[str, Any]:
    """Take part in a build."""
    site.connect("builder-inited", lambda _: write())
    return {"parallel_read_safe": True}


def write() -> None:
    """Write all pages; one that is as it was is left alone, so that it is not built again."""
    FOLDER.mkdir(exist_ok=True)
    for name, page in PAGES.items():
        file, text = FOLDER / f"{name}.md", "\n".join(page()) + "\n"
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")


def commands() -> Iterator[str]:
    """Yield the page of every command, its arguments and options."""
    yield "# Commands\n"
    yield "Exit codes of all: 0 done, 2 usage or configuration, 3 refused, 4 stopped, 130 interrupted.\n"
    yield from _group(typer.main.get_command(app), "fism")


def _group(command: Any, name: str) -> Iterator[str]:  # noqa: ANN401  # of a library within typer
    for child_name, child in sorted(command.commands.items()):
        full = f"{name} {child_name}"
        if hasattr(child, "commands"):
            yield from _group(child, full)
        else:
            yield from _command(child, full)


def _command(command: Any, name: str) -> Iterator[str]:  # noqa: ANN401
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    options = [one for one in command.params if one.param_type_name == "option" and not one.hidden]
    names = [one.name.upper() if one.required else f"[{one.name.upper()}]" for one in arguments]
    yield f"## {name}\n\n```\n{' '.join([name, *names, *(['[OPTIONS]'] if options else [])])}\n```\n"
    yield _text(command.help)
    rows = [(one.name.upper(), "", one) for one in arguments]
    rows += [(", ".join(one.opts), one.metavar or _kind(one), one) for one in options]
    if rows:
        yield "| | | | default |\n|---|---|---|---|"
        for told, value, one in rows:
            code = f"`{told}`"
            yield f"| {code} | {_cell(value)} | {_cell(one.help or '')} | {_default(one)} |"
        yield ""


def _kind(option: Any) -> str:  # noqa: ANN401
    if option.is_flag:
        return ""
    kinds = [
        one
        for one in (option.type_descriptor.annotation, *get_args(option.type_descriptor.annotation))
        if inspect.isclass(one)
    ]
    kind = next(one for one in kinds if one not in {list, NoneType})
    if issubclass(kind, Enum):
        return " or ".join(str(one) for one in kind)
    return {int: "NUMBER", float: "NUMBER", Path: "PATH"}.get(kind, "TEXT")


def _default(option: Any) -> str:  # noqa: ANN401
    value = option.default
    if isinstance(option.show_default, str):
        return _cell(option.show_default)
    if option.required or value in (None, [], (), "", False) or callable(value):
        return ""
    return f"`{value}`"


def configuration() -> Iterator[str]:
    """Yield the page of every key of a run's file and of a client's."""
    yield "# Configuration\n"
    yield "## A run: `fism server RUN.toml`, `fism run RUN.toml`\n"
    yield "Any key is overridden by `--set table.key=value`. Relative paths are relative to the file.\n"
    for name, field in RunConfig.model_fields.items():
        model = _model_of(field.annotation)
        yield f"### `[{name}]`\n\n{_text(inspect.getdoc(model))}\n"
        yield from _keys(model)
    yield "## A client: `fism client CLIENT.toml`\n"
    yield "The same as the options of `fism client`, which override them.\n"
    yield from _keys(ClientConfig)


def _keys(model: type[BaseModel]) -> Iterator[str]:
    told = _attribute_docstrings(model)
    yield "| key | what | default |\n|---|---|---|"
    for name, field in model.model_fields.items():
        key = field.alias or name
        default = "required" if field.is_required() else "" if field.default_factory else _value(field.default)
        yield f"| `{key}` | {_cell(told.get(name, ''))} | {default} |"
    yield ""


def _value(default: object) -> str:
    if default is None:
        return ""
    shown = {True: "true", False: "false"}.get(default, default) if isinstance(default, bool) else default
    return f'`"{shown}"`' if isinstance(shown, str) and not isinstance(default, bool) else f"`{shown}`"


def _model_of(annotation: Any) -> type[BaseModel]:  # noqa: ANN401
    found = [one for one in (annotation, *getattr(annotation, "__args__", ())) if inspect.isclass(one)]
    return next(one for one in found if issubclass(one, BaseModel))


def _attribute_docstrings(model: type[BaseModel]) -> dict[str, str]:
    """Return what stands below each attribute of a class and of those that it is made of."""
    found: dict[str, str] = {}
    for kind in reversed(model.__mro__):
        if kind is BaseModel or not issubclass(kind, BaseModel):
            continue
        body = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]
        assert isinstance(body, ast.ClassDef)
        for one, below in zip(body.body, body.body[1:], strict=False):
            if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name):
                text = (
                    below.value.value if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant) else ""
                )
                found[one.target.id] = inspect.cleandoc(str(text))
    return found


def api() -> Iterator[str]:
    """Yield the page of every public name."""
    yield "# Python\n\nEverything below is in the module `fism`.\n"
    things = [(name, getattr(fism, name)) for name in vars(fism)["__getattr__"]("__all__")]
    errors = [name for name, thing in things if inspect.isclass(thing) and issubclass(thing, FismError | Warning)]
    for name, thing in sorted(things, key=lambda one: (one[0] in errors, not one[0].islower(), one[0])):
        yield f"## {name}\n\n```python\n{_signature(name, thing)}\n```\n\n{_text(inspect.getdoc(thing))}\n"
        if inspect.isclass(thing) and name not in errors:
            yield from _members(name, thing)


def _members(name: str, kind: type) -> Iterator[str]:
    for member, value in vars(kind).items():
        if member.startswith("_"):
            continue
        if isinstance(value, property):
            told = f"`{name}.{member}`"
        elif callable(value) or isinstance(value, classmethod | staticmethod):
            told = f"`{_signature(member, getattr(kind, member))}`"
        else:
            continue
        document = inspect.getdoc(getattr(kind, member)) or ""
        if document:
            yield f"* {told}: {_text(document).partition(chr(10) * 2)[0]}"
    yield ""


def _signature(name: str, thing: object) -> str:
    try:
        shown = str(inspect.signature(thing)) if callable(thing) else ""
    except ValueError:
        return name
    shown = re.sub(r"((?:: |-> ))'([^']*)'", r"\1\2", shown).removesuffix(" -> None")  # annotations are strings there
    return f"{name}{shown}".replace("(self, ", "(").replace("(self)", "()")


def _text(docstring: str | None) -> str:
    """Return a docstring as Markdown: code as it is, all else as plain text."""
    text = inspect.cleandoc(docstring or "")
    lines = ["", *text.replace("::\n", ":\n").splitlines()]
    shown = [line if line.startswith("    ") else _plain(line) for line in lines]
    return "\n".join(shown).strip()


def _plain(line: str) -> str:
    code = re.split(r"(``?[^`]+``?)", line)
    return "".join(re.sub(r"([*_<>\[\]\\])", r"\\\1", part) if i % 2 == 0 else part for i, part in enumerate(code))


def _cell(text: str) -> str:
    return _plain(" ".join(text.split())).replace("|", r"\|")


PAGES = {"commands": commands, "configuration": configuration, "api": api}
