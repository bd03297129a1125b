"""The lock on a run's folder: one server writes to it, and others can see whether one does."""

from __future__ import annotations

import fcntl
import logging
import os
import time
from typing import TYPE_CHECKING

from fism_common.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

_log = logging.getLogger(__name__)


def lock(folder: Path) -> int:
    """Lock the folder for this process, and return the open file; the lock ends when it is closed, even by a crash."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise ConfigError(f"cannot open the run folder {folder}: {error.strerror}") from error
    for last in (False, False, True):
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            if last:
                os.close(handle)
                raise ConfigError(f"another server is running in {folder}; stop it first") from None
            time.sleep(0.05)  # is_running takes the lock for a moment
        except OSError as error:
            _log.warning("cannot lock %s (%s): make sure that no other server runs there", folder, error.strerror)
            break
    return handle


def is_running(folder: Path) -> bool:
    """Whether a server runs in this folder, on this machine."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False  # a file system without locks
    else:
        return False
    finally:
        os.close(handle)
