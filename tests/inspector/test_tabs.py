"""The pages of one browser: many at once, and all laid out alike."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.support.inspecting import Inspected
from tests.support.journals import make_journal


def test_many_tabs_of_one_browser_all_work(page: Page, inspected: Inspected) -> None:
    """A browser has six connections for one server."""
    make_journal(inspected.journal, 3)
    with inspected.opened(page):
        tabs = [page] + [page.context.new_page() for _ in range(6)]
        for tab in tabs[1:]:
            tab.goto(f"{inspected.base}/")
        for tab in tabs:
            expect(tab.get_by_role("heading", level=1)).to_have_text("Timeline")
            expect(tab.get_by_role("link", name="AfterModel")).to_be_visible()
        inspected.settings({})
        inspected.fire("BeforeAgent", session="from-a-live-event", prompt="hello")
        for tab in tabs:
            expect(tab.get_by_text("from-a-live-event").first).to_be_visible()
