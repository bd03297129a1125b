"""Output of long-running commands: progress bars, and result tables at the end."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from rich.progress import TaskID


@contextmanager
def bars() -> Iterator[Callable[[str, int, int], None]]:
    """Show a progress bar for each part of an experiment."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        bars: dict[str, TaskID] = {}

        def tick(what: str, done: int, total: int) -> None:
            if what not in bars:
                bars[what] = progress.add_task(what, total=total)
            progress.update(bars[what], completed=done)

        yield tick


def show_tables(folder: Path, *tables: str) -> None:
    """Print an experiment's tables and the folder with all its files."""
    for table in tables:
        print((folder / table).read_text())  # noqa: T201  # the result
    print(f"all files are in {folder}")  # noqa: T201
