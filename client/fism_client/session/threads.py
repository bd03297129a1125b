"""Work in a thread, while the event loop keeps running."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


async def in_thread(work: Callable[[], T]) -> T:
    """Return what ``work`` returns, or raise what it raises.

    If the call is cancelled, the thread is abandoned: a kernel cannot be interrupted. ``asyncio.to_thread`` would make
    the whole process wait for it on exit.
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
        except BaseException as error:  # noqa: BLE001  # it is raised in the caller
            settle(result.set_exception, error)
        else:
            settle(result.set_result, value)

    threading.Thread(target=run, daemon=True).start()
    return await result
