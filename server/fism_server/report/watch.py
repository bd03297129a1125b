"""The live page of a run: a small separate server, which reads the run's folder and changes nothing."""

from __future__ import annotations

import contextlib
import ipaddress
import logging
import socket
import subprocess
import sys
import threading
import time
from functools import cache
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from fism_common.errors import ConfigError
from fism_common.wire.tls import is_local
from fism_server.archive.snapshot import Reader
from fism_server.report.page import as_json, live_page, plotly
from fism_server.report.sections import view_of

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

_SHARE = 0.02
"""The share of one core that reading the run may take."""
_SHORTEST_PAUSE = 1.0
_KEEPALIVE_SECONDS = 10.0
_SECONDS_TO_TAKE = 10.0
_MOST_VIEWERS = 20
_log = logging.getLogger(__name__)


class Publisher:
    """Reads a run while it has viewers, once for all of them, and rarely enough not to slow down the run."""

    def __init__(self, folder: Path) -> None:
        """Take the run's folder; raise ConfigError if there is no run in it."""
        self._reader = Reader(folder)
        self._changed = threading.Condition()
        self._payload, self._number = "", 0
        self._viewers, self._trouble = 0, ""
        self._over = self._done = False

    def run(self) -> None:
        """Publish until ``end`` is called, and then once more."""
        stamp: object = None
        while not self._over:
            with self._changed:
                self._changed.wait_for(lambda: self._viewers or self._over)
            began = time.perf_counter()
            stamp = self._publish(stamp)
            pause = max(_SHORTEST_PAUSE, (time.perf_counter() - began) / _SHARE)
            with self._changed:
                self._changed.wait_for(lambda: self._over, pause)
        self._publish(None)
        with self._changed:
            self._done = True
            self._changed.notify_all()

    def end(self, seconds: float) -> None:
        """Publish once more, and stop; return when all viewers have been served, or after ``seconds``."""
        with self._changed:
            self._over = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._done and not self._viewers, seconds)

    def _publish(self, before: object) -> object:
        """Publish the run if its stamp has changed; return the stamp of what is shown."""
        try:
            stamp = self._reader.stamp()
            if stamp == before:
                return before
            payload = as_json(view_of(self._reader.read()))
        except Exception as error:  # noqa: BLE001  # keep what is shown, and try again
            if str(error) != self._trouble:
                _log.warning("the run cannot be shown: %s", error)
            self._trouble = str(error)
            return before
        with self._changed:
            self._payload, self._number = payload, self._number + 1
            self._changed.notify_all()
        return stamp

    def views(self) -> Generator[str | None]:
        """Yield views as they are published, and None as a keepalive; raise ConfigError for too many viewers."""
        with self._changed:
            if self._viewers >= _MOST_VIEWERS:
                raise ConfigError(f"this run already has {_MOST_VIEWERS} viewers")
            self._viewers += 1
            self._changed.notify_all()
        seen = 0
        try:
            while True:
                with self._changed:
                    self._changed.wait_for(lambda: self._number > seen or self._done, _KEEPALIVE_SECONDS)  # noqa: B023
                    new, seen, done, payload = self._number > seen, self._number, self._done, self._payload
                if done and not new:
                    return
                yield payload if new else None
        finally:
            with self._changed:
                self._viewers -= 1
                self._changed.notify_all()


class _Handler(BaseHTTPRequestHandler):
    """Answers GET only: there is nothing to change."""

    server: WatchServer
    timeout = _SECONDS_TO_TAKE

    def do_GET(self) -> None:
        if not self._is_for_us():
            # DNS rebinding: a foreign page whose host name points to this address must not read the run.
            self.send_error(HTTPStatus.MISDIRECTED_REQUEST, "this server does not have that host name")
        elif self.path == "/":
            self._send(live_page(), "text/html; charset=utf-8", "no-store")
        elif self.path == "/plotly.js":
            self._send(plotly(), "text/javascript; charset=utf-8", "max-age=3600")
        elif self.path == "/events":
            self._stream()
        else:
            self.send_error(HTTPStatus.NOT_FOUND)

    def _is_for_us(self) -> bool:
        """Whether the request's host is an IP address or one of our names, not a name that anyone can register."""
        host = urlsplit(f"//{self.headers.get('Host', '')}").hostname or ""
        try:
            ipaddress.ip_address(host)
        except ValueError:
            return host == "localhost" or host in _own_names()
        return True

    def _send(self, text: str, kind: str, keep: str) -> None:
        content = text.encode()
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", keep)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        self.wfile.write(content)

    def _stream(self) -> None:
        views = self.server.publisher.views()
        try:
            first = next(views, None)
        except ConfigError as error:
            self.send_error(HTTPStatus.SERVICE_UNAVAILABLE, str(error))
            return
        with contextlib.closing(views), contextlib.suppress(OSError):  # the viewer has disconnected
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Cache-Control", "no-store")
            self.end_headers()
            self._say("view", first)
            for view in views:
                self._say("view", view)
            self._say("end", "{}")

    def _say(self, event: str, data: str | None) -> None:
        self.wfile.write(b": still here\n\n" if data is None else f"event: {event}\ndata: {data}\n\n".encode())

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@cache
def _own_names() -> set[str]:
    return {socket.gethostname().lower(), socket.getfqdn().lower()}


class WatchServer(ThreadingHTTPServer):
    """Serves the page of one run."""

    daemon_threads = True

    def __init__(self, folder: Path, listening: socket.socket) -> None:
        """Take the run's folder, and a listening socket."""
        super().__init__(listening.getsockname()[:2], _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listening
        self.publisher = Publisher(folder)

    def handle_error(self, *_: object) -> None:
        """Log nothing when a browser disconnects."""

    def serve(self, until: Callable[[], object]) -> None:
        """Serve until ``until`` returns or raises; viewers then see the end."""
        for work in (self.serve_forever, self.publisher.run):
            threading.Thread(target=work, daemon=True).start()
        try:
            until()
        finally:
            self.publisher.end(_SECONDS_TO_TAKE)
            self.shutdown()
            self.server_close()


def listen(address: str, *, insecure: bool = False) -> socket.socket:
    """Return a socket that listens on HOST:PORT; raise ConfigError if it cannot, or if other hosts can reach it."""
    host, _, port = address.rpartition(":")
    if not is_local(address) and not insecure:
        raise ConfigError(
            f"the page is in plain text and reveals H, but other hosts can reach {address}: give --insecure if "
            "everyone there may read it"
        )
    try:
        return socket.create_server(
            (host.strip("[]"), int(port)), family=socket.AF_INET6 if "[" in host else socket.AF_INET
        )
    except (OSError, ValueError, OverflowError) as error:
        raise ConfigError(f"cannot listen on {address}: {error}; give another HOST:PORT with --listen") from error


def url_of(listening: socket.socket) -> str:
    """Return the URL of the page."""
    host, port = listening.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/"


@contextlib.contextmanager
def watched(folder: Path) -> Iterator[str]:
    """Serve the page of a run from a separate process, so that the run is not disturbed; yield the URL."""
    with listen("127.0.0.1:0") as listening:  # the process below inherits it
        url, number = url_of(listening), str(listening.fileno())
        # Its standard input closes when we end, for whatever reason. In a new session, Ctrl-C does not reach it.
        process = subprocess.Popen(  # noqa: S603  # our own module
            [sys.executable, "-P", "-m", "fism_server.report.watch", str(folder.absolute()), number],
            stdin=subprocess.PIPE,
            pass_fds=[listening.fileno()],
            start_new_session=True,
        )
    try:
        yield url
    finally:
        process.communicate()


def _main() -> None:
    folder, number = sys.argv[1:]
    WatchServer(Path(folder), socket.socket(fileno=int(number))).serve(sys.stdin.read)


if __name__ == "__main__":
    _main()
