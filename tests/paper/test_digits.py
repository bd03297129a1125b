"""MNIST: read from a folder, or fetched from a mirror and checked; refused in words if it is not whole."""

from __future__ import annotations

import gzip
import hashlib
import http.server
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fism.paper import digits
from fism_client.data.readers.idx import parse_idx, read_idx
from fism_common.errors import DataError


def idx(array: np.ndarray) -> bytes:
    """Return an array of bytes in the IDX format."""
    return bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def write_digits(folder: Path, count: int = 40, side: int = 4) -> Path:
    """Write images of ten digits, most of them 0 and 1, which a line separates."""
    rng = np.random.default_rng(0)
    folder.mkdir()
    for part in ("train", "t10k"):
        labels = rng.permutation(np.repeat(np.arange(4), count)).astype(np.uint8)
        images = rng.integers(0, 100, (labels.size, side, side)).astype(np.uint8)
        images[labels == 1, 0, 0] = 255
        images[labels == 0, 0, 0] = 0
        (folder / f"{part}-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(images)))
        (folder / f"{part}-labels-idx1-ubyte").write_bytes(idx(labels))
    return folder


def test_array_in_an_idx_file_is_read_gzipped_or_not(tmp_path: Path) -> None:
    """Any number of dimensions."""
    array = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    (tmp_path / "a").write_bytes(idx(array))
    (tmp_path / "b.gz").write_bytes(gzip.compress(idx(array)))
    for name in ("a", "b.gz"):
        np.testing.assert_array_equal(read_idx(tmp_path / name), array)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "begins with nothing"),
        (b"PK\3\4", "is not in the IDX format"),
        (b"\0\0\x0d\1\0\0\0\1\0\0\0\0", "entries of type 0x0d"),
        (b"\0\0\x08\3\0\0", "in the middle of its header"),
        (b"\0\0\x08\1\0\0\0\5abc", "has 3 entries, but its header says 5"),
        (b"\x1f\x8b\0\0", "cannot read"),
        (gzip.compress(bytes(99), mtime=0)[:12] + b"\xff" * 12, "cannot read"),
    ],
)
def test_file_that_is_not_idx_is_refused_with_the_reason(tmp_path: Path, content: bytes, reason: str) -> None:
    """By its name."""
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(DataError, match=reason) as refused:
        read_idx(tmp_path / "file")
    assert "file" in str(refused.value)


@given(st.binary(max_size=40))
def test_any_bytes_are_an_array_or_refused(content: bytes) -> None:
    """Nothing else comes out, also where the header asks for more than there is memory."""
    try:
        array = parse_idx(b"\0\0\x08" + content, "some bytes")
    except DataError:
        return
    assert array.nbytes <= len(content)


def test_zeros_and_ones_are_taken_and_sampled_half_and_half(tmp_path: Path) -> None:
    """In random order, pixels from 0 to 1; more than there are is refused."""
    train, test = digits.read_digits(write_digits(tmp_path / "mnist"))
    assert train.rows.shape == test.rows.shape == (80, 16)
    sample = train.sample(20, np.random.default_rng(1))
    assert sorted(sample.labels) == [-1.0] * 10 + [1.0] * 10
    assert sample.scale == 1 / 255
    np.testing.assert_array_equal(sample.labels > 0, np.asarray(sample.rows)[:, 0] == 255)
    with pytest.raises(DataError, match="cannot take 82 images"):
        train.sample(82, np.random.default_rng(1))


def test_folder_without_the_files_is_told(tmp_path: Path) -> None:
    """With what to say."""
    with pytest.raises(DataError, match="files with --data"):
        digits.read_digits(tmp_path)


@contextmanager
def mirror(folder: Path) -> Iterator[str]:
    """Serve a folder on this host."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()


def test_download_goes_on_to_the_mirror_that_has_the_file_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One is not reached, one has another file, one a damaged one; what is there already is not fetched again."""
    good, bad, damaged = (tmp_path / name for name in ("good", "bad", "damaged"))
    whole = gzip.compress(b"right")
    for folder, content in ((good, whole), (bad, gzip.compress(b"wrong")), (damaged, whole[:12] + b"\xff" * 12)):
        folder.mkdir()
        (folder / "f.gz").write_bytes(content)
    monkeypatch.setattr(digits, "FILES", {"f": hashlib.sha256(b"right").hexdigest()})
    kept = tmp_path / "cache/mnist"
    with mirror(bad) as wrong, pytest.raises(DataError, match="has the wrong checksum"):
        digits.download(kept, mirrors=[wrong])
    assert not kept.exists()
    with mirror(bad) as wrong, mirror(damaged) as broken, mirror(good) as right:
        digits.download(kept, mirrors=["http://127.0.0.1:9/", wrong, broken, right])
    assert gzip.decompress((kept / "f.gz").read_bytes()) == b"right"
    digits.download(kept, mirrors=[])


def test_download_that_fails_says_what_to_do() -> None:
    """With every mirror's reason."""
    with pytest.raises(DataError, match=r"give their folder with --data\n  http://127.0.0.1:9/: "):
        digits.download(Path("nowhere"), mirrors=["http://127.0.0.1:9/"])
