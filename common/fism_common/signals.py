"""Handling of SIGINT (Ctrl-C) and SIGTERM (a service manager) while an event loop runs."""

from __future__ import annotations

import asyncio
import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def on_interrupt(call: Callable[[], object]) -> Iterator[None]:
    """Run ``call`` in the running loop at SIGINT and SIGTERM; restore the previous handlers at the end.

    Outside the main thread, the only one that can handle signals, this changes nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    for number in _SIGNALS:
        loop.add_signal_handler(number, call)
    try:
        yield
    finally:
        for number, handler in before.items():
            loop.remove_signal_handler(number)  # this sets the default, which ends the process silently
            signal.signal(number, handler)
