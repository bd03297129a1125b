"""How every kernel is compiled."""

from typing import Final, TypedDict


class Options(TypedDict, total=False):
    """The part of numba's options that we set."""

    cache: bool
    nogil: bool
    fastmath: set[str]
    forceinline: bool


# Without 'reassoc' a dot product does not vectorise; with 'nnan' a NaN would be lost before the check for it.
COMPILED: Final[Options] = {"cache": True, "nogil": True, "fastmath": {"reassoc", "contract", "nsz", "arcp"}}

# Functions that kernels call are always inlined. Otherwise the process that compiles a kernel calls one copy of them,
# and processes that load the kernel from the cache call another, which may round differently.
INLINED: Final[Options] = {**COMPILED, "forceinline": True}

# For functions created at run time: numba caches code per source file, and they have none.
INLINED_UNCACHED: Final[Options] = {**INLINED, "cache": False}

# For code that relies on the order of operations: reassociation would turn (x - top) - tau into x - (top + tau).
EXACT: Final[Options] = {**INLINED, "fastmath": {"contract", "nsz"}}

# No fastmath: numbers must be parsed exactly, to the last bit.
PARSING: Final[Options] = {"cache": True, "nogil": True}
READING: Final[Options] = {**PARSING, "forceinline": True}
