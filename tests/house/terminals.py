"""The command blocks of a page, typed into terminals as its reader does."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import tempfile
import threading
from dataclasses import dataclass, field
from pathlib import Path

_BLOCK = re.compile(r"(?:<!-- terminal (\d) -->\n)?```sh\n(.*?)```", re.DOTALL)


@dataclass(frozen=True)
class Block:
    """Commands, and the terminal that they are for."""

    terminal: int
    text: str


def blocks(page: Path) -> list[Block]:
    """Return the command blocks of a page, in order; those without a terminal are for the first."""
    return [Block(int(number or 1), text) for number, text in _BLOCK.findall(page.read_text())]


@dataclass
class Terminal:
    """A shell that ends at the first command that fails."""

    folder: Path
    environment: dict[str, str]
    said: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Open it."""
        self._shell = subprocess.Popen(
            ["/bin/bash", "-e"],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._done, self._ended = threading.Semaphore(0), False
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self._shell.stdout is not None
        for line in self._shell.stdout:
            if line == "-- that was all --\n":
                self._done.release()
            else:
                self.said.append(line)
        self._ended = True
        self._done.release()

    def type(self, text: str) -> None:
        """Type commands, without waiting for them."""
        assert self._shell.stdin is not None
        # By a file: commands must not read those after them.
        with tempfile.NamedTemporaryFile("w", suffix=".sh", dir=self.folder.parent, delete=False) as file:
            file.write(text)
        self._shell.stdin.write(f". {file.name} < /dev/null\necho '-- that was all --'\n")
        self._shell.stdin.flush()

    def wait(self, seconds: float) -> None:
        """Wait until a block is done; fail if the shell has ended for it."""
        assert self._done.acquire(timeout=seconds), f"not done in {seconds:g} s:\n{''.join(self.said)}"
        assert not self._ended, "".join(self.said)

    def close(self) -> None:
        """Close it, with all that runs in it."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._shell.pid, signal.SIGKILL)
        self._shell.communicate(timeout=30)


def follow(page: Path, folder: Path, replace: dict[str, str], seconds: float) -> str:
    """Do all that a page says in a folder, and return what was seen; a block may be waited for by the next terminal's.

    ``replace`` is done to the commands: for a port of our own, and for what is run elsewhere.
    """
    path = f"{Path(os.__file__).parents[2] / 'bin'}:/usr/bin:/bin"
    environment = {"PATH": path, "HOME": str(folder.parent), "LANG": "C.UTF-8"}
    terminals: dict[int, Terminal] = {}
    waiting: list[Terminal] = []
    try:
        found = blocks(page)
        for i, block in enumerate(found):
            text = block.text
            for old, new in replace.items():
                text = text.replace(old, new)
            if block.terminal not in terminals:
                terminals[block.terminal] = Terminal(folder, environment)
            terminal = terminals[block.terminal]
            terminal.type(text)
            waiting.append(terminal)
            if i + 1 == len(found) or found[i + 1].terminal <= block.terminal:  # else the next terminal takes part
                while waiting:
                    waiting.pop().wait(seconds)
        return "".join(line for terminal in terminals.values() for line in terminal.said)
    finally:
        for terminal in terminals.values():
            terminal.close()
