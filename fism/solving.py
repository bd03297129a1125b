"""``fism.solve``: run a federation in one process."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from fism.methods import Method, oracle
from fism.problem import Problem
from fism.result import Result, history
from fism_client.compute.local_pass import LocalPass
from fism_client.data.shard import Shard
from fism_common.errors import DataError, MethodError, ProblemError, StepError
from fism_common.sums.doubles import rounded
from fism_common.vectors import positive, vector, whole
from fism_server.algorithm.methods.fism import Fism
from fism_server.algorithm.methods.fism import start as begin
from fism_server.algorithm.record import Stop
from fism_server.algorithm.step_rules import ConstantWeight, StepRule, checked_step, warn_if_not_covered
from fism_server.algorithm.stop_rules import RelativeChange

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike

    from fism_client.data.shard import SparseMatrix
    from fism_common.vectors import Vector
    from fism_server.algorithm.record import Record

__all__ = ["solve"]

Client: TypeAlias = "Shard | tuple[ArrayLike | SparseMatrix, ArrayLike]"


def solve(  # noqa: PLR0913  # the public interface: one keyword per option
    problem: Problem,
    clients: Sequence[Client],
    *,
    steps: StepRule,
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

    ``clients``: for each client a pair (rows, labels) or a ``Shard``; rows are dense or scipy sparse.
    ``steps``: a ``StepRule``, such as ``PowerSteps``. Steps that no theorem covers raise a StepWarning, or an error if
    ``strict``; the theorems are about ``fism`` and ``ir-ig``.
    ``start``: a vector, or None for zero; it is projected onto X.
    ``tolerance``: stop early by the paper's rule, when x, F and H all change by less, relative to 1 + their size.
    ``first_round``: k, to continue from x_k with the steps of round k.
    ``local_steps``: how many steps a client takes in a round of ``r-fedavg``.
    ``callback``: called with k and x_k before every round k, and finally with the result; its time is not counted.

    The same call gives the same bits. Raises a ``fism.InputError`` for invalid input, before the first round.
    """
    chosen = method_of(method)
    shards = _shards(clients)
    n, m = shards[0].columns, sum(shard.count for shard in shards)
    if not isinstance(problem, Problem):
        raise ProblemError(f"problem must be a fism.Problem, not {problem!r}")
    problem.check(n)
    first = whole(first_round, "first_round", StepError)
    rule = _rule(steps, chosen)
    loop = Fism(
        problem.outer,
        rule,
        m=m,
        state=begin(problem.constraint.project(_start(start, n)), first),
        last_round=first + whole(rounds, "rounds", StepError) - 1,
        stop=None if tolerance is None else RelativeChange(positive(tolerance, "tolerance", StepError)),
    )
    checked_step(rule, loop.progress)
    if chosen in {Method.FISM, Method.IR_IG}:
        warn_if_not_covered(steps, m, problem.outer.modulus, strict=strict)
    sites = [LocalPass(shard, problem.loss, problem.constraint, f"clients[{i}]") for i, shard in enumerate(shards)]
    source = oracle(chosen, problem, sites, whole(local_steps, "local_steps", StepError))
    records: list[Record] = []
    seconds: list[float] = []
    critical: list[float] = []
    while loop.stopped is None:
        if callback is not None:
            callback(loop.round, loop.x.copy())
        began = time.perf_counter()
        question = loop.ask()
        assert question is not None  # noqa: S101  # the loop has not stopped
        record = loop.tell(source.total(question))
        if record is not None:
            records.append(record)
            seconds.append(time.perf_counter() - began)
            critical.append(seconds[-1] - source.spare)
    if callback is not None and loop.stopped is Stop.ROUNDS:  # otherwise the last call got the result
        callback(loop.round, loop.x.copy())
    inner = rounded(site.value(loop.x) for site in sites)
    outer = loop.conclude(inner)
    assert loop.stopped is not None  # noqa: S101  # the loop above has ended
    return Result(
        x=loop.x,
        **loop.means(),
        inner=inner,
        outer=outer,
        rounds=len(records),
        stopped=loop.stopped,
        subgradients=len(records) * source.subgradients,
        history=history(records, seconds=seconds, critical=critical),
    )


def method_of(method: Method | str) -> Method:
    """Return a method by name; raise MethodError with the list of methods if there is none."""
    try:
        return Method(method)
    except ValueError:
        raise MethodError(f"there is no method {method!r}; there are {', '.join(Method)}") from None


def _rule(steps: StepRule, method: Method) -> StepRule:
    """Return the step rule that ``method`` uses."""
    given: object = steps
    if not isinstance(given, StepRule):
        raise StepError(f"steps must be a fism.StepRule, such as fism.PowerSteps(...), not {steps!r}")
    match method:
        case Method.TIKHONOV | Method.R_FEDAVG:
            return ConstantWeight(steps, steps.next(FirstRound())[1])
        case Method.INCREMENTAL:
            return ConstantWeight(steps, 0.0)
    return steps


@dataclass(frozen=True)
class FirstRound:
    """The state of a run before its first round."""

    round: int = 1
    last: None = None


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
