"""The rows of a whole federation in one process, prepared exactly as its clients prepare them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fism.local import clients_of
from fism_client.data.loading import load
from fism_client.data.preparation import Rows, prepare
from fism_common.data.columns import agree
from fism_common.data.moments import merge, scaling
from fism_common.errors import ConfigError

if TYPE_CHECKING:
    from fism_client.data.shard import Shard
    from fism_common.data.columns import Recipe
    from fism_common.data.moments import Scaling
    from fism_server.problem.plan import Plan

__all__ = ["Pooled", "pool"]


@dataclass(frozen=True)
class Pooled:
    """The data of every client of a federation, by client name."""

    train: dict[str, Shard]
    held_out: dict[str, Shard]
    """Only of clients that hold out rows."""
    recipe: Recipe
    scaling: Scaling | None


def pool(plan: Plan) -> Pooled:
    """Return the rows that each client of `fism run` would train on and hold out."""
    local, rule = plan.config.local, plan.config.data
    sources = clients_of(plan)
    if local is None:
        raise ConfigError("the table [local] names the shards")
    recipe = rule.recipe()
    prepared: dict[str, Rows] = {}
    for name, source in sources.items():
        data = load(source, local, plan.folder)
        recipe = agree(recipe, data.schema, name, rule.features or ())
        prepared[name] = prepare(data, recipe, local.holdout, plan.config.federation.seed)
    found = scaling(merge([rows.moments() for rows in prepared.values()])) if recipe.measured else None
    clients = {name: rows.standardised(found) for name, rows in prepared.items()}
    return Pooled(
        train={name: rows.train for name, rows in clients.items()},
        held_out={name: rows.held_out for name, rows in clients.items() if rows.held_out is not None},
        recipe=recipe,
        scaling=found,
    )
