"""What Ctrl-C and a service manager's wish to end do, while an event loop runs."""

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
    """Call this from the running loop at SIGINT and SIGTERM; afterwards they do what they did before.

    In another thread than the main one, which alone can take signals, nothing is changed.
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
            loop.remove_signal_handler(number)  # leaves what Python begins with, which ends us without a word
            signal.signal(number, handler)
