"""Where the time of a round goes: to the client that answers last, to its way there and back, to the server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

Took = tuple[float, float]
"""Seconds of one answer: that the client computed, as it says, and that the server waited, by its own clock."""
_DTYPE = np.dtype("<f4")


def duration(seconds: float) -> str:
    """Return a time to be read: of three digits below a minute."""
    minutes, rest = divmod(round(seconds), 60)
    if not minutes:
        return f"{seconds:.3g} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def took(said: float, waited: float) -> Took:
    """Return the seconds of an answer; a client can have computed no longer than it was waited for."""
    return min(max(0.0, said), waited), waited  # max(0, nan) is 0


def pack_times(answers: Sequence[Took]) -> bytes:
    """Return the times of a round's answers, in federation order, as bytes."""
    return np.array(answers, _DTYPE).tobytes()


@dataclass(frozen=True)
class Times:
    """The seconds of rounds that had the same clients."""

    names: list[str]
    seconds: NDArray[np.float64]
    """Of each round, as a whole."""
    answers: NDArray[np.float64]
    """With axes round, client, and computed or waited."""

    @classmethod
    def of(cls, names: list[str], rounds: Sequence[tuple[float, bytes]]) -> Times:
        """Return the times of rounds: their seconds, and their answers as they were packed."""
        answers = np.frombuffer(b"".join(packed for _, packed in rounds), _DTYPE)
        return cls(names, np.array([s for s, _ in rounds]), answers.reshape(len(rounds), len(names), 2).astype(float))

    def split(self) -> NDArray[np.float64]:
        """Return what each round's seconds were spent on: the last client's computing, its way, the server."""
        last = self.answers[:, :, 1].argmax(axis=1)
        computed, waited = self.answers[np.arange(len(last)), last].T
        spent: NDArray[np.float64] = np.column_stack([computed, waited - computed, self.seconds - waited])
        return spent.clip(0.0)

    def median_split(self) -> dict[str, float]:
        """Return the medians of the split, in milliseconds."""
        client, network, server = 1e3 * np.median(self.split(), axis=0)
        return {"client": float(client), "network": float(network), "server": float(server)}

    def medians_of(self, name: str) -> dict[str, float]:
        """Return the medians of a client's computing, and of its way there and back, in milliseconds."""
        computed, waited = self.answers[:, self.names.index(name)].T
        return {"compute_ms": 1e3 * float(np.median(computed)), "network_ms": 1e3 * float(np.median(waited - computed))}
