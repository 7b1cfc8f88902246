"""Issue 16: the pages of one browser: many at once, and all laid out alike."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.support.browser import sideways
from tests.support.inspecting import Inspected
from tests.support.journals import make_journal

_MARGINS = """() => [".brand", "h1"].map(
  (name) => document.querySelector(name)?.getBoundingClientRect().left)"""


def test_many_tabs_of_one_browser_all_work(page: Page, inspected: Inspected) -> None:
    """A browser has six connections for one server."""
    make_journal(inspected.journal, 3)
    with inspected.running():
        page.goto(inspected.address)
        tabs = [page] + [page.context.new_page() for _ in range(7)]
        for tab in tabs[1:]:
            tab.goto(f"{inspected.base}/")
        for tab in tabs:
            expect(tab.get_by_role("heading", level=1)).to_have_text("Timeline")
            expect(tab.get_by_role("link", name="AfterModel")).to_be_visible()
        inspected.settings({})
        inspected.fire("BeforeAgent", session="from-a-live-event", prompt="hello")
        for tab in tabs:
            expect(tab.get_by_text("from-a-live-event").first).to_be_visible()


def test_all_views_have_the_margin_of_the_masthead(
    page: Page, inspected: Inspected
) -> None:
    make_journal(inspected.journal, 3)
    with inspected.running():
        page.goto(inspected.address)
        for path in (
            "/",
            "/events/1",
            "/events/99",
            "/hooks",
            "/try",
            "/replay",
            "/trust",
        ):
            page.goto(f"{inspected.base}{path}")
            for width in (390, 1280, 1920):
                page.set_viewport_size({"width": width, "height": 900})
                masthead, title = _margins(page)
                assert title == pytest.approx(masthead), (path, width)
                assert sideways(page) == 0


def _margins(page: Page) -> tuple[float, float]:
    """Of masthead and title, in one look: a scroll bar may come between two."""
    page.get_by_role("heading", level=1).wait_for()
    masthead, title = page.evaluate(_MARGINS)
    return masthead, title
