"""``make pictures``: photograph every view of the inspector for the documentation.

A project whose hooks were approved, a morning of recorded work, and a hook that has
changed since then, so that each view has something to show.
"""

from __future__ import annotations

import json
import os
import sqlite3
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Literal

from playwright.sync_api import Browser, Page, ViewportSize, expect

from hookline.cli.main import main as hookline
from tests.support.browser import open_browser
from tests.support.inspecting import Inspected
from tests.support.showcase import build, hooks

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"
_SECONDS_BETWEEN = 41
_SHELL_RULE = {
    "type": "rule",
    "name": "use-the-task-runner",
    "when": "tool_name == 'run_shell_command'",
    "then": {"decision": "deny", "reason": "run it as a task: make test, make push"},
}


def main() -> None:
    """Build the project and take all pictures."""
    with tempfile.TemporaryDirectory(prefix="hookline-") as place:
        os.environ["XDG_STATE_HOME"] = f"{place}/state"
        os.environ["XDG_CONFIG_HOME"] = f"{place}/config"
        inspected = Inspected(Path(place) / "shop")
        inspected.folder.mkdir()
        _prepare(inspected)
        with inspected.running(), open_browser() as browser:
            _photograph(inspected, browser)


def _prepare(inspected: Inspected) -> None:
    build(inspected.folder, inspected.journal).unlink()
    settings = inspected.folder / ".hookline" / "settings.json"
    settings.write_text(json.dumps({"hooks": hooks()}, indent=2))
    hookline(["trust", str(inspected.folder), "--yes"])
    _spread(inspected.journal)


def _change_a_hook(inspected: Inspected) -> None:
    script = inspected.folder / ".hookline" / "hooks" / "secrets.py"
    more = script.read_text().replace("AKIA[0-9A-Z]", "(AKIA|ASIA)[0-9A-Z]")
    script.write_text(more)


def _spread(journal: Path) -> None:
    """Let the work take a while: it was recorded within a second."""
    with closing(sqlite3.connect(journal)) as connection, connection:
        (count,) = connection.execute("SELECT max(id) FROM events").fetchone()
        start = time.time() - count * _SECONDS_BETWEEN
        moved = "UPDATE events SET at = ? + id * ?"
        connection.execute(moved, (start, _SECONDS_BETWEEN))


def _photograph(inspected: Inspected, browser: Browser) -> None:
    page = _page(browser, "light", 1280, 800)
    page.goto(inspected.address)
    _wait_for_rows(page)
    _save(page, "timeline")
    page.goto(f"{inspected.base}/events/4")
    expect(page.get_by_role("heading", name="What changed")).to_be_visible()
    _save(page, "event")
    page.goto(f"{inspected.base}/hooks")
    expect(page.locator("main").get_by_text("no-env-files").first).to_be_visible()
    _save(page, "hooks")
    page.goto(f"{inspected.base}/try")
    expect(page.locator(".summary", has_text="hooks would run")).to_be_visible()
    _save(page, "try")
    _replay(inspected, page)
    _save(page, "replay")
    _change_a_hook(inspected)
    page.goto(f"{inspected.base}/trust")
    expect(page.get_by_role("region", name="What changed in")).to_be_visible()
    _save(page, "trust")
    dark = _page(browser, "dark", 1280, 800)
    dark.goto(inspected.address)
    _wait_for_rows(dark)
    _save(dark, "timeline-dark")
    phone = _page(browser, "light", 390, 800)
    phone.goto(inspected.address)
    _wait_for_rows(phone)
    _save(phone, "timeline-phone")


def _wait_for_rows(page: Page) -> None:
    expect(page.get_by_text("No older events")).to_be_attached()
    expect(page.get_by_text("Live", exact=True)).to_be_visible()


def _replay(inspected: Inspected, page: Page) -> None:
    page.goto(f"{inspected.base}/replay")
    page.get_by_label("Settings pasted here").check()
    groups = {"BeforeTool": [{"hooks": [_SHELL_RULE]}]}
    page.locator("textarea").fill(json.dumps({"hooks": groups}, indent=2))
    page.get_by_role("button", name="Replay", exact=True).click()
    expect(page.locator(".summary")).to_contain_text("replayed")
    page.evaluate("scrollTo(0, 0)")


def _page(
    browser: Browser, scheme: Literal["dark", "light"], width: int, height: int
) -> Page:
    size = ViewportSize(width=width, height=height)
    context = browser.new_context(viewport=size, color_scheme=scheme)
    return context.new_page()


def _save(page: Page, name: str) -> None:
    PICTURES.mkdir(exist_ok=True)
    page.screenshot(path=PICTURES / f"inspector-{name}.png", animations="disabled")


if __name__ == "__main__":
    main()
