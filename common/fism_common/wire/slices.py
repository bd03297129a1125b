"""Vectors as little-endian entries of eight bytes, cut into slices that stay far below gRPC's message limit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from fism_common.errors import ContractError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from fism_common.sums.grid import Words
    from fism_common.vectors import Vector

Bytes: TypeAlias = bytes | memoryview
Entries: TypeAlias = "Vector | Words"

SLICE = 2**17
"""Entries in one message, over all of its vectors: 1 MiB."""

_INTEGER, _DOUBLE = np.dtype("<i8"), np.dtype("<f8")
_INTEGERS = {"points"}
"""The vectors of whole numbers; all others are of doubles."""
_BYTES = 8
"""Of an entry."""


def as_entries(x: Entries) -> NDArray[Any]:
    """Return the vector in the wire's byte order; a copy only on a big-endian machine."""
    return x.astype(x.dtype.newbyteorder("<"), copy=False)


def pack(x: Entries) -> bytes:
    """Return the entries as bytes."""
    return as_entries(x).tobytes()


def slices(n: int, vectors: int) -> Iterator[slice]:
    """Yield the slices of ``vectors`` vectors of n entries, sent together; one empty slice if there are none."""
    if not vectors:
        yield slice(0, 0)
        return
    size = SLICE // vectors
    for begin in range(0, n, size):
        yield slice(begin, min(begin + size, n))


class Assembly:
    """Vectors of n entries, put together from slices that arrive in order, in memory that is allocated once."""

    def __init__(self, n: int, names: Sequence[str]) -> None:
        """Allocate a vector for each name."""
        self.vectors: dict[str, Any] = {name: np.empty(n, _INTEGER if name in _INTEGERS else _DOUBLE) for name in names}
        self._n, self._filled = n, 0

    def add(self, offset: int, part: Callable[[str], Bytes]) -> bool:
        """Copy one slice of each vector into its place; return whether all vectors are complete.

        ``part`` returns a slice by the vector's name. The slice after the last one starts over. Raises ContractError
        for a slice that is out of order, of unequal lengths or too long.
        """
        if not self.vectors:
            return True
        if self._filled == self._n:
            self._filled = 0
        parts = [part(name) for name in self.vectors]
        size, rest = divmod(len(parts[0]), _BYTES)
        even = rest == 0 and all(len(one) == len(parts[0]) for one in parts)
        if not even or size == 0 or offset != self._filled or offset + size > self._n:
            raise ContractError(
                f"a slice of {[len(one) for one in parts]} bytes at entry {offset} does not continue the vector: "
                f"{self._filled} of {self._n} entries have arrived"
            )
        for vector, one in zip(self.vectors.values(), parts, strict=True):
            vector[offset : offset + size] = np.frombuffer(one, vector.dtype)
        self._filled += size
        return self._filled == self._n

    def clear(self) -> None:
        """Discard the slices of incomplete vectors."""
        self._filled = 0
