"""Code that every command shares: logs on standard error, errors as one line and an exit code."""

from __future__ import annotations

import logging
import os
import signal
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from fism_common.errors import FismError, meaning

if TYPE_CHECKING:
    from collections.abc import Iterator


class _StandardError(logging.Handler):
    """Writes to the current sys.stderr: rich replaces it while it shows a live line, so that both stay readable."""

    def emit(self, record: logging.LogRecord) -> None:
        print(self.format(record), file=sys.stderr)  # noqa: T201


@contextmanager
def command(*, quiet: bool = False, verbose: bool = False) -> Iterator[None]:
    """Run a command: set up logging, and turn errors into one line and an exit code."""
    # gRPC reads both variables when it starts, which is later.
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")  # gRPC's core logs only help gRPC developers
    # gRPC has no setting for the minimum TLS version, and TLS 1.2 would send a client's certificate unencrypted. This
    # list applies to TLS 1.2 only. Its one cipher needs an RSA key, and ours are elliptic-curve keys.
    os.environ["GRPC_SSL_CIPHER_SUITES"] = "ECDHE-RSA-AES256-GCM-SHA384"
    level = logging.INFO if verbose else logging.ERROR if quiet else logging.WARNING
    logging.basicConfig(level=level, format="%(levelname)s %(name)s: %(message)s", handlers=[_StandardError()])
    logging.captureWarnings(capture=True)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # PID 1 of a container has no default action
    try:
        yield
    except FismError as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201  # what the user sees of the error
        sys.exit(meaning(error).exit_code)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)  # noqa: T201
        sys.exit(130)
