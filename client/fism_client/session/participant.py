"""What a client brings to a run: its name, its data, and what is built from the data once the problem is known."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fism_client.data.preparation import Rows, prepare
from fism_client.data.shard import held_out_count
from fism_common import __version__
from fism_common.data.moments import Scaling
from fism_common.errors import DataError
from fism_common.joining import JoinRequest
from fism_common.problem.losses import LOSSES

if TYPE_CHECKING:
    from collections.abc import Callable

    from fism_client.compute.answerer import Answerer
    from fism_client.data.loading import Data
    from fism_common.data.columns import Recipe
    from fism_common.problem.losses import Loss
    from fism_common.problem.registry import Variant
    from fism_common.problem.sets import ConstraintSet
    from fism_common.vectors import Vector


def built_in(loss: Variant) -> Loss:
    """Return a built-in loss."""
    return LOSSES.from_variant(loss, {})


class Labels(NamedTuple):
    """Labels, and where they come from, for errors."""

    values: Vector
    where: str
    first_row: int


class Participant:
    """One client: its name and its data."""

    def __init__(  # noqa: PLR0913
        self,
        name: str,
        data: Data,
        *,
        virtual_clients: int = 1,
        holdout: float = 0.0,
        seed: int = 0,
        find_loss: Callable[[Variant], Loss] = built_in,
    ) -> None:
        """Run as ``virtual_clients`` virtual clients; hold out a share ``holdout`` of the rows, chosen by ``seed``."""
        self.name, self.virtual_clients = name, virtual_clients
        self.rows = data.count - held_out_count(data.count, holdout)
        if virtual_clients > self.rows:
            raise DataError(
                f"{self.rows} rows cannot be split among {virtual_clients} virtual clients; each needs a row"
            )
        self._data: Data | None = data
        self.schema, self.columns = data.schema, data.width
        self._holdout, self._seed, self._find_loss = holdout, seed, find_loss
        self._labels = Labels(data.labels, data.where, data.first_row)
        self._prepared: Rows | None = None

    def request(self, token: bytes = b"", *, dry_run: bool = False) -> JoinRequest:
        """Return the request to join, which describes this client."""
        return JoinRequest(
            name=self.name,
            rows=self.rows,
            columns=self.columns,
            virtual_clients=self.virtual_clients,
            token=token,
            schema=self.schema,
            version=__version__,
            dry_run=dry_run,
        )

    def prepare(self, recipe: Recipe) -> Rows:
        """Return the rows encoded by the recipe; only the first call encodes them."""
        if self._prepared is None:
            assert self._data is not None  # noqa: S101  # released only after the rows are made
            self._prepared = prepare(self._data, recipe, self._holdout, self._seed)
            self._data = None  # not needed again, and as large as the rows
        return self._prepared

    def doubts(self) -> list[str]:
        """Return what may be wrong with the data, to show if this client is refused."""
        return [] if self._data is None else self._data.doubts()

    def digest(self, run_id: str) -> bytes:
        """Return a digest of the rows, by which a resumed run recognises them."""
        return self._rows().train.digest(run_id)

    def check_labels(self, loss: Variant) -> None:
        """Raise DataError if a label does not fit the loss; labels of held-out rows are checked too."""
        self._find_loss(loss).check_labels(*self._labels)

    def rehearse(self, loss: Variant, constraint: ConstraintSet) -> None:
        """Compile or load the kernels for rows that will be standardised, using one row and a dummy scaling."""
        rows, n = self._rows(), self._rows().train.columns
        dummy = Scaling(np.zeros(n), np.zeros(n), np.ones(n))
        one = Rows(rows.recipe, rows.train.take(slice(0, 1))).standardised(dummy)
        self._compute(one, loss, constraint, virtual_clients=1)

    def unscaled(self) -> Answerer:
        """Return the answerer for questions before the scaling is known."""
        from fism_client.compute.answerer import Unscaled  # noqa: PLC0415  # slow to load

        return Unscaled(self._rows())

    def answerer(self, loss: Variant, constraint: ConstraintSet, scaling: Scaling | None) -> Answerer:
        """Return the answerer for the complete problem; compile or load its kernels."""
        rows = self._rows().standardised(scaling)
        return self._compute(rows, loss, constraint, virtual_clients=self.virtual_clients)

    def _compute(self, rows: Rows, loss: Variant, constraint: ConstraintSet, *, virtual_clients: int) -> Answerer:
        from fism_client.compute.answerer import Compute  # noqa: PLC0415  # slow to load, and not always needed

        return Compute(rows, self._find_loss(loss), constraint, virtual_clients)

    def _rows(self) -> Rows:
        assert self._prepared is not None, "call prepare first"  # noqa: S101
        return self._prepared
