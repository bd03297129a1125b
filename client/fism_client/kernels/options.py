"""How every kernel is compiled."""

from typing import Final, TypedDict


class Options(TypedDict, total=False):
    """The part of numba's options that we set."""

    cache: bool
    nogil: bool
    fastmath: set[str]
    forceinline: bool


# Without 'reassoc' a dot product does not vectorise; with 'nnan' a NaN would be lost on its way to the check.
COMPILED: Final[Options] = {"cache": True, "nogil": True, "fastmath": {"reassoc", "contract", "nsz", "arcp"}}

# What kernels call is always inlined. Else the process that compiles a kernel calls one copy of it, and processes that
# load the kernel from the cache another, which may round otherwise.
INLINED: Final[Options] = {**COMPILED, "forceinline": True}

# Where the order of operations is the point: reassociated, (x - top) - tau would be x - (top + tau).
EXACT: Final[Options] = {**INLINED, "fastmath": {"contract", "nsz"}}

# Every operation as it is written: numbers are read to the last bit.
PARSING: Final[Options] = {"cache": True, "nogil": True}
READING: Final[Options] = {**PARSING, "forceinline": True}
