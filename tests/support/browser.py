"""A real browser, and what went wrong in its pages."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from playwright.sync_api import (
    Browser,
    ConsoleMessage,
    Page,
    ViewportSize,
    sync_playwright,
)

from tests.support.journals import wait_until

PHONE = ViewportSize(width=390, height=844)
_NAMES = ("chromium", "chromium-browser", "google-chrome")
_ROOT_HAS_NO_SANDBOX = "--no-sandbox"


def find_chromium() -> str | None:
    """The system's Chromium; ``CHROMIUM`` names another one."""
    named = os.environ.get("CHROMIUM")
    return named or next(filter(None, map(shutil.which, _NAMES)), None)


@contextmanager
def running_chromium(profile: Path) -> Iterator[str]:
    """Start Chromium without a window; skips the test where there is none.

    It is shared by connecting to it: Playwright has the event loop of its thread, so
    that no test with asyncio could run beside a browser that it started itself.
    """
    program = find_chromium()
    if program is None:
        pytest.skip("there is no Chromium: install the Debian package chromium")
    words = [program, "--headless", "--remote-debugging-port=0", "--no-first-run"]
    words += [f"--user-data-dir={profile}", "--hide-scrollbars", "--disable-gpu"]
    words += [_ROOT_HAS_NO_SANDBOX] if os.getuid() == 0 else []
    quiet = subprocess.DEVNULL
    with subprocess.Popen(words, stdin=quiet, stdout=quiet, stderr=quiet) as process:
        port = profile / "DevToolsActivePort"
        wait_until(lambda: port.exists() and port.read_text().count("\n"))
        try:
            yield f"http://127.0.0.1:{port.read_text().splitlines()[0]}"
        finally:
            process.terminate()


@contextmanager
def connected(address: str) -> Iterator[Browser]:
    """Use a Chromium that runs."""
    with sync_playwright() as playwright:
        yield playwright.chromium.connect_over_cdp(address)


@contextmanager
def open_browser() -> Iterator[Browser]:
    """A browser of one's own."""
    with (
        TemporaryDirectory() as profile,
        running_chromium(Path(profile)) as address,
        connected(address) as browser,
    ):
        yield browser


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
