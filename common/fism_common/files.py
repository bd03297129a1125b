"""Files that are there whole or not at all: written under another name, synced, renamed."""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from pathlib import Path

    from fism_common.vectors import Vector


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file."""
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    with scratch.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    scratch.replace(path)


def write_npz(path: Path, **vectors: Vector) -> None:
    """Write vectors under their names."""
    content = io.BytesIO()
    np.savez(content, allow_pickle=False, **vectors)
    write_bytes(path, content.getvalue())
