"""Command-line options generated from settings fields: one declaration gives the key, the option and its help."""

from __future__ import annotations

import inspect
from functools import wraps
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Union, get_args, get_origin

import typer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pydantic.fields import FieldInfo

    from fism_common.settings import Settings


def options_of(
    model: type[Settings], names: Iterable[str] | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that adds a model's fields to a command as options: all of them, or those in ``names``.

    The command gets the options that were set in its parameter ``given``, by field name.
    """
    chosen = list(model.model_fields if names is None else names)

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = [one for one in inspect.signature(command, eval_str=True).parameters.values() if one.name != "given"]
        options = [_parameter(name, model.model_fields[name]) for name in chosen]

        @wraps(command)
        def call(**arguments: Any) -> None:  # noqa: ANN401  # as typer parsed them
            given = {name: value for name in chosen if (value := arguments.pop(name)) is not None}
            lists = {name for name in given if list in _kinds(model.model_fields[name].annotation)}
            split = {name: given[name].split(",") for name in lists}
            command(given=given | split, **arguments)

        parameters = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in (*own, *options)]
        call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        call.__annotations__ = {one.name: one.annotation for one in parameters}
        return call

    return decorate


def _parameter(name: str, field: FieldInfo) -> inspect.Parameter:
    kinds = _kinds(field.annotation)
    kind = next((kind for kind in (bool, int, float) if kinds - {type(None)} == {kind}), str)
    flag = [f"--{name.replace('_', '-')}"] if kind is bool else []
    option = typer.Option(*flag, help=field.description)
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kind | None, option]
    )


def _kinds(annotation: Any) -> set[type]:  # noqa: ANN401  # a field may have any annotation
    """Return the plain types of an annotation."""
    if get_origin(annotation) is Annotated:
        return _kinds(get_args(annotation)[0])
    if get_origin(annotation) in {Union, UnionType}:
        return set().union(*map(_kinds, get_args(annotation)))
    return {get_origin(annotation) or annotation}
