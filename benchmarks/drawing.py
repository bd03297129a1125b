"""The size of a report of 100,000 rounds and 50 clients, and how long Chromium takes to draw it."""

from __future__ import annotations

import runpy
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from fism_server.report.page import plotly, write_report
from timing import Ratio

BARE = """<!DOCTYPE html><meta charset=utf-8><body><script>{}</script>
<script>document.body.dataset.drawn = performance.now()</script>"""


def drawing() -> Iterator[Ratio]:
    """Yield the page's size without Plotly's script, and the time until everything visible is drawn."""
    chromium = shutil.which("chromium")
    with tempfile.TemporaryDirectory() as scratch:
        finished = runpy.run_path(str(Path(__file__).parents[1] / "tests/report/folders.py"))["finished"]
        file = write_report(finished(Path(scratch, "a"), 50, 100_000))
        bare = Path(scratch, "bare.html")
        bare.write_text(BARE.format(plotly()), encoding="utf-8")
        size = (file.stat().st_size - bare.stat().st_size) / 1e6
        yield Ratio(
            "megabytes of a report of 100,000 rounds and 50 clients, without Plotly's script", size, 1.0, most=True
        )
        if chromium is None:
            print("skipped: how long Chromium takes to draw the report, as it is not installed")
            return
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            ours, script = (min(_drawn(browser, page) for _ in range(5)) for page in (file, bare))
            browser.close()
    yield Ratio("seconds until it is drawn", ours / 1e3, 2.0, most=True)
    yield Ratio("the same, over loading only Plotly's script", ours / script, 1.5, most=True)


def _drawn(browser: Browser, page: Path) -> float:
    shown = browser.new_page(viewport={"width": 1280, "height": 900})
    shown.goto(page.as_uri())
    shown.locator("body[data-drawn]").wait_for(state="attached")
    drawn = float(str(shown.evaluate("document.body.dataset.drawn")))
    shown.close()
    return drawn


if __name__ == "__main__":
    for ratio in drawing():
        print(ratio)
