"""From loaded data to rows: one pipeline for every client, and for the pooled data of a whole federation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fism_client.data.standardise import check_form, moments_of, standardised

if TYPE_CHECKING:
    from fism_client.data.loading import Data
    from fism_client.data.shard import Shard
    from fism_common.data.columns import Recipe
    from fism_common.data.moments import ColumnMoments, Scaling


@dataclass(frozen=True)
class Rows:
    """A client's rows to train on and its held-out rows, encoded by the federation's recipe."""

    recipe: Recipe
    train: Shard
    held_out: Shard | None = None

    def moments(self) -> ColumnMoments:
        """Return the moments of the columns to standardise, over the rows to train on."""
        return moments_of(self.train, self.recipe.numeric(self.train.columns))

    def standardised(self, scaling: Scaling | None) -> Rows:
        """Return the rows standardised by the federation's scaling; unchanged if there is none."""
        if scaling is None:
            return self
        held_out = None if self.held_out is None else standardised(self.held_out, self.recipe, scaling)
        return Rows(self.recipe, standardised(self.train, self.recipe, scaling), held_out)


def prepare(data: Data, recipe: Recipe, holdout: float, seed: int) -> Rows:
    """Return rows encoded by the recipe; a share ``holdout`` of them, chosen by ``seed``, is held out."""
    whole = data.encode(recipe)
    check_form(whole, recipe, data.where)
    return Rows(recipe, *whole.hold_out(holdout, seed))
