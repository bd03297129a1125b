"""The rows of a whole federation in one process, made by the same steps as its clients make them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fism.local import clients_of
from fism_client.data.loading import load
from fism_client.data.standard import check_form, moments_of, standardised
from fism_common.columns import agree
from fism_common.errors import ConfigError
from fism_common.moments import merge, scaling

if TYPE_CHECKING:
    from fism_client.shard import Shard
    from fism_common.columns import Recipe
    from fism_common.moments import Scaling
    from fism_server.plan import Plan


def pool(plan: Plan) -> tuple[list[Shard], Recipe, Scaling | None]:
    """Return the rows that each client of `fism run` would train on, the recipe, and the scaling if there is one."""
    local, rule = plan.config.local, plan.config.data
    sources = clients_of(plan)
    if local is None:
        raise ConfigError("the table [local] names the shards")
    recipe, whole = rule.recipe(), {}
    for name, source in sources.items():
        data = load(source, local, plan.folder)
        recipe = agree(recipe, data.schema, name, rule.features or ())
        shard = data.encode(recipe)
        check_form(shard, recipe, data.where)
        whole[name] = shard.hold_out(local.holdout, plan.config.federation.seed)[0]
    shards = list(whole.values())
    if not recipe.measured:
        return shards, recipe, None
    numeric = np.array(recipe.numeric(shards[0].columns))
    found = scaling(merge([moments_of(shard, numeric) for shard in shards]))
    return [standardised(shard, recipe, found) for shard in shards], recipe, found
