"""What a client brings into a run: its data, and what it makes of it once the problem is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fism_client.data.shard import held_out_count
from fism_client.data.standardise import check_form, moments_of, standardised
from fism_common.data.columns import Recipe
from fism_common.data.moments import Scaling
from fism_common.errors import DataError
from fism_common.problem.losses import named_loss

if TYPE_CHECKING:
    from collections.abc import Callable

    from fism_client.compute.site import Worker
    from fism_client.data.loading import Data
    from fism_client.data.shard import Shard
    from fism_common.data.moments import Moments
    from fism_common.problem.losses import Loss
    from fism_common.problem.sets import ConstraintSet
    from fism_common.wire.terms import NamedLoss


def built_in(told: NamedLoss) -> Loss:
    """Return a loss that comes with this package."""
    return named_loss(told.name, **told.parameters)


class Participant:
    """One client's data under its name."""

    def __init__(  # noqa: PLR0913
        self,
        name: str,
        data: Data,
        *,
        shards: int = 1,
        holdout: float = 0.0,
        seed: int = 0,
        find_loss: Callable[[NamedLoss], Loss] = built_in,
    ) -> None:
        """Count as so many virtual clients; hold out a share of the rows, which the seed chooses."""
        self.name, self.shards, self.schema, self.columns = name, shards, data.schema, data.width
        self.rows = data.count - held_out_count(data.count, holdout)
        if shards > self.rows:
            raise DataError(f"{self.rows} rows cannot be split into {shards} shards; each needs a row")
        self._data: Data | None = data
        self._holdout, self._seed, self._find_loss = holdout, seed, find_loss
        self._recipe = Recipe()
        self._train: Shard | None = None
        self._held_out: Shard | None = None
        self._labels, self._where, self._first_row = data.labels, data.where, data.first_row

    def prepare(self, recipe: Recipe) -> int:
        """Make rows by the recipe, once; return how many columns they have."""
        if self._data is not None:
            whole = self._data.encode(recipe)
            check_form(whole, recipe, self._where)
            self._train, self._held_out = whole.hold_out(self._holdout, self._seed)
            self._recipe, self._data = recipe, None  # the columns are not needed again, and as large as the rows
        return self._rows().columns

    def doubts(self) -> list[str]:
        """Return what may be wrong with the data, for a client that is refused."""
        return [] if self._data is None else self._data.doubts()

    def digest(self, run_id: str) -> bytes:
        """Return a digest of the rows, by which a resumed run knows them."""
        return self._rows().digest(run_id)

    def moments(self) -> Moments:
        """Return the moments of the columns that are to be standardised, of the rows to train on."""
        train = self._rows()
        return moments_of(train, np.array(self._recipe.numeric(train.columns)))

    def check_labels(self, told: NamedLoss) -> None:
        """Raise DataError if the labels, also those of rows that are held out, have no meaning for the loss."""
        self._find_loss(told).check_labels(self._labels, self._where, self._first_row)

    def rehearse(self, told: NamedLoss, constraint: ConstraintSet) -> None:
        """Compile or load the kernels for rows that will be standardised: one of them is, by made-up moments."""
        row, n = self._rows().take(slice(0, 1)), self._rows().columns
        made_up = Scaling(np.zeros(n), np.zeros(n), np.ones(n))
        self._site(standardised(row, self._recipe, made_up), None, told, constraint, shards=1)

    def worker(self, told: NamedLoss, constraint: ConstraintSet, scaling: Scaling | None) -> Worker:
        """Return what answers orders; compile or load the kernels for it."""
        train, held = self._rows(), self._held_out
        if scaling is not None:
            train = standardised(train, self._recipe, scaling)
            held = None if held is None else standardised(held, self._recipe, scaling)
        return self._site(train, held, told, constraint, shards=self.shards)

    def _site(
        self, train: Shard, held_out: Shard | None, told: NamedLoss, constraint: ConstraintSet, *, shards: int
    ) -> Worker:
        from fism_client.compute.site import Site  # noqa: PLC0415  # slow to load, and not always needed

        return Site(train, held_out, self._find_loss(told), constraint, shards)

    def _rows(self) -> Shard:
        assert self._train is not None, "prepare comes first"  # noqa: S101
        return self._train
