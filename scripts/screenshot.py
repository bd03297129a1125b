"""Take the screenshot of a report in docs/: the hospitals example, in Chromium."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    """Run the example, and capture its report from the plots of F and H on."""
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run([sys.executable, ROOT / "examples/hospitals/prepare.py", scratch], check=True)
        config = shutil.copy(ROOT / "examples/hospitals/hospitals.toml", scratch)
        run = Path(scratch, "run")
        subprocess.run([sys.executable, "-m", "fism", "run", config, "--out", run, "--quiet"], check=True)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": 1180, "height": 5200})
            page.goto((run / "report.html").as_uri())
            page.locator("#plot-coefficients .main-svg").first.wait_for()
            page.add_style_tag(
                content="#problem, #time, #quality, #clients, figure:has(#plot-change) { display: none }"
            )
            page.wait_for_timeout(500)
            page.screenshot(path=ROOT / "docs/report.png", clip={"x": 0, "y": 0, "width": 1180, "height": 1560})
            browser.close()


if __name__ == "__main__":
    main()
