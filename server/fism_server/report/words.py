"""A run's problem in words, for people who did not write its configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fism_common.problem.losses import LOSSES
from fism_common.problem.sets import SETS
from fism_server.problem.outer import OUTERS

if TYPE_CHECKING:
    from fism_server.problem.config import Kind, RunConfig


def problem(config: RunConfig, clients: int, rows: int, columns: int) -> list[str]:
    """Return the problem as sentences, with the numbers of clients, rows and columns of the model."""
    formula, preference = objective(config.outer)
    fit = (
        f"{_count(clients, 'client')} fit one model of {_count(columns, 'column')} to {rows:,} rows, "
        "which stay with the clients."
    )
    return [
        fit if rows else f"{_count(clients, 'client')} will fit one model to their rows, which stay with the clients.",
        f"They minimise F, the sum of {loss(config)}, over {constraint(config.inner.constraint)}.",
        f"Many models may do so equally well. The coordinator prefers {preference}: the one with the least {formula}.",
        "Clients see one subgradient of H in each round, and nothing else about H.",
    ]


def loss(config: RunConfig) -> str:
    """Return what F sums, with its parameters."""
    given = config.inner.loss
    known = LOSSES[given.kind].description if given.kind in LOSSES else f"the custom losses {given.kind} of all rows"
    return known + _numbers(given, " ({})", " ")


def objective(outer: Kind) -> tuple[str, str]:
    """Return H as a formula, and what it prefers."""
    if outer.kind not in OUTERS:
        return f"H = {outer.kind}", "what a custom objective prefers"
    known = OUTERS[outer.kind]
    return f"H = {known.formula}" + _numbers(outer, " with {}", " = "), known.prefers


def constraint(given: Kind) -> str:
    """Return the set that x is in; only its kind if it has vectors, as their files may have moved."""
    if all(isinstance(value, int | float) for value in given.parameters.values()):
        return SETS.make(given.kind, given.parameters).describe()
    return f"a {given.kind} with given vectors"


def steps(given: Kind) -> str:
    """Return the steps of round k."""
    p = given.parameters
    return f"gamma_k = {p['gamma']:g} / k^{p['a']:g}, lambda_k = {p['lambda']:g} / k^{p['b']:g}"


def _numbers(given: Kind, frame: str, equals: str) -> str:
    """Return the parameters that are numbers, in a frame; nothing if there are none."""
    numbers = {key: value for key, value in given.parameters.items() if isinstance(value, int | float)}
    return frame.format(", ".join(f"{key}{equals}{value:g}" for key, value in numbers.items())) if numbers else ""


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
