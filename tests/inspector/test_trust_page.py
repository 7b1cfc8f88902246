"""The Trust view in a browser."""

from __future__ import annotations

import json
import re
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.support.browser import PHONE, Problems, sideways
from tests.support.inspecting import Inspected
from tests.support.project import DENY, GUARD, Project

HOSTILE = "<img src=x onerror=alert(1)></pre><script>alert(2)</script>\u202egnp\x1b[2J"


def open_view(page: Page, inspected: Inspected) -> None:
    page.goto(inspected.address)
    page.get_by_role("link", name="Trust").click()
    expect(page.get_by_role("heading", level=1, name="Trust")).to_be_visible()


def test_what_waits_is_shown_with_its_diff_and_the_command(
    page: Page,
    problems: Problems,
    inspected: Inspected,
    project: Project,
    tmp_path: Path,
) -> None:
    project = Project(tmp_path / "my project", project.state)
    project.guarded()
    project.trust()
    project.write(".hookline/hooks/guard.sh", "exit 0")
    project.settings(GUARD, {**GUARD, "name": "second", "command": "bash lint.sh"})
    inspected.folder = project.folder
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    with inspected.served():
        open_view(page, inspected)
        card = page.get_by_role("article", name=str(project.folder))
        expect(card).to_contain_text("waits for approval")
        review = card.get_by_role("region", name="What would be approved")
        expect(review.locator(".removed", has_text=DENY)).to_have_text(f"  -{DENY}\n")
        expect(review.locator(".added", has_text="exit 0")).to_have_text("  +exit 0\n")
        expect(card).to_contain_text("bash lint.sh")
        card.get_by_role("button", name="Copy").first.click()
        expect(page.locator("#announcer")).to_have_text("Copied")
        copied = page.evaluate("() => navigator.clipboard.readText()")
        assert copied == f"hookline trust '{project.folder}'"
        words = re.compile("approve|trust", re.IGNORECASE)
        assert page.locator("main").get_by_role("button", name=words).count() == 0
        # Approved on the command line: back in the browser, the page says so.
        assert project.trust() == 0
        page.evaluate("() => window.dispatchEvent(new Event('focus'))")
        expect(page.locator("main")).to_contain_text("nothing waits")
        expect(page.locator("main")).to_contain_text("Trusted since")
        assert problems.found == []


def test_empty_and_broken_projects_say_what_to_do(
    page: Page, problems: Problems, inspected: Inspected, project: Project
) -> None:
    inspected.folder = project.folder
    with inspected.served():
        open_view(page, inspected)
        expect(page.locator(".state")).to_contain_text("Nothing waits for approval")
        expect(page.locator(".state")).to_contain_text("hookline init")
        project.write(".hookline/settings.json", "{")
        page.reload()
        card = page.get_by_role("article")
        expect(card).to_contain_text("cannot be reviewed")
        expect(card).to_contain_text("settings.json")
        assert problems.found == []


def test_hostile_files_are_text_and_fit_a_phone(
    page: Page,
    problems: Problems,
    inspected: Inspected,
    project: Project,
    tmp_path: Path,
) -> None:
    """In names, settings and contents; nothing is markup, and nothing overflows."""
    project.write(f".hookline/{HOSTILE[:28]}", "x")
    hook = {**GUARD, "name": HOSTILE[:28], "command": "y" * 900, HOSTILE: HOSTILE}
    text = json.dumps({"hooks": {"BeforeTool": [{"hooks": [hook]}]}, "z" * 600: 1})
    project.write(".hookline/settings.json", text)
    project.write(".hookline/hooks/guard.sh", f"{HOSTILE}\n{'w' * 5000}\n")
    project.write(".hookline/big.bin", "\x00\x01" * 2_500_000)
    other = Project(tmp_path / ("other" * 30), project.state)
    other.guarded()
    other.trust()
    inspected.folder = project.folder
    page.set_viewport_size(PHONE)
    with inspected.served():
        open_view(page, inspected)
        for summary in page.locator("main summary").all():
            summary.click()
        shown = page.get_by_role("region", name="What would be approved")
        expect(shown).to_contain_text(HOSTILE[:28])
        expect(page.locator(".other-body")).to_contain_text("Trusted since")
        copy = page.get_by_role("button", name="Copy").first.bounding_box()
        assert copy is not None
        assert copy["height"] < 35  # one line
        assert page.locator("main img, main script").count() == 0
        assert sideways(page) == 0
        assert problems.found == []
