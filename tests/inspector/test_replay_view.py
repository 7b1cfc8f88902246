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
    """A person chooses a time range and settings, and watches the progress."""
    build_showcase(inspected)
    rule = {
        "type": "rule",
        "name": MARKUP,
        "when": "tool_name == 'run_shell_command'",
        "then": {"decision": "deny", "reason": f"use the task runner {MARKUP}"},
    }
    (inspected.folder / "new.json").write_text(settings_with(rule))
    with inspected.running():  # what a replay found stays until its process ends
        page.goto(inspected.address)
        page.get_by_role("link", name="Replay", exact=True).click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Replay")
        for name in ("Last hour", "Today", "7 days", "All"):
            page.get_by_role("button", name=name).click()
            expect(page.get_by_role("button", name=name)).to_have_attribute(
                "aria-pressed", "true"
            )
        page.get_by_role("button", name="Last hour").click()
        page.get_by_label("A settings file").check()
        page.get_by_role("button", name="Count the events").click()
        expect(page.get_by_role("alert")).to_contain_text("Give the path")
        page.get_by_label("Path of the settings file").fill("nothing.json")
        page.get_by_role("button", name="Count the events").click()
        expect(page.get_by_role("alert")).to_contain_text("No such file")
        problems.expect("status of 400")

        page.get_by_label("Path of the settings file").fill("new.json")
        page.get_by_role("button", name="Count the events").click()
        expect(page.get_by_role("heading", name="17 events")).to_contain_text(
            "17 events would be replayed, with 9 hook runs"
        )
        expect(page.get_by_text("HOOKLINE_REPLAY=1")).to_be_visible()
        page.keyboard.press("Enter")  # the button has the focus
        expect(page.locator(".summary")).to_contain_text(
            "17 events replayed: 8 verdicts changed."
        )
        rows = page.locator(".changes-list > li")
        expect(rows).to_have_count(8)
        blocked = rows.filter(has_text="Now by")
        expect(blocked).to_have_count(4)
        expect(blocked.first).to_contain_text(f"{MARKUP}: use the task runner {MARKUP}")
        expect(rows.filter(has_text="Was blocked by").first).to_contain_text("secrets")

        page.get_by_role("button", name="allowed → blocked 4").click()
        expect(rows).to_have_count(4)

        # It can be looked at again, and leads to the events.
        page.reload()
        expect(page.locator(".summary")).to_contain_text("8 verdicts changed.")
        expect(rows).to_have_count(8)
        expect(page.get_by_label("Path of the settings file")).to_have_value("new.json")
        page.get_by_role("link", name="BeforeTool write_file").first.click()
        expect(page).to_have_url(f"{inspected.base}/events/3")


def test_a_replay_is_watched_and_cancelled(
    page: Page, problems: Problems, inspected: Inspected
) -> None:
    inspected.settings({})
    for n in range(3):
        inspected.fire("BeforeTool", tool_name="write_file", tool_input={"n": n})
    waits = 'n=$(cat); case "$n" in *\'"n":1\'*) sleep 300;; *) exit 2;; esac'
    hook = {"type": "command", "name": "waits", "command": waits}
    page.set_viewport_size(PHONE)
    with inspected.running():
        page.goto(inspected.address)
        page.goto(f"{inspected.base}/replay")
        page.get_by_label("Settings pasted here").check()
        page.get_by_label("Settings", exact=True).fill('{"hooks": [}')
        page.get_by_role("button", name="Count the events").click()
        expect(page.get_by_role("alert")).to_contain_text("the pasted settings:1:12")
        problems.expect("status of 400")
        page.get_by_label("Settings", exact=True).fill(settings_with(hook))
        page.get_by_role("button", name="Count the events").click()
        page.get_by_role("button", name="Replay 3 events").click()
        bar = page.get_by_role("progressbar", name="1 of 3 events")
        expect(bar).to_have_attribute("max", "3")
        expect(page.locator(".changes-list > li")).to_have_count(1)
        assert "settings_text" not in page.url

        # A reload finds the one that runs; another cannot start beside it.
        page.goto(f"{inspected.base}/replay")
        expect(page.get_by_role("progressbar", name="1 of 3 events")).to_be_visible()
        assert sideways(page) == 0
        page.get_by_role("button", name="Count the events").click()
        page.get_by_role("button", name="Replay 3 events").click()
        expect(page.get_by_role("alert")).to_contain_text("a replay is running")
        problems.expect("status of 409")
        page.get_by_role("button", name="Cancel").click()
        ended = "Cancelled: 1 event replayed, 1 verdict changed so far."
        expect(page.locator(".summary")).to_have_text(ended)
        expect(page.get_by_role("progressbar")).to_have_count(0)
        expect(page.locator("#announcer")).to_have_text(ended)


def test_nothing_recorded_says_what_to_do(
    page: Page, problems: Problems, inspected: Inspected
) -> None:
    inspected.settings({})
    with inspected.opened(page, "/replay"):
        expect(
            page.get_by_role("heading", name="Nothing is recorded yet")
        ).to_be_visible()
        expect(page.get_by_text("hookline demo")).to_be_visible()
        page.goto(f"{inspected.base}/replay?replay=7")
        expect(page.get_by_text("there is no such replay")).to_be_visible()
        problems.expect("status of 404")
