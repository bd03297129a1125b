"""A client of a real federation that sends back the x it is given."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from fism_client.session import Introduction, Session
from fism_common.exchange import Evaluation, Order, Reply
from fism_common.tls import TlsFiles

if TYPE_CHECKING:
    from fism_common.vectors import Vector


class Idle:
    """A worker that does no work."""

    def answer(self, order: Order) -> Reply:
        """Return x as it came."""
        return Reply(order.x, 0.0)

    def inner(self, x: Vector) -> float:  # noqa: ARG002
        """Return nothing lost."""
        return 0.0

    def evaluate(self, x: Vector) -> Evaluation | None:  # noqa: ARG002
        """Hold nothing out."""
        return None


address, name, columns, *certs = sys.argv[1:]
tls = TlsFiles.of(Path(certs[0]), name) if certs else None
Session(address, Introduction(name=name, rows=1, columns=int(columns)), lambda _loss, _set: Idle(), tls=tls).run()
