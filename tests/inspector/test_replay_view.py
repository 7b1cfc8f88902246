"""Replay, in a real browser."""

from __future__ import annotations

import json
from collections.abc import Mapping

from playwright.sync_api import Page, expect

from tests.support.browser import PHONE, Problems, sideways
from tests.support.inspecting import Inspected, build_showcase

MARKUP = "<img src=x onerror=alert(1)>"


def settings_with(*hooks: Mapping[str, object]) -> str:
    return json.dumps({"hooks": {"BeforeTool": [{"hooks": list(hooks)}]}})


def test_other_settings_are_replayed(
    page: Page, problems: Problems, inspected: Inspected
) -> None:
    """A person chooses a time range and settings, and sees what they change."""
    build_showcase(inspected)
    rule = {
        "type": "rule",
        "name": MARKUP,
        "when": "tool_name == 'run_shell_command'",
        "then": {"decision": "deny", "reason": f"use the task runner {MARKUP}"},
    }
    (inspected.folder / "new.json").write_text(settings_with(rule))
    with inspected.opened(page):
        page.get_by_role("link", name="Replay", exact=True).click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Replay")
        for name in ("Last hour", "Today", "7 days", "All"):
            page.get_by_role("button", name=name).click()
            expect(page.get_by_role("button", name=name)).to_have_attribute(
                "aria-pressed", "true"
            )
        page.get_by_role("button", name="Last hour").click()
        page.get_by_label("A settings file").check()
        replay = page.get_by_role("button", name="Replay", exact=True)
        replay.click()
        expect(page.get_by_role("alert")).to_contain_text("Give the path")
        page.get_by_label("Path of the settings file").fill("nothing.json")
        replay.click()
        expect(page.get_by_role("alert")).to_contain_text("No such file")
        problems.expect("status of 400")

        page.get_by_label("Path of the settings file").fill("new.json")
        page.keyboard.press("Enter")
        expect(page.locator(".summary")).to_contain_text(
            "17 events replayed: 8 verdicts changed."
        )
        rows = page.locator(".changes-list > li")
        expect(rows).to_have_count(8)
        blocked = rows.filter(has_text="Now by")
        expect(blocked).to_have_count(4)
        expect(blocked.first).to_contain_text(f"{MARKUP}: use the task runner {MARKUP}")
        expect(rows.filter(has_text="Was blocked by").last).to_contain_text("secrets")
        expect(page.locator("#announcer")).to_contain_text("8 verdicts changed.")

        # The address holds what was chosen, and a change leads to its event.
        page.reload()
        expect(page.get_by_label("Path of the settings file")).to_have_value("new.json")
        replay.click()
        page.get_by_role("link", name="BeforeTool write_file").last.click()
        expect(page).to_have_url(f"{inspected.base}/events/3")


def test_events_that_need_a_program_have_a_command(
    page: Page, problems: Problems, inspected: Inspected
) -> None:
    inspected.settings({})
    for n in range(3):
        inspected.fire("BeforeTool", tool_name="write_file", tool_input={"n": n})
    hook = {"type": "command", "name": MARKUP, "command": "touch ran"}
    page.set_viewport_size(PHONE)
    with inspected.opened(page, "/replay"):
        replay = page.get_by_role("button", name="Replay", exact=True)
        page.get_by_label("Settings pasted here").check()
        page.get_by_label("Settings", exact=True).fill('{"hooks": [}')
        replay.click()
        expect(page.get_by_role("alert")).to_contain_text("the pasted settings:1:12")
        problems.expect("status of 400")
        page.get_by_label("Settings", exact=True).fill(settings_with(hook))
        replay.click()
        expect(page.get_by_text("Not decided: 3 events")).to_contain_text(MARKUP)
        expect(page.get_by_text("hookline replay --here")).to_be_visible()
        assert not (inspected.folder / "ran").exists()
        assert "settings_text" not in page.url
        assert sideways(page) == 0


def test_nothing_recorded_says_what_to_do(
    page: Page, problems: Problems, inspected: Inspected
) -> None:
    inspected.settings({})
    with inspected.opened(page, "/replay"):
        expect(
            page.get_by_role("heading", name="Nothing is recorded yet")
        ).to_be_visible()
        expect(page.get_by_text("hookline demo")).to_be_visible()
