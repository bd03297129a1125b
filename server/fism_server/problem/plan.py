"""The objects that a configuration describes: the loss, the set, the outer objective, the steps, the start."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fism_common.errors import ConfigError, InputError
from fism_common.problem.losses import LOSSES
from fism_common.problem.registry import Variant
from fism_common.problem.sets import SETS, ConstraintSet
from fism_common.settings import load_array, load_object, load_vector, read
from fism_server.algorithm.step_rules import STEP_RULES, StepRule
from fism_server.problem.axes import check_axes
from fism_server.problem.config import RunConfig
from fism_server.problem.outer import OUTERS, OuterObjective

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from fism_common.vectors import Vector
    from fism_server.problem.config import Inner, Kind, Outer

__all__ = ["Plan", "read_plan"]


@dataclass(frozen=True)
class Plan:
    """A run that can begin as soon as its clients have joined."""

    config: RunConfig
    folder: Path
    loss: Variant
    constraint: ConstraintSet
    outer: OuterObjective
    steps: StepRule
    fixed_start: Vector | None
    columns: int | None
    """The number of columns that rows must have, if the configuration decides it."""
    inputs: dict[str, str]
    """A digest of every file that the configuration names, by the key that names it."""

    @property
    def in_order(self) -> bool:
        """Whether the problem relies on the order of the columns: in bounds, a start, or H."""
        sized = (self.constraint.dimension, self.outer.dimension)
        return any(size is not None for size in sized) or self.fixed_start is not None or self.outer.ordered

    def objective(self, n: int) -> OuterObjective:
        """Return H for n columns."""
        return _for_columns(self.outer, self.config, n)

    def start(self, n: int) -> Vector:
        """Return x_1, a point of X in n dimensions."""
        if self.fixed_start is not None:
            return self.constraint.project(self.fixed_start)
        if self.config.federation.start == "zero":
            return self.constraint.project(np.zeros(n))
        rng = np.random.default_rng(self.config.federation.seed)
        lo, hi = self.constraint.bounds(n)
        return self.constraint.project(rng.uniform(lo, hi))


def built_in_objective(config: RunConfig, folder: Path, n: int) -> OuterObjective | None:
    """Return H for n columns if it is built in, else None: looking at a run must not run custom code."""
    if ":" in config.outer.kind:
        return None
    outer = _outer(config.outer, folder)
    outer.check(n)
    return _for_columns(outer, config, n)


def _for_columns(outer: OuterObjective, config: RunConfig, n: int) -> OuterObjective:
    """Return H for n columns; it does not penalise an intercept's absolute value."""
    return outer.sparing_last(n) if config.data.intercept else outer


def loss_of(inner: Inner) -> Variant:
    """Return the loss that a configuration names, in the form that clients get."""
    return Variant(inner.loss.kind, inner.loss.parameters)


def read_plan(file: Path, overrides: Sequence[str] = ()) -> Plan:
    """Return the plan in a configuration file; raise ConfigError that names the file, the key and what is allowed."""
    return make_plan(read(RunConfig, file, overrides), file.parent, str(file))


def make_plan(config: RunConfig, folder: Path, file: str) -> Plan:
    """Return the plan of a configuration whose paths are relative to ``folder``; ``file`` is its name in errors."""
    parts: dict[str, Any] = {}
    builders: dict[str, Callable[[], object]] = {
        "inner.loss": lambda: _loss(config.inner),
        "inner.constraint": lambda: _constraint(config.inner.constraint, folder),
        "outer": lambda: _outer(config.outer, folder),
        "steps": lambda: STEP_RULES.make(config.steps.kind, config.steps.parameters),
        "federation.start": lambda: _fixed_start(config.federation.start, folder),
    }
    for key, build in builders.items():
        try:
            parts[key] = build()
        except InputError as error:
            raise ConfigError(f"{file}: {key}: {error}") from error
    check_axes(config, file)
    constraint, outer, fixed = parts["inner.constraint"], parts["outer"], parts["federation.start"]
    sizes = {
        "inner.columns": config.inner.columns,
        "inner.constraint": constraint.dimension,
        "outer": outer.dimension,
        "federation.start": None if fixed is None else fixed.size,
    }
    known = {key: size for key, size in sizes.items() if size is not None}
    if len(set(known.values())) > 1:
        listed = ", ".join(f"{key} has {size}" for key, size in known.items())
        raise ConfigError(f"{file}: these must have the same number of columns: {listed}")
    columns = next(iter(known.values()), None)
    inputs = dict(_inputs(config.model_dump(), folder))
    return Plan(config, folder, parts["inner.loss"], constraint, outer, parts["steps"], fixed, columns, inputs)


def _inputs(value: object, folder: Path, key: str = "") -> Iterator[tuple[str, str]]:
    """Yield the key and the digest of every file of vectors, and of the code of a custom objective."""
    if isinstance(value, dict):
        for name, part in value.items():
            yield from _inputs(part, folder, f"{key}.{name}" if key else name)
    elif isinstance(value, str) and value.endswith(".npy"):
        yield key, sha256((folder / value).read_bytes()).hexdigest()
    elif isinstance(value, str) and key == "outer.kind" and ":" in value:
        code = sys.modules[value.partition(":")[0]].__file__
        if code is not None:
            yield key, sha256(Path(code).read_bytes()).hexdigest()


def _loss(inner: Inner) -> Variant:
    loss = loss_of(inner)
    if ":" not in loss.kind:  # only the clients have the code of a custom loss, and check it
        if loss.kind not in LOSSES:
            raise ConfigError(f"there is no loss {loss.kind!r}; there are {', '.join(LOSSES)}, or a custom module:Name")
        LOSSES.make(loss.kind, loss.numbers)
    return loss


def _constraint(given: Kind, folder: Path) -> ConstraintSet:
    parameters = {
        key: value if isinstance(value, (int, float)) else load_vector(value, folder, key)
        for key, value in given.parameters.items()
    }
    return SETS.make(given.kind, parameters)


def _outer(given: Outer, folder: Path) -> OuterObjective:
    parameters = {
        key: load_array(value, folder, key) if isinstance(value, str) and value.endswith(".npy") else value
        for key, value in given.parameters.items()
    }
    if ":" not in given.kind:
        if given.kind not in OUTERS:
            known = ", ".join(OUTERS)
            raise ConfigError(f"there is no objective {given.kind!r}; there are {known}, or a custom module:Name")
        return OUTERS.make(given.kind, parameters)
    found = load_object(given.kind, folder)
    try:
        made = found(**parameters) if isinstance(found, type) else found
    except TypeError as error:
        raise ConfigError(f"{given.kind} does not take {parameters}: {error}") from error
    if not isinstance(made, OuterObjective):
        raise ConfigError(f"{given.kind} must be a fism.OuterObjective, not {made!r}")
    return made


def _fixed_start(start: str, folder: Path) -> Vector | None:
    if start in {"zero", "random"}:
        return None
    if not start.endswith(".npy"):
        raise ConfigError(f'must be "zero", "random" or the path of an .npy file, not {start!r}')
    return load_vector(start, folder, "start")
