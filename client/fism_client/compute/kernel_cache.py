"""The folder that caches compiled kernels between processes, and the lock that keeps it consistent."""

from __future__ import annotations

import atexit
import hashlib
import logging
import os
import shutil
import sys
import tempfile
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import fism_common
from fism_common.errors import ConfigError

if sys.platform != "win32":
    import fcntl

if TYPE_CHECKING:
    from collections.abc import Iterator

_log = logging.getLogger(__name__)


@cache
def folder() -> Path:
    """Return the folder of this version's kernels, created if needed; a temporary one if the usual one is not writable.

    It is under NUMBA_CACHE_DIR if that is set, otherwise under the user's cache folder. Its name contains a hash of
    all sources that kernels are compiled from: numba notices an edit of a kernel's own file, but not of a file that it
    calls into.
    Raises ConfigError if a temporary folder cannot be created either.
    """
    # Setting it at the entry point would be too late: numba fixes a kernel's folder when the kernel is imported.
    try:
        given = os.environ.get("NUMBA_CACHE_DIR")
        usual = Path(given) if given else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fism"
        place = usual / f"kernels-{_fingerprint()}"
        place.mkdir(parents=True, exist_ok=True)
        with (place / "lock").open("a"), tempfile.TemporaryFile(dir=place):
            return place
    except (OSError, RuntimeError) as error:  # RuntimeError: there is no home directory
        _log.warning("cannot cache kernels, so they are compiled again (%s); set NUMBA_CACHE_DIR", error)
        try:
            place = Path(tempfile.mkdtemp(prefix="fism-kernels-"))
        except OSError as failure:
            raise ConfigError(
                f"cannot create a folder for compiled kernels: {failure}; in a container, mount a tmpfs at /tmp"
            ) from failure
        atexit.register(shutil.rmtree, place, ignore_errors=True)
        return place


@contextmanager
def at_home() -> Iterator[None]:
    """Make kernels that are imported inside use our cache folder; other numba code is not affected."""
    from numba import config

    settings = vars(config)
    before = settings["CACHE_DIR"]
    settings["CACHE_DIR"] = str(folder())
    try:
        yield
    finally:
        settings["CACHE_DIR"] = before


@contextmanager
def first_call() -> Iterator[None]:
    """Hold the lock for a process's first call to a kernel with new types.

    Without it, processes that compile different signatures together can leave an index that points to the wrong code.
    """
    with (folder() / "lock").open("a") as lock:
        if sys.platform != "win32":
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _fingerprint() -> str:
    client, common = Path(__file__).parents[1], Path(fism_common.__file__).parent
    sources = [*sorted((client / "kernels").glob("*.py")), *sorted((common / "problem").glob("*.py"))]
    return hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:16]
