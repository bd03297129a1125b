"""Atomic file writes: to a temporary name, synced, renamed."""

from __future__ import annotations

import os
import tokenize
import zipfile
import zlib
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from fism_common.vectors import Vector


@contextmanager
def whole_file(path: Path, mode: int = 0o666) -> Iterator[BinaryIO]:
    """Yield a file to write to; it is renamed to ``path`` only when all of it is on the disk.

    ``mode`` sets its permissions, subject to the process's umask.
    """
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        scratch.unlink(missing_ok=True)
        # O_EXCL: nobody else can create the file first, and then read what is written.
        with open(scratch, "wb", opener=lambda name, flags: os.open(name, flags | os.O_EXCL, mode)) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        scratch.replace(path)
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise


BROKEN_ARRAYS = (
    *(ArithmeticError, AttributeError, EOFError, LookupError, MemoryError, OSError, RuntimeError, SyntaxError),
    *(TypeError, ValueError, tokenize.TokenError, zipfile.BadZipFile, zlib.error),
)
"""Everything that NumPy has been seen to raise for a damaged .npy or .npz file."""


def write_bytes(path: Path, content: bytes, mode: int = 0o666) -> None:
    """Write a file atomically."""
    with whole_file(path, mode) as file:
        file.write(content)


def write_npz(path: Path, **vectors: Vector) -> None:
    """Write named vectors to an .npz file atomically."""
    with whole_file(path) as file:
        np.savez(file, allow_pickle=False, **vectors)
