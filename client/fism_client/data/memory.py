"""Memory for many rows."""

from __future__ import annotations

from mmap import mmap
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def fresh(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return memory that the system allocates page by page: NumPy's waits for huge pages, a second for 400 MB."""
    size = int(np.prod(shape)) * dtype.itemsize
    return np.ndarray(shape, dtype, mmap(-1, size) if size else b"")
