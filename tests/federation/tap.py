"""A wire tap."""

from __future__ import annotations

import contextlib
import socket
import threading


class Tap:
    """A wire tap: forwards a connection to the server, and keeps every byte that comes from it."""

    def __init__(self, address: str) -> None:
        """Listen on a free port."""
        host, port = address.split(":")
        self._target = (host, int(port))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self.received: list[bytearray] = []
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            far = socket.create_connection(self._target)
            kept = bytearray()
            self.received.append(kept)
            self._open += [near, far]
            threading.Thread(target=self._forward, args=(near, far, None), daemon=True).start()
            threading.Thread(target=self._forward, args=(far, near, kept), daemon=True).start()

    @staticmethod
    def _forward(source: socket.socket, target: socket.socket, kept: bytearray | None) -> None:
        with source, target:
            try:
                while data := source.recv(2**16):
                    if kept is not None:
                        kept += data
                    target.sendall(data)
            except OSError:
                pass

    def cut(self) -> None:
        """Break every connection, as a network does."""
        for one in self._open:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Listen no more."""
        self._listener.close()
