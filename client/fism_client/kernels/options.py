"""How every kernel is compiled."""

from typing import Final, TypedDict


class Options(TypedDict):
    """The part of numba's options that we set."""

    cache: bool
    nogil: bool
    fastmath: set[str]


# Without 'reassoc' a dot product does not vectorise; with 'nnan' a NaN would be lost on its way to the check.
COMPILED: Final[Options] = {"cache": True, "nogil": True, "fastmath": {"reassoc", "contract", "nsz", "arcp"}}

# Where the order of operations is the point: reassociated, (x - top) - tau would be x - (top + tau).
EXACT: Final[Options] = {"cache": True, "nogil": True, "fastmath": {"contract", "nsz"}}
