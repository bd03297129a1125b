"""The page: one file that works without a network, or the same page filled by a server."""

from __future__ import annotations

import json
from dataclasses import asdict
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from fism_common.files import write_bytes
from fism_server.archive.snapshot import Reader
from fism_server.report.sections import view_of
from fism_server.run.summary import REPORT

if TYPE_CHECKING:
    from fism_server.report.view import View


def write_report(folder: Path, out: Path | None = None) -> Path:
    """Write the report of a run to ``out``, by default in the run's folder; return the file.

    Raises ConfigError or StoreError if there is no readable run, OSError if the file cannot be written.
    """
    file = folder / REPORT if out is None else out
    page = report(view_of(Reader(folder).read()))
    write_bytes(file, page.encode(), mode=0o600)  # it reveals H
    return file


def report(view: View) -> str:
    """Return a self-contained page that shows the view."""
    return _page(as_json(view), f"<script>{plotly()}</script>")


def live_page() -> str:
    """Return a page that gets its script and its views from a server."""
    return _page("", '<script src="plotly.js"></script>')


def as_json(view: View) -> str:
    """Return a view as one line of JSON that is safe inside a page."""
    return json.dumps(asdict(view), separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


@cache
def plotly() -> str:
    """Return Plotly's script, which is part of the package plotly."""
    return files("plotly").joinpath("package_data/plotly.min.js").read_text(encoding="utf-8")


def _page(view: str, script: str) -> str:
    parts = {name: _asset(f"page.{name}") for name in ("html", "css", "js")}
    return (
        parts["html"]
        .replace("/*style*/", parts["css"])
        .replace("/*script*/", parts["js"])
        .replace("/*view*/", view)
        .replace("<!--plotly-->", script)
    )


def _asset(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")
