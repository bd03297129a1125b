"""The three axes of a run, and which combinations of them make sense.

A run is method x participation x aggregation. The configuration's errors and the table in docs/architecture.md come
from here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fism_common.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fism_server.problem.config import RunConfig

METHODS = {
    "fism": "the paper's method: one projected incremental pass per client and round",
    "ir-ig": "one pass over all rows, with a fresh subgradient of H at every row",
    "tikhonov": "FISM with a constant lambda",
    "incremental": "FISM without H",
    "explicit-descent": "gradient steps on F + lambda H",
    "r-fedavg": "several gradient steps on every client",
}
"""Every method, and what it is."""
IN_PROCESS = {
    "ir-ig": "it evaluates H where the rows are",
    "tikhonov": "it is here for comparison",
    "incremental": "it is here for comparison",
    "explicit-descent": "it evaluates H where the gradients are",
    "r-fedavg": "it evaluates H where the rows are",
}
"""The methods that only fism.solve and fism compare run, and why a server does not."""
PARTICIPATION = {"all": "every client answers every round"}
AGGREGATION = {"open": "the server sees every answer, checks it, and adds the answers up"}


class Combination(NamedTuple):
    """One choice on every axis."""

    method: str
    participation: str
    aggregation: str
    refusal: str
    """Why a server does not run it; empty if it does."""


def combinations() -> Iterator[Combination]:
    """Yield every combination, with why it is refused."""
    for method in METHODS:
        for participation in PARTICIPATION:
            for aggregation in AGGREGATION:
                reason = IN_PROCESS.get(method)
                refusal = f"{reason}; use fism.solve or fism compare" if reason else ""
                yield Combination(method, participation, aggregation, refusal)


def check_axes(config: RunConfig, file: str) -> None:
    """Raise ConfigError for a kind that does not exist, a parameter it does not have, or a refused combination."""
    chosen = []
    for axis, kinds in (("method", METHODS), ("participation", PARTICIPATION), ("aggregation", AGGREGATION)):
        given = getattr(config, axis)
        if given.kind not in kinds:
            raise ConfigError(f"{file}: {axis}: there is no {axis} {given.kind!r}; there are {', '.join(kinds)}")
        if given.parameters:
            extra = ", ".join(given.parameters)
            raise ConfigError(f"{file}: {axis}: the {axis} {given.kind!r} has no parameter {extra}")
        chosen.append(given.kind)
    found = next(one for one in combinations() if [one.method, one.participation, one.aggregation] == chosen)
    if found.refusal:
        raise ConfigError(f"{file}: method: a server cannot run {found.method!r}: {found.refusal}")
