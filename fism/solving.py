"""``fism.solve``: a federation in one process."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from fism.methods import Method, gatherer
from fism.problem import Problem
from fism.result import Result, history
from fism_client.compute.local_pass import LocalPass
from fism_client.data.shard import Shard
from fism_common.errors import DataError, MethodError, ProblemError, StepError
from fism_common.vectors import positive, vector, whole
from fism_server.algorithm.rounds import Rounds, State, Stop
from fism_server.algorithm.step_rules import ConstantWeight, Schedule, step, warn_if_not_covered

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike

    from fism_client.data.shard import SparseMatrix
    from fism_common.vectors import Vector
    from fism_server.algorithm.rounds import Record

Client: TypeAlias = "Shard | tuple[ArrayLike | SparseMatrix, ArrayLike]"


def solve(  # noqa: PLR0913  # the public interface: one keyword per decision of the caller
    problem: Problem,
    clients: Sequence[Client],
    *,
    steps: Schedule,
    rounds: int,
    start: ArrayLike | None = None,
    tolerance: float | None = None,
    first_round: int = 1,
    method: Method | str = Method.FISM,
    strict: bool = False,
    local_steps: int = 5,
    callback: Callable[[int, Vector], object] | None = None,
) -> Result:
    """Return the result of ``rounds`` rounds of ``method`` on ``problem``, all clients in this process.

    ``clients``: per client a pair (rows, labels), or a ``Shard``; rows are dense or scipy sparse.
    ``steps``: an object with gamma(k) and lam(k), such as ``PowerSteps``. One that no theorem covers warns
    (StepWarning), and is refused if ``strict``; the theorems are of ``fism`` and ``ir-ig``.
    ``start``: a vector, None for zero; it is projected onto X.
    ``tolerance``: end early by the paper's stop rule, when x, F and H all change by less, relative to 1 + their size.
    ``first_round``: go on from x_k with the steps of round k.
    ``local_steps``: the steps that a client takes in a round of ``r-fedavg``.
    ``callback``: called with k and x_k before every round k, and last with the answer; its time is not counted.

    The same call gives the same bits. Raises a ``fism.InputError`` for what cannot be used, before the first round.
    """
    chosen = method_of(method)
    shards = _shards(clients)
    n, m = shards[0].columns, sum(shard.count for shard in shards)
    if not isinstance(problem, Problem):
        raise ProblemError(f"problem must be a fism.Problem, not {problem!r}")
    problem.check(n)
    schedule = _schedule(steps, chosen)
    first = whole(first_round, "first_round", StepError)
    loop = Rounds(
        problem.outer,
        schedule,
        m=m,
        state=State.at(first, problem.constraint.project(_start(start, n))),
        last_round=first + whole(rounds, "rounds", StepError) - 1,
        tolerance=None if tolerance is None else positive(tolerance, "tolerance", StepError),
    )
    step(schedule, first)
    if chosen in {Method.FISM, Method.IR_IG}:
        warn_if_not_covered(steps, m, problem.outer.modulus, strict=strict)
    sites = [LocalPass(shard, problem.loss, problem.constraint, f"clients[{i}]") for i, shard in enumerate(shards)]
    replies = gatherer(chosen, problem, sites, whole(local_steps, "local_steps", StepError))
    records: list[Record] = []
    seconds: list[float] = []
    critical: list[float] = []
    while loop.stopped is None:
        if callback is not None:
            callback(loop.state.round, loop.x.copy())
        began = time.perf_counter()
        record = loop.close(replies.gather(loop.order()))
        if record is not None:
            records.append(record)
            seconds.append(time.perf_counter() - began)
            critical.append(seconds[-1] - replies.spare)
    if callback is not None and loop.stopped is Stop.ROUNDS:  # else the answer is what the round began from
        callback(loop.state.round, loop.x.copy())
    inner = sum(site.inner(loop.x) for site in sites)
    outer = loop.conclude(inner)
    return Result(
        x=loop.x,
        weighted=loop.state.weighted,
        average=loop.state.average,
        inner=inner,
        outer=outer,
        rounds=len(records),
        stopped=loop.stopped,
        subgradients=len(records) * replies.subgradients,
        history=history(records, seconds=seconds, critical=critical),
    )


def method_of(method: Method | str) -> Method:
    """Return a method by its name; raise MethodError that lists them."""
    try:
        return Method(method)
    except ValueError:
        raise MethodError(f"there is no method {method!r}; there are {', '.join(Method)}") from None


def _schedule(steps: Schedule, method: Method) -> Schedule:
    """Return the steps as ``method`` takes them."""
    given: object = steps
    if isinstance(given, type) or not all(callable(getattr(given, name, None)) for name in ("gamma", "lam")):
        raise StepError(f"steps must have gamma(k) and lam(k), as fism.PowerSteps has, unlike {steps!r}")
    match method:
        case Method.TIKHONOV | Method.R_FEDAVG:
            return ConstantWeight(steps, steps.lam(1))
        case Method.INCREMENTAL:
            return ConstantWeight(steps, 0.0)
    return steps


def _shards(clients: Sequence[Client]) -> list[Shard]:
    shards = []
    try:
        listed = list(clients)
    except TypeError:
        raise DataError(f"clients must be a list of pairs (rows, labels), not {clients!r}") from None
    for i, client in enumerate(listed):
        where = f"clients[{i}]"
        if isinstance(client, Shard):
            shards.append(client)
            continue
        try:
            rows, labels = client
        except (TypeError, ValueError):
            raise DataError(f"{where} must be a pair (rows, labels) or a fism.Shard") from None
        shards.append(Shard.of(rows, labels, where=where))
    if not shards:
        raise DataError("there are no clients; give at least one pair (rows, labels)")
    for i, shard in enumerate(shards):
        if shard.columns != shards[0].columns:
            raise DataError(
                f"clients[{i}] has {shard.columns} columns, but clients[0] has {shards[0].columns}; "
                "all clients must have the same columns"
            )
    return shards


def _start(start: ArrayLike | None, n: int) -> Vector:
    if start is None:
        return np.zeros(n)
    x = vector(start, "start", ProblemError)
    if x.size != n:
        raise ProblemError(f"start has {x.size} entries, but the rows have {n} columns")
    return x
