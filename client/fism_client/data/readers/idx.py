"""Files in the IDX format, which MNIST uses: a header with the shape, then the entries; gzipped or not."""

from __future__ import annotations

import gzip
import struct
import zlib
from typing import TYPE_CHECKING

import numpy as np

from fism_common.errors import DataError

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

_GZIP = b"\x1f\x8b"
_BYTES = 0x08
_MOST_DIMENSIONS = 32


def read_idx(path: Path) -> NDArray[np.uint8]:
    """Return the array of bytes in an IDX file; raise DataError that names the file."""
    try:
        content = path.read_bytes()
        if content.startswith(_GZIP):
            content = gzip.decompress(content)
    except FileNotFoundError:
        raise DataError(f"there is no file {path}") from None
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"cannot read {path}: {error}") from error
    return parse_idx(content, str(path))


def parse_idx(content: bytes, where: str) -> NDArray[np.uint8]:
    """Return the array of bytes that ``content`` holds; errors name ``where`` as its source."""
    if len(content) < 4 or content[:2] != b"\0\0":  # noqa: PLR2004  # the magic number's length
        raise DataError(f"{where} is not in the IDX format: it begins with {content[:4].hex() or 'nothing'}")
    kind, dimensions = content[2], content[3]
    if kind != _BYTES:
        raise DataError(f"{where} has entries of type {kind:#04x}; only unsigned bytes, {_BYTES:#04x}, are supported")
    header = 4 + 4 * dimensions
    if dimensions > _MOST_DIMENSIONS:
        raise DataError(f"{where} has {dimensions} dimensions; at most {_MOST_DIMENSIONS} are supported")
    if len(content) < header:
        raise DataError(f"{where} ends in the middle of its header")
    shape = struct.unpack(f">{dimensions}I", content[4:header])
    entries = np.frombuffer(content, np.uint8, offset=header)
    if entries.size != int(np.prod(shape, dtype=object)):
        raise DataError(f"{where} has {entries.size} entries, but its header says {' x '.join(map(str, shape))}")
    return entries.reshape(shape)
