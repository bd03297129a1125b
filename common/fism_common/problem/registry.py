"""Families of objects that a configuration, a message or a report names by kind and parameters."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from fism_common.errors import ProblemError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from fism_common.vectors import Vector

T = TypeVar("T")


@dataclass(frozen=True)
class Variant:
    """An object on the wire: its kind, its numbers, and the names of its vectors, which follow in slices."""

    kind: str
    numbers: Mapping[str, float] = field(default_factory=dict)
    vectors: tuple[str, ...] = ()


class Family(Generic[T]):
    """The built-in classes of one family, by their ``kind``."""

    def __init__(self, what: str, classes: Sequence[type[T]], aliases: Mapping[str, str] | None = None) -> None:
        """Take the family's name in errors, and its classes, each with a text attribute ``kind``.

        ``aliases`` map names in configurations that are Python keywords to the names of parameters.
        """
        self._what = what
        self._outside = {inside: outside for outside, inside in (aliases or {}).items()}
        self._classes: dict[str, type[T]] = {cls.kind: cls for cls in classes}  # type: ignore[attr-defined]

    def __contains__(self, kind: object) -> bool:
        """Whether there is a class of this kind."""
        return kind in self._classes

    def __iter__(self) -> Iterator[str]:
        """Yield the kinds."""
        return iter(self._classes)

    def __getitem__(self, kind: str) -> type[T]:
        """Return the class of a kind; raise ProblemError that lists the kinds."""
        if kind not in self._classes:
            raise ProblemError(f"there is no {self._what} {kind!r}; there are {', '.join(self._classes)}")
        return self._classes[kind]

    def values(self) -> Sequence[type[T]]:
        """Return the classes."""
        return list(self._classes.values())

    def parameters(self, kind: str) -> dict[str, bool]:
        """Return the parameters of a kind, in order, and whether each is required."""
        given = inspect.signature(self[kind]).parameters
        return {self._outside.get(name, name): one.default is inspect.Parameter.empty for name, one in given.items()}

    def make(self, kind: str, parameters: Mapping[str, Any]) -> T:
        """Return the object; raise ProblemError for unknown kinds, and for unknown or missing parameters."""
        known = self.parameters(kind)
        unknown = sorted(set(parameters) - set(known))
        missing = [name for name, required in known.items() if required and name not in parameters]
        if unknown or missing:
            wrong = f"has no parameter {unknown[0]!r}" if unknown else f"needs the parameter {missing[0]!r}"
            raise ProblemError(f"the {self._what} {kind!r} {wrong}; it takes {', '.join(known) or 'none'}")
        inside = {outside: inside for inside, outside in self._outside.items()}
        return self[kind](**{inside.get(name, name): value for name, value in parameters.items()})

    def from_variant(self, variant: Variant, vectors: Mapping[str, Vector]) -> T:
        """Return the object that a variant describes, with the vectors that followed it."""
        return self.make(variant.kind, dict(variant.numbers) | {name: vectors[name] for name in variant.vectors})


def parameters_of(value: object) -> dict[str, Any]:
    """Return the parameters that an object was made with, except those that are None."""
    names = inspect.signature(type(value)).parameters
    return {name: found for name in names if (found := getattr(value, name)) is not None}


def variant_of(value: object) -> Variant:
    """Return the wire form of an object of a family; ``vectors_of`` returns its vectors."""
    given = parameters_of(value)
    numbers = {name: float(one) for name, one in given.items() if not isinstance(one, np.ndarray)}
    return Variant(value.kind, numbers, tuple(vectors_of(value)))  # type: ignore[attr-defined]


def vectors_of(value: object) -> dict[str, Vector]:
    """Return the parameters of an object that are vectors."""
    return {name: one for name, one in parameters_of(value).items() if isinstance(one, np.ndarray)}
