"""Configuration files: TOML, overridden key by key, checked by pydantic, with errors that name file and key."""

from __future__ import annotations

import importlib
import sys
import tomllib
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fism_common.errors import ConfigError
from fism_common.vectors import Vector, vector

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

Entries = Annotated[str | list[float], Field(union_mode="left_to_right")]
"""A vector: the path of an .npy file, or its entries."""


class Settings(BaseModel):
    """A part of a configuration: immutable, and unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


S = TypeVar("S", bound=Settings)


def read(model: type[S], file: Path | None, overrides: Sequence[str] = (), options: dict[str, Any] | None = None) -> S:
    """Return ``file`` as a ``model``, after applying ``overrides`` of the form a.b=value, then ``options`` by name.

    Raises ConfigError that names the file, the key, and what is allowed there.
    """
    table = {} if file is None else _read_toml(file)
    return check(model, table, "the options" if file is None else str(file), overrides, options)


def check(
    model: type[S],
    table: dict[str, Any],
    name: str,
    overrides: Sequence[str] = (),
    options: dict[str, Any] | None = None,
) -> S:
    """Return ``table`` as a ``model``; ``name`` names its origin in errors."""
    for override in overrides:
        _put(table, override)
    table |= {key: value for key, value in (options or {}).items() if value is not None}
    try:
        return model.model_validate(table)
    except ValidationError as error:
        raise ConfigError("\n".join(f"{name}: {line}" for line in _lines(error))) from error


def _read_toml(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot read {file}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file} is not valid TOML: {error}") from error


def _put(table: dict[str, Any], override: str) -> None:
    """Set one key, given as a.b=value; a value that is not TOML is used as text."""
    path, equals, text = override.partition("=")
    if not equals or not path.strip():
        raise ConfigError(f"--set needs KEY=VALUE, such as steps.gamma=5, not {override!r}")
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text
    *parents, last = path.strip().split(".")
    for parent in parents:
        table = table.setdefault(parent, {})
        if not isinstance(table, dict):
            raise ConfigError(f"--set {override}: {parent} is a value, not a table")
    table[last] = value


def _lines(error: ValidationError) -> list[str]:
    lines = []
    for problem in error.errors(include_url=False):
        key = ".".join(str(part) for part in problem["loc"]) or "the file"
        given = "" if problem["type"] == "missing" else f", not {problem['input']!r}"
        text = problem["msg"].removeprefix("Value error, ")
        known = {"extra_forbidden": "there is no such key", "missing": "is missing"}.get(problem["type"])
        lines.append(f"{key}: {known or text + given}")
    return lines


def load_vector(entries: Entries, folder: Path, what: str) -> Vector:
    """Return a vector from its entries, or from an .npy file relative to ``folder``."""
    return vector(load_array(entries, folder, what), what, ConfigError)


def load_array(entries: Entries | list[list[float]], folder: Path, what: str) -> np.ndarray[Any, np.dtype[Any]]:
    """Return an array from its entries, or from an .npy file relative to ``folder``; never a pickle."""
    if not isinstance(entries, str):
        return np.array(entries)
    path = folder / entries
    try:
        return np.asarray(np.load(path, allow_pickle=False))
    except OSError as error:
        raise ConfigError(f"{what}: cannot read {path}: {error.strerror or error}") from error
    except ValueError as error:
        raise ConfigError(f"{what}: {path} is not an .npy file of numbers: {error}") from error


def load_object(name: str, folder: Path, kind: type[object] | None = None) -> Any:  # noqa: ANN401  # user code
    """Return the object ``module:Name`` from a module in ``folder`` or on the Python path; never from the network."""
    module, _, attribute = name.partition(":")
    sys.path.insert(0, str(folder))
    try:
        found = getattr(importlib.import_module(module), attribute)
    except ImportError as error:
        raise ConfigError(f"{name}: cannot import {module!r} from {folder} or the Python path: {error}") from error
    except AttributeError as error:
        raise ConfigError(f"{name}: {error}") from error
    finally:
        sys.path.remove(str(folder))
    if kind is not None and not isinstance(found, kind):
        raise ConfigError(f"{name} must be a {kind.__name__}, not {found!r}")
    return found
