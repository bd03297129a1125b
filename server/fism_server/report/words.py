"""A run's problem in words, for people who did not write its configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fism_server.problem.config import Constraint, Outer, RunConfig, Steps

_LOSSES = {
    "logistic": "the logistic losses of all rows, ln(1 + exp(-b a'x)), with labels b of -1 and 1",
    "hinge": "the hinge losses of all rows, max(0, 1 - b a'x), with labels b of -1 and 1",
    "squared-hinge": "the squared hinge losses of all rows, max(0, 1 - b a'x)^2, with labels b of -1 and 1",
    "squared": "the squared errors of all rows, (a'x - b)^2 / 2",
    "absolute": "the absolute errors of all rows, |a'x - b|",
    "huber": "the Huber losses of all rows: squared for small errors a'x - b, absolute for large ones",
    "quantile": "the quantile losses of all rows, which cost an answer above the label and one below it differently",
    "ball-distance": "the distances from x to all rows' balls, max(0, |x - a| - b)",
}
_OBJECTIVES = {
    "squared-norm": ("H = |x|^2 / 2", "the smallest one"),
    "squared-distance": ("H = |x - anchor|^2 / 2", "the one nearest to the model in use, its anchor"),
    "elastic-net": ("H = l1 |x|_1 + l2 |x|^2 / 2", "a sparse and small one"),
    "group-lasso": (
        "H = sum of weight |x_g| over groups of columns, + l2 |x|^2 / 2",
        "one that does without whole groups",
    ),
    "quadratic": ("H = x'Qx / 2 + c'x", "the one at which this quadratic is least"),
}


def problem(config: RunConfig, clients: int, rows: int, columns: int) -> list[str]:
    """Return the problem as sentences, for so many clients, rows and columns of the model."""
    formula, wish = objective(config.outer)
    fit = (
        f"{_count(clients, 'client')} fit one model of {_count(columns, 'column')} to {rows:,} rows, which stay there."
    )
    return [
        fit if rows else f"{_count(clients, 'client')} are to fit one model to their rows, which stay there.",
        f"They minimise F, the sum of {loss(config)}, over {constraint(config.inner.constraint)}.",
        f"Many models may do so equally well. Of these the coordinator wants {wish}: the one with the least {formula}.",
        "Clients are told one subgradient of H in each round, and nothing else of it.",
    ]


def loss(config: RunConfig) -> str:
    """Return what F sums, with its parameters."""
    given = config.inner.loss
    known = _LOSSES.get(given.name, f"the losses {given.name} of all rows, which the clients brought along")
    extra = given.__pydantic_extra__ or {}
    return known + (f" ({', '.join(f'{key} {value:g}' for key, value in extra.items())})" if extra else "")


def objective(outer: Outer) -> tuple[str, str]:
    """Return H as a formula, and what it is that it prefers."""
    if outer.objective not in _OBJECTIVES:
        return f"H = {outer.objective}", "what an objective of the coordinator's own prefers"
    formula, wish = _OBJECTIVES[outer.objective]
    numbers = {key: value for key, value in (outer.__pydantic_extra__ or {}).items() if isinstance(value, int | float)}
    told = ", ".join(f"{key} = {value:g}" for key, value in numbers.items())
    return f"{formula} with {told}" if told else formula, wish


def constraint(given: Constraint) -> str:
    """Return the set that x is in."""
    if isinstance(given.box, list):
        return f"the box of all x with entries from {given.box[0]:g} to {given.box[1]:g}"
    if given.box is not None:
        return "a box with bounds for each column"
    if given.ball is not None:
        radius = given.ball if isinstance(given.ball, int | float) else given.ball.radius
        around = "0" if isinstance(given.ball, int | float) or given.ball.center is None else "a centre of its own"
        return f"the ball of radius {radius:g} around {around}"
    if given.simplex is not None:
        return f"the simplex: entries of at least 0 that sum to {given.simplex:g}"
    return f"all x whose entries have absolute values that sum to at most {given.l1_ball:g}"


def steps(given: Steps) -> str:
    """Return the steps of round k."""
    return f"gamma_k = {given.gamma:g} / k^{given.a:g}, lambda_k = {given.lam:g} / k^{given.b:g}"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
