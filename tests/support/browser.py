"""A real browser, and what went wrong in its pages."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import (
    Browser,
    ConsoleMessage,
    Page,
    ViewportSize,
    sync_playwright,
)

PHONE = ViewportSize(width=390, height=844)
_NAMES = ("chromium", "chromium-browser", "google-chrome")
_ROOT_HAS_NO_SANDBOX = "--no-sandbox"


def find_chromium() -> str | None:
    """The system's Chromium; ``CHROMIUM`` names another one."""
    named = os.environ.get("CHROMIUM")
    return named or next(filter(None, map(shutil.which, _NAMES)), None)


@contextmanager
def open_browser() -> Iterator[Browser]:
    """Start Chromium without a window; skips the test where there is none."""
    program = find_chromium()
    if program is None:
        pytest.skip("there is no Chromium: install the Debian package chromium")
    with sync_playwright() as playwright:
        arguments = [_ROOT_HAS_NO_SANDBOX] if os.getuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=program, args=arguments)
        try:
            yield browser
        finally:
            browser.close()


def sideways(page: Page) -> int:
    """How many pixels a page is wider than its window."""
    root = "document.documentElement"
    found: int = page.evaluate(f"() => {root}.scrollWidth - {root}.clientWidth")
    return found


class Problems:
    """Everything that a page should not have: errors, broken rules, other hosts."""

    def __init__(self, page: Page) -> None:
        self.found: list[str] = []
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.found.append(f"uncaught: {error}"))
        page.on("dialog", lambda dialog: self.found.append(f"dialog: {dialog.message}"))
        page.on("request", lambda request: self._request(request.url))

    def expect(self, *texts: str) -> None:
        """Take out what the test provoked; each text must have been found."""
        for text in texts:
            matching = [one for one in self.found if text in one]
            assert matching, (text, self.found)
            self.found = [one for one in self.found if one not in matching]

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            self.found.append(f"{message.type}: {message.text}")

    def _request(self, url: str) -> None:
        if not url.startswith(("http://127.0.0.1:", "blob:", "data:")):
            self.found.append(f"asked for {url}")
