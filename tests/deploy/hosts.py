"""Separate hosts on this one: network namespaces, and long wires between them that delay, lose, and can be cut.

A wire is made of two virtual network cards whose frames this process carries from one to the other. The kernel's own
way, the queueing discipline netem, is not in every kernel.
"""

from __future__ import annotations

import fcntl
import heapq
import itertools
import os
import random
import select
import shutil
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from ..unavailable import unavailable

SERVER = "10.77.0.1"
DELAY = 0.04
LOSS = 0.01
_TUNSETIFF = 0x400454CA
_TAP = 0x0002 | 0x1000  # a card, and frames without a header before them
_LONGEST_FRAME = 2**16


@dataclass
class Wire:
    """A wire between two cards: every frame arrives ``DELAY`` seconds later, or, one in a hundred, not at all."""

    ends: tuple[int, int]
    random: random.Random
    lost: int = 0
    is_cut: bool = False
    _ended: threading.Event = field(default_factory=threading.Event)

    def carry(self) -> None:
        """Carry frames both ways until the end."""
        other = dict(zip(self.ends, reversed(self.ends), strict=True))
        under_way: list[tuple[float, int, int, bytes]] = []
        count = itertools.count()
        while not self._ended.is_set():
            wait = max(under_way[0][0] - time.monotonic(), 0.0) if under_way else 0.1
            for end in select.select(self.ends, [], [], min(wait, 0.1))[0]:
                frame = os.read(end, _LONGEST_FRAME)
                if self.is_cut or self.random.random() < LOSS:
                    self.lost += 1
                else:
                    heapq.heappush(under_way, (time.monotonic() + DELAY, next(count), other[end], frame))
            while under_way and under_way[0][0] <= time.monotonic():
                _, _, end, frame = heapq.heappop(under_way)
                os.write(end, frame)

    def end(self) -> None:
        """Stop."""
        self._ended.set()


@dataclass(frozen=True)
class Host:
    """One host: a namespace with a card or several."""

    namespace: str
    wire: Wire | None = None

    def popen(self, *arguments: object) -> subprocess.Popen[str]:
        """Start ``fism`` there."""
        return subprocess.Popen(self._command(*arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def fism(self, *arguments: object) -> str:
        """Run ``fism`` there to its end; return what it prints."""
        return subprocess.run(self._command(*arguments), check=True, capture_output=True, text=True).stdout

    def _command(self, *arguments: object) -> list[str]:
        return ["ip", "netns", "exec", self.namespace, sys.executable, "-m", "fism", *map(str, arguments)]


@contextmanager
def network(count: int) -> Iterator[tuple[Host, list[Host]]]:
    """Make a server's host, reached at ``SERVER``, and so many others, each at the end of a wire of its own."""
    if shutil.which("ip") is None or os.geteuid() != 0:
        unavailable("network namespaces need root, and the command `ip` of iproute2")
    prefix = f"f{os.getpid()}"
    with ExitStack() as stack:
        server = stack.enter_context(_namespace(f"{prefix}s"))
        _ip("-n", server, "link", "add", "lan", "type", "bridge")
        _ip("-n", server, "address", "add", f"{SERVER}/24", "dev", "lan")
        _ip("-n", server, "link", "set", "lan", "up")
        others = []
        for i in range(count):
            there = stack.enter_context(_namespace(f"{prefix}c{i}"))
            ends = (
                stack.enter_context(_card(f"{prefix}a{i}", server)),
                stack.enter_context(_card(f"{prefix}b{i}", there)),
            )
            _ip("-n", server, "link", "set", f"{prefix}a{i}", "master", "lan")
            _ip("-n", there, "address", "add", f"10.77.0.{i + 2}/24", "dev", f"{prefix}b{i}")
            wire = Wire(ends, random.Random(i))  # noqa: S311  # noise, not secrets
            carrier = threading.Thread(target=wire.carry)
            carrier.start()
            stack.callback(carrier.join)
            stack.callback(wire.end)
            others.append(Host(there, wire))
        yield Host(server), others


@contextmanager
def _namespace(name: str) -> Iterator[str]:
    try:
        _ip("netns", "add", name)
    except subprocess.CalledProcessError as error:
        unavailable(f"no network namespace can be made: {error.stderr.strip()}")
    try:
        _ip("-n", name, "link", "set", "lo", "up")
        yield name
    finally:
        _ip("netns", "delete", name)


@contextmanager
def _card(name: str, namespace: str) -> Iterator[int]:
    """Put a card into a namespace; give what its frames are read from and written to."""
    try:
        card = os.open("/dev/net/tun", os.O_RDWR)
    except OSError as error:
        unavailable(f"a virtual network card needs /dev/net/tun: {error}")
    try:
        fcntl.ioctl(card, _TUNSETIFF, struct.pack("16sH22x", name.encode(), _TAP))
        _ip("link", "set", name, "netns", namespace)
        _ip("-n", namespace, "link", "set", name, "up")
        yield card
    finally:
        os.close(card)


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True)
