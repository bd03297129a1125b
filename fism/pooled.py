"""The rows of a whole federation in one process, made by the same steps as its clients make them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fism.local import clients_of
from fism_client.data.loading import load
from fism_client.data.standardise import check_form, moments_of, standardised
from fism_common.data.columns import agree
from fism_common.data.moments import merge, scaling
from fism_common.errors import ConfigError

if TYPE_CHECKING:
    from fism_client.data.shard import Shard
    from fism_common.data.columns import Recipe
    from fism_common.data.moments import Scaling
    from fism_server.problem.plan import Plan


@dataclass(frozen=True)
class Pooled:
    """What every client of a federation has, by its name."""

    train: dict[str, Shard]
    held_out: dict[str, Shard]
    """Of those who hold out rows."""
    recipe: Recipe
    scaling: Scaling | None


def pool(plan: Plan) -> Pooled:
    """Return the rows that each client of `fism run` would train on and hold out."""
    local, rule = plan.config.local, plan.config.data
    sources = clients_of(plan)
    if local is None:
        raise ConfigError("the table [local] names the shards")
    recipe = rule.recipe()
    train: dict[str, Shard] = {}
    held_out: dict[str, Shard] = {}
    for name, source in sources.items():
        data = load(source, local, plan.folder)
        recipe = agree(recipe, data.schema, name, rule.features or ())
        shard = data.encode(recipe)
        check_form(shard, recipe, data.where)
        train[name], held = shard.hold_out(local.holdout, plan.config.federation.seed)
        if held is not None:
            held_out[name] = held
    if not recipe.measured:
        return Pooled(train, held_out, recipe, None)
    numeric = np.array(recipe.numeric(next(iter(train.values())).columns))
    found = scaling(merge([moments_of(shard, numeric) for shard in train.values()]))
    train, held_out = (
        {name: standardised(shard, recipe, found) for name, shard in part.items()} for part in (train, held_out)
    )
    return Pooled(train, held_out, recipe, found)
