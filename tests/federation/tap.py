"""A wire between a client and the server: it can be listened to, and it can fail in the ways that wires do."""

from __future__ import annotations

import contextlib
import socket
import threading


class Tap:
    """Forwards connections to a server, and keeps every byte that comes from it or goes to it."""

    def __init__(self, address: str) -> None:
        """Listen on a free port."""
        host, port = address.split(":")
        self._target = (host, int(port))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self.received: list[bytearray] = []
        self.sent: list[bytearray] = []
        self._open: list[tuple[socket.socket, socket.socket]] = []
        self._swallowing: set[socket.socket] = set()
        self._turn = threading.Event()
        self._pause = 0.0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(self._target)
            except OSError:  # the server is gone
                near.close()
                continue
            kept, sent = bytearray(), bytearray()
            self.received.append(kept)
            self.sent.append(sent)
            self._open.append((near, far))
            threading.Thread(target=self._forward, args=(near, far, sent), daemon=True).start()
            threading.Thread(target=self._forward, args=(far, near, kept), daemon=True).start()

    def _forward(self, source: socket.socket, target: socket.socket, kept: bytearray) -> None:
        with source, target:
            try:
                while data := source.recv(2**16):
                    kept += data
                    if self._pause:
                        self._turn.wait(self._pause)
                    if source not in self._swallowing:
                        target.sendall(data)
            except OSError:
                pass

    def cut(self) -> None:
        """Break every connection, as a router that restarts does."""
        for near, far in self._open:
            for one in (far, near):  # whoever forwards from near closes far, which would then only look open
                with contextlib.suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)

    def swallow(self) -> None:
        """Deliver nothing more on the connections that are open, and say nothing: both ends are half open."""
        self._swallowing |= {one for pair in self._open for one in pair}

    def half_close(self) -> None:
        """End the way from the client to the server, and leave the way back open."""
        for _, far in self._open:
            with contextlib.suppress(OSError):
                far.shutdown(socket.SHUT_WR)

    def delay(self, seconds: float) -> None:
        """Hold up all that is forwarded from now on."""
        self._pause = seconds

    def close(self) -> None:
        """Listen no more."""
        self._listener.close()
        self._turn.set()
        self.cut()
