"""The report and the live page, as a person sees them: in Chromium."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from fism_server.report.page import plotly, write_report

from ..federation.harness import client, end, federation, popen, server, until
from ..unavailable import unavailable
from .folders import begun, finished

pytestmark = pytest.mark.browser
WIDE, NARROW = {"width": 1280, "height": 900}, {"width": 360, "height": 740}
PLOTS = ("inner", "outer", "change", "split", "clients", "quality", "coefficients")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Return the Chromium of this machine."""
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None:
        unavailable("there is no Chromium: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])  # of pages that we wrote
        yield browser
        browser.close()


@contextmanager
def opened(browser: Browser, url: str, size: dict[str, int] | None = None, scheme: str = "light") -> Iterator[Page]:
    """Give a page once it is drawn; nothing may be said on its console while it is open."""
    said: list[str] = []
    page = browser.new_page(viewport=size or WIDE, color_scheme=scheme)  # type: ignore[arg-type]
    page.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(url)
    expect(page.locator("body")).to_have_attribute("data-drawn", re.compile(r"\d+"), timeout=20_000)
    yield page
    page.close()
    assert said == []


def show_all(page: Page) -> None:
    """Scroll to the end, so that every plot is drawn."""
    for place in page.locator(".plot").all():
        place.scroll_into_view_if_needed()
        expect(place.locator(".main-svg").first).to_be_visible()


def picture(page: Page, folder: Path, name: str) -> None:
    """Keep what is seen: pytest --basetemp=FOLDER shows where."""
    page.screenshot(path=folder / f"{name}.png", full_page=True)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
@pytest.mark.parametrize(("clients", "rounds"), [(1, 10), (50, 2000)])
def test_report_shows_every_part(
    browser: Browser, tmp_path: Path, clients: int, rounds: int, size: dict[str, int], scheme: str
) -> None:
    """Every plot with labelled axes and a table beside it; nothing is wider than the screen."""
    file = write_report(finished(tmp_path / "a", clients, rounds, names=["age", "blood pressure", "<b>dose</b>"]))
    with opened(browser, file.as_uri(), size, scheme) as page:
        expect(page.get_by_role("heading", level=1)).to_have_text("regions")
        expect(page.get_by_role("status")).to_contain_text(f"Finished after {rounds:,} rounds")
        show_all(page)
        for plot in PLOTS:
            titles = page.locator(f"#plot-{plot} .xtitle, #plot-{plot} .ytitle").all_text_contents()
            assert len(titles) == (1 if plot in {"clients", "coefficients"} else 2), plot
            assert all(titles), plot
        assert "time per round (ms, medians)" in page.locator("#plot-split .ytitle").all_text_contents()[0]
        for section in ("progress", "time", "clients", "quality", "model"):
            assert page.locator(f"#{section} table").count() >= 1
        assert page.locator("#clients tbody tr").count() == clients
        assert page.locator("#plot-clients .ytick").count() == clients
        expect(page.locator("#plot-coefficients")).to_contain_text("<b>dose</b>")  # a name, and no markup
        assert page.locator("#model b").count() == 0
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        picture(page, tmp_path, f"{clients}-{scheme}-{size['width']}")


def test_hundred_thousand_rounds_are_thinned(browser: Browser, tmp_path: Path) -> None:
    """Below 1 MB beside Plotly's script, with the last round and the first in it."""
    file = write_report(finished(tmp_path / "a", 4, 100_000))
    assert file.stat().st_size - len(plotly().encode()) < 1_000_000
    with opened(browser, file.as_uri()) as page:
        show_all(page)
        drawn = page.evaluate("document.getElementById('plot-inner').data[0].x")
        assert drawn[0] == 1
        assert drawn[-1] == 100_000
        assert len(drawn) <= 1200


def test_axes_are_chosen_by_the_keyboard(browser: Browser, tmp_path: Path) -> None:
    """Rounds or seconds, logarithmic or linear; the first stop of the tabulator skips to the results."""
    file = write_report(finished(tmp_path / "a", 2, 50))
    with opened(browser, file.as_uri()) as page:
        page.keyboard.press("Tab")
        expect(page.get_by_role("link", name="Skip to the results")).to_be_focused()
        page.get_by_role("radio", name="rounds").focus()
        page.keyboard.press("ArrowRight")
        expect(page.locator("#plot-inner .xtitle")).to_have_text("time (s)")
        page.get_by_role("radio", name="logarithmic").focus()
        page.keyboard.press("ArrowRight")
        until(lambda: bool(page.evaluate("document.getElementById('plot-inner').layout.xaxis.type === 'linear'")))
        assert page.evaluate("document.getElementById('plot-inner').layout.yaxis.type") == "linear"
        assert page.evaluate("document.getElementById('plot-change').layout.yaxis.type") == "log"
        page.get_by_role("region", name="Rounds").focus()  # a table that scrolls can be scrolled by keys


def test_colours_follow_the_reader_s_choice(browser: Browser, tmp_path: Path) -> None:
    """Also while the page is open."""
    file = write_report(finished(tmp_path / "a", 2, 50))
    with opened(browser, file.as_uri()) as page:
        page.emulate_media(color_scheme="dark")
        until(lambda: bool(page.evaluate("document.getElementById('plot-inner').layout.font.color === '#e9ecef'")))


def test_live_page_follows_a_run(browser: Browser, tmp_path: Path) -> None:
    """Who is waited for, who is there, the rounds as they come, and the end."""
    given = federation(tmp_path, 2, rounds=6000, names=["c0", "c1"])
    with server(given.config, tmp_path / "run", "--watch") as running:
        url = running.wait_for(r"watch it at (\S+)").group(1)
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        said: list[str] = []
        page.on("console", lambda message: said.append(message.text))
        page.goto(url)
        expect(page.get_by_role("status")).to_have_text("Waiting for clients: c0, c1.", timeout=20_000)
        first = client(running.address, "c0", given.files[0])
        expect(page.get_by_role("status")).to_have_text("Waiting for clients: c1.", timeout=20_000)
        expect(page.locator("#clients tbody tr").first).to_contain_text("present")
        second = client(running.address, "c1", given.files[1])
        expect(page.get_by_role("status")).to_contain_text("Running.", timeout=30_000)
        page.locator("#plot-inner .main-svg").first.wait_for()
        assert end(first)[0] == end(second)[0] == 0
        expect(page.get_by_role("status")).to_contain_text("Finished after 6,000 rounds", timeout=30_000)
        assert running.end() == 0
        until(lambda: bool(page.evaluate("document.getElementById('plot-inner').data[0].x.at(-1) === 6000")))
        assert page.evaluate("document.body.dataset.stage") == "finished"
        page.close()
    assert said == []


def test_page_says_when_its_server_is_gone(browser: Browser, tmp_path: Path) -> None:
    """And keeps what it has shown; the browser's own word on the failed connection is its alone."""
    job = begun(tmp_path / "a", 2, 20)
    process = popen("watch", job.out, "--listen", "127.0.0.1:0")
    assert process.stdout is not None
    url = process.stdout.readline().split()[-1]
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(url)
    expect(page.get_by_role("status")).to_contain_text("Running.", timeout=20_000)
    process.kill()
    end(process)
    expect(page.get_by_role("status")).to_contain_text("does not answer", timeout=20_000)
    expect(page.locator("#clients tbody tr")).to_have_count(2)
    page.close()
    job.archive.close()
