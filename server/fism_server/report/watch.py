"""The page while a run goes on: a small server of its own, which reads the run's folder and changes nothing."""

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
"""Of one core, for reading the run."""
_SHORTEST_PAUSE = 1.0
_SECONDS_BETWEEN_SIGNS = 10.0
_SECONDS_TO_TAKE = 10.0
_MOST_VIEWERS = 20
_log = logging.getLogger(__name__)


class Publisher:
    """Reads a run as long as somebody looks, once for all of them, and seldom enough to cost the run nothing."""

    def __init__(self, folder: Path) -> None:
        """Take the run's folder; raise ConfigError if there is no run in it."""
        self._reader = Reader(folder)
        self._changed = threading.Condition()
        self._payload, self._number = "", 0
        self._viewers, self._trouble = 0, ""
        self._over = self._done = False

    def run(self) -> None:
        """Publish until told that it is over, and then once more."""
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
        """Let it publish once more, and end; return when everybody who looks was told, or after so many seconds."""
        with self._changed:
            self._over = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._done and not self._viewers, seconds)

    def _publish(self, before: object) -> object:
        """Publish the run if its stamp is another one than before; return the stamp of what is shown."""
        try:
            stamp = self._reader.stamp()
            if stamp == before:
                return before
            payload = as_json(view_of(self._reader.read()))
        except Exception as error:  # noqa: BLE001  # what was shown stays, and it is tried again
            if str(error) != self._trouble:
                _log.warning("the run cannot be shown: %s", error)
            self._trouble = str(error)
            return before
        with self._changed:
            self._payload, self._number = payload, self._number + 1
            self._changed.notify_all()
        return stamp

    def views(self) -> Generator[str | None]:
        """Yield views as they come, and None as a sign of life; raise ConfigError if too many look already."""
        with self._changed:
            if self._viewers >= _MOST_VIEWERS:
                raise ConfigError(f"{_MOST_VIEWERS} look at this run already")
            self._viewers += 1
            self._changed.notify_all()
        seen = 0
        try:
            while True:
                with self._changed:
                    self._changed.wait_for(lambda: self._number > seen or self._done, _SECONDS_BETWEEN_SIGNS)  # noqa: B023
                    new, seen, done, payload = self._number > seen, self._number, self._done, self._payload
                if done and not new:
                    return
                yield payload if new else None
        finally:
            with self._changed:
                self._viewers -= 1
                self._changed.notify_all()


class _Handler(BaseHTTPRequestHandler):
    """Answers GET alone: there is nothing to change."""

    server: WatchServer
    timeout = _SECONDS_TO_TAKE

    def do_GET(self) -> None:
        if not self._is_meant():
            # A page from elsewhere whose name was made to lead here must not read along.
            self.send_error(HTTPStatus.MISDIRECTED_REQUEST, "this is not that host")
        elif self.path == "/":
            self._send(live_page(), "text/html; charset=utf-8", "no-store")
        elif self.path == "/plotly.js":
            self._send(plotly(), "text/javascript; charset=utf-8", "max-age=3600")
        elif self.path == "/events":
            self._stream()
        else:
            self.send_error(HTTPStatus.NOT_FOUND)

    def _is_meant(self) -> bool:
        """Whether the browser was sent here by an address or a name of ours, and not by one that anybody can make."""
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
        with contextlib.closing(views), contextlib.suppress(OSError):  # who looked has gone
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
        """Say nothing."""


@cache
def _own_names() -> set[str]:
    return {socket.gethostname().lower(), socket.getfqdn().lower()}


class WatchServer(ThreadingHTTPServer):
    """Serves the page of one run."""

    daemon_threads = True

    def __init__(self, folder: Path, listening: socket.socket) -> None:
        """Take the run's folder, and a socket that listens."""
        super().__init__(listening.getsockname()[:2], _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listening
        self.publisher = Publisher(folder)

    def handle_error(self, *_: object) -> None:
        """Say nothing of a browser that went away."""

    def serve(self, until: Callable[[], object]) -> None:
        """Serve until ``until`` returns or raises; whoever looks then sees the end."""
        for work in (self.serve_forever, self.publisher.run):
            threading.Thread(target=work, daemon=True).start()
        try:
            until()
        finally:
            self.publisher.end(_SECONDS_TO_TAKE)
            self.shutdown()
            self.server_close()


def listen(address: str, *, insecure: bool = False) -> socket.socket:
    """Return a socket that listens on HOST:PORT; raise ConfigError for one that cannot, or that is open to others."""
    host, _, port = address.rpartition(":")
    if not is_local(address) and not insecure:
        raise ConfigError(
            f"the page is in plain text and tells what H is, and {address} is open to others: give --insecure if "
            "everybody there may read it"
        )
    try:
        return socket.create_server(
            (host.strip("[]"), int(port)), family=socket.AF_INET6 if "[" in host else socket.AF_INET
        )
    except (OSError, ValueError, OverflowError) as error:
        raise ConfigError(f"cannot listen on {address}: {error}; give another HOST:PORT with --listen") from error


def url_of(listening: socket.socket) -> str:
    """Return where a browser finds the page."""
    host, port = listening.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/"


@contextlib.contextmanager
def watched(folder: Path) -> Iterator[str]:
    """Serve the page of a run from a process of its own, and give its address; the run's own is left alone."""
    with listen("127.0.0.1:0") as listening:  # the process below goes on with it
        url, number = url_of(listening), str(listening.fileno())
        # Its standard input ends when we do, whatever happens to us. A session of its own: Ctrl-C is for us.
        process = subprocess.Popen(  # noqa: S603  # ourselves
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
