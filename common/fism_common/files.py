"""Files that are there whole or not at all: written under another name, synced, renamed."""

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
    """Give a file to write to, which takes its name and place only when all of it is on the disk.

    ``mode`` is who may read and write it, less what the process never allows.
    """
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        scratch.unlink(missing_ok=True)
        # A new file, so that nobody else has made it before, to read along.
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
"""All that NumPy is seen to raise for a damaged .npy or .npz file."""


def write_bytes(path: Path, content: bytes, mode: int = 0o666) -> None:
    """Write a file."""
    with whole_file(path, mode) as file:
        file.write(content)


def write_npz(path: Path, **vectors: Vector) -> None:
    """Write vectors under their names."""
    with whole_file(path) as file:
        np.savez(file, allow_pickle=False, **vectors)
