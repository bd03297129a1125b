"""What a configuration asks for, made: the loss, the set, the outer objective, the steps, the start."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fism_common.errors import ConfigError, InputError
from fism_common.problem.losses import LOSSES, named_loss
from fism_common.problem.sets import Ball, Box, ConstraintSet, L1Ball, Simplex
from fism_common.settings import load_array, load_object, load_vector, read
from fism_common.wire.terms import NamedLoss
from fism_server.algorithm.step_rules import PowerSteps
from fism_server.problem.config import BallAround, BoxBounds, RunConfig
from fism_server.problem.outer import ElasticNet, GroupLasso, OuterObjective, Quadratic, SquaredDistance, SquaredNorm

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from fism_common.vectors import Vector
    from fism_server.problem.config import Constraint, Inner, Outer


@dataclass(frozen=True)
class Plan:
    """A run that can begin as soon as its clients are there."""

    config: RunConfig
    folder: Path
    loss: NamedLoss
    constraint: ConstraintSet
    outer: OuterObjective
    steps: PowerSteps
    fixed_start: Vector | None
    columns: int | None
    """The columns that rows must have, if the configuration decides it."""
    inputs: dict[str, str]
    """A digest of every file that the configuration names, by the key that names it."""

    @property
    def in_order(self) -> bool:
        """Whether the problem counts on an order of the columns: by bounds, a start, or H."""
        sized = (self.constraint.dimension, self.outer.dimension)
        return (
            any(size is not None for size in sized)
            or self.fixed_start is not None
            or isinstance(self.outer, GroupLasso)
        )

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
    """Return H for n columns if it comes with this package; the code of one's own is not run by those who only look."""
    if ":" in config.outer.objective:
        return None
    outer = _outer(config.outer, folder)
    outer.check(n)
    return _for_columns(outer, config, n)


def _for_columns(outer: OuterObjective, config: RunConfig, n: int) -> OuterObjective:
    """Return H for n columns; an intercept has no part in its 1-norm."""
    return outer.sparing_last(n) if config.data.intercept and isinstance(outer, ElasticNet) else outer


def named(inner: Inner) -> NamedLoss:
    """Return the loss that a configuration names, as clients are told it."""
    return NamedLoss(inner.loss.name, inner.loss.__pydantic_extra__ or {})


def read_plan(file: Path, overrides: Sequence[str] = ()) -> Plan:
    """Return the plan in a configuration file; raise ConfigError that names the file, the key and what is allowed."""
    return make_plan(read(RunConfig, file, overrides), file.parent, str(file))


def make_plan(config: RunConfig, folder: Path, file: str) -> Plan:
    """Return the plan of a configuration whose paths are relative to ``folder``; ``file`` is its name in errors."""
    parts: dict[str, Any] = {}
    makers: dict[str, Callable[[], object]] = {
        "inner.loss": lambda: _loss(config.inner),
        "inner.constraint": lambda: _constraint(config.inner.constraint, folder),
        "outer": lambda: _outer(config.outer, folder),
        "steps": lambda: PowerSteps(config.steps.gamma, config.steps.a, config.steps.lam, config.steps.b),
        "federation.start": lambda: _fixed_start(config.federation.start, folder),
    }
    for key, make in makers.items():
        try:
            parts[key] = make()
        except InputError as error:
            raise ConfigError(f"{file}: {key}: {error}") from error
    constraint, outer, fixed = parts["inner.constraint"], parts["outer"], parts["federation.start"]
    sizes = {
        "inner.columns": config.inner.columns,
        "inner.constraint": constraint.dimension,
        "outer": outer.dimension,
        "federation.start": None if fixed is None else fixed.size,
    }
    known = {key: size for key, size in sizes.items() if size is not None}
    if len(set(known.values())) > 1:
        told = ", ".join(f"{key} has {size}" for key, size in known.items())
        raise ConfigError(f"{file}: these must have the same number of columns: {told}")
    columns = next(iter(known.values()), None)
    inputs = dict(_inputs(config.model_dump(), folder))
    return Plan(config, folder, parts["inner.loss"], constraint, outer, parts["steps"], fixed, columns, inputs)


def _inputs(value: object, folder: Path, key: str = "") -> Iterator[tuple[str, str]]:
    """Yield the key and the digest of every file of vectors, and of the code of an outer objective of one's own."""
    if isinstance(value, dict):
        for name, part in value.items():
            yield from _inputs(part, folder, f"{key}.{name}" if key else name)
    elif isinstance(value, str) and value.endswith(".npy"):
        yield key, sha256((folder / value).read_bytes()).hexdigest()
    elif isinstance(value, str) and key == "outer.objective" and ":" in value:
        code = sys.modules[value.partition(":")[0]].__file__
        if code is not None:
            yield key, sha256(Path(code).read_bytes()).hexdigest()


def _loss(inner: Inner) -> NamedLoss:
    loss = named(inner)
    if ":" in loss.name:
        return loss  # the clients' own: only they have, and check, its code
    if loss.name not in LOSSES:
        raise ConfigError(
            f"there is no loss {loss.name!r}; there are {', '.join(LOSSES)}, or a module:Name of the clients"
        )
    named_loss(loss.name, **loss.parameters)
    return loss


def _constraint(given: Constraint, folder: Path) -> ConstraintSet:
    if isinstance(given.box, BoxBounds):
        return Box(*(_bound(bound, folder) for bound in (given.box.lo, given.box.hi)))
    if given.box is not None:
        return Box(*given.box)
    if isinstance(given.ball, BallAround):
        center = None if given.ball.center is None else load_vector(given.ball.center, folder, "center")
        return Ball(given.ball.radius, center)
    if given.ball is not None:
        return Ball(given.ball)
    if given.simplex is not None:
        return Simplex(given.simplex)
    assert given.l1_ball is not None  # noqa: S101  # the model allows exactly one
    return L1Ball(given.l1_ball)


def _bound(bound: float | str | list[float], folder: Path) -> float | Vector:
    return bound if isinstance(bound, (int, float)) else load_vector(bound, folder, "bound")


_OBJECTIVES: dict[str, tuple[Callable[..., OuterObjective], tuple[str, ...]]] = {
    "squared-norm": (SquaredNorm, ()),
    "squared-distance": (SquaredDistance, ("anchor",)),
    "elastic-net": (ElasticNet, ("l1", "l2")),
    "group-lasso": (GroupLasso, ("groups", "weight", "l2")),
    "quadratic": (Quadratic, ("Q", "c")),
}


def _outer(given: Outer, folder: Path) -> OuterObjective:
    parameters = {
        key: load_array(value, folder, key) if isinstance(value, str) and value.endswith(".npy") else value
        for key, value in (given.__pydantic_extra__ or {}).items()
    }
    if ":" in given.objective:
        found = load_object(given.objective, folder)
        try:
            made = found(**parameters) if isinstance(found, type) else found
        except TypeError as error:
            raise ConfigError(f"{given.objective} does not take {parameters}: {error}") from error
        if not isinstance(made, OuterObjective):
            raise ConfigError(f"{given.objective} must be a fism.OuterObjective, not {made!r}")
        return made
    if given.objective not in _OBJECTIVES:
        known = ", ".join(_OBJECTIVES)
        raise ConfigError(f"there is no objective {given.objective!r}; there are {known}, or a module:Name of your own")
    make, names = _OBJECTIVES[given.objective]
    if set(parameters) != set(names):
        raise ConfigError(f"the objective {given.objective!r} has the keys {list(names)}, not {sorted(parameters)}")
    return make(**parameters)


def _fixed_start(start: str, folder: Path) -> Vector | None:
    if start in {"zero", "random"}:
        return None
    if not start.endswith(".npy"):
        raise ConfigError(f'must be "zero", "random" or the path of an .npy file, not {start!r}')
    return load_vector(start, folder, "start")
