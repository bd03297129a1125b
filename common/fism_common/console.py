"""What every command shares: logs on standard error, errors as one line and an exit code."""

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
    """Writes to what standard error is at the moment: a live line that is shown there makes room."""

    def emit(self, record: logging.LogRecord) -> None:
        print(self.format(record), file=sys.stderr)  # noqa: T201


@contextmanager
def command(*, quiet: bool = False, verbose: bool = False) -> Iterator[None]:
    """Run a command: set up its log, and end the process with the exit code that an error means."""
    # Both are read when gRPC begins to work, which is later.
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")  # what its core says besides is for its makers
    # It has no lowest version of TLS, and 1.2 would show a client's certificate in clear. This is the list of TLS 1.2
    # alone, and leaves it one cipher, which keys of elliptic curves such as ours cannot serve.
    os.environ["GRPC_SSL_CIPHER_SUITES"] = "ECDHE-RSA-AES256-GCM-SHA384"
    level = logging.INFO if verbose else logging.ERROR if quiet else logging.WARNING
    logging.basicConfig(level=level, format="%(levelname)s %(name)s: %(message)s", handlers=[_StandardError()])
    logging.captureWarnings(capture=True)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the first process of a container has no default
    try:
        yield
    except FismError as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201  # the command's own last word
        sys.exit(meaning(error).exit_code)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)  # noqa: T201
        sys.exit(130)
