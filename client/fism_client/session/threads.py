"""Work in a thread of its own, beside the event loop."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


async def beside(work: Callable[[], T]) -> T:
    """Return what ``work`` returns, or raise what it raises; meanwhile the loop goes on.

    Nobody waits for the thread of a call that is cancelled: a kernel cannot be broken off. ``asyncio.to_thread`` would
    have the whole process wait for it at its end.
    """
    loop = asyncio.get_running_loop()
    result: asyncio.Future[T] = loop.create_future()

    def settle(how: Callable[[Any], None], value: object) -> None:
        def now() -> None:
            if not result.done():
                how(value)

        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(now)

    def run() -> None:
        try:
            value = work()
        except BaseException as error:  # noqa: BLE001  # it is raised where it is waited for
            settle(result.set_exception, error)
        else:
            settle(result.set_result, value)

    threading.Thread(target=run, daemon=True).start()
    return await result
