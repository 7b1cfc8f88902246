"""Try, in a real browser."""

from __future__ import annotations

import json
import re
from urllib.parse import urlencode

from playwright.sync_api import Page, expect

from tests.support.browser import PHONE, Problems, sideways
from tests.support.inspecting import Inspected, build_showcase

MARKUP = "<img src=x onerror=alert(1)>"


def test_an_event_is_tried(
    page: Page, problems: Problems, inspected: Inspected
) -> None:
    """A person picks an event, a tool and an input, and sees the verdict."""
    build_showcase(inspected)
    with inspected.opened(page):
        page.get_by_role("link", name="Try", exact=True).click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Try")
        expect(page.locator(".summary")).to_contain_text(
            "4 of 6 hooks would run, in parallel."
        )

        # The tools: ours, and of the journal; another one has another sample.
        offered = page.locator("#try-tools option").evaluate_all(
            "all => all.map(one => one.value)"
        )
        assert {"write_file", "run_shell_command", "read_file"} <= set(offered)
        page.get_by_label("Tool").fill("run_shell_command")
        expect(page.get_by_label("Input, as JSON")).to_have_value(
            re.compile(r'"command": "ls -l"')
        )
        expect(page.locator(".summary")).to_contain_text(
            "2 of 6 hooks would run, in parallel."
        )
        hook = page.get_by_role("listitem").filter(has_text="no-force-push")
        expect(hook).to_contain_text(
            "matcher 'run_shell_command' matches tool_name 'run_shell_command'"
        )
        expect(hook).to_contain_text("tool_input.command = ls -l")

        # A mistake is shown with its place.
        page.get_by_label("Input, as JSON").fill('{\n  "tool_input": {"command" 1}\n}')
        expect(page.get_by_role("button", name="Line 2, column 28")).to_be_visible()
        page.get_by_role("button", name="Line 2, column 28").click()
        assert page.evaluate("document.activeElement.selectionStart") == 29

        # Formatting keeps every digit.
        text = (
            '{"tool_input":{"command":"git push --force origin","n":9007199254740993}}'
        )
        page.get_by_label("Input, as JSON").fill(text)
        page.get_by_role("button", name="Format").click()
        formatted = page.get_by_label("Input, as JSON").input_value()
        assert '\n    "n": 9007199254740993\n' in formatted
        expect(page.get_by_text("Valid JSON")).to_be_visible()

        expect(page.get_by_role("heading", name="Verdict")).to_contain_text("blocked")
        result = page.locator(".result")
        expect(result).to_contain_text("history is shared: push a revert instead")
        expect(result).to_contain_text("no-force-push")

        # The address holds it all.
        other = page.context.new_page()
        other.goto(page.url)
        expect(other.get_by_label("Input, as JSON")).to_have_value(formatted)
        expect(other.get_by_label("Tool")).to_have_value("run_shell_command")
        expect(other.locator(".summary")).to_contain_text("2 of 6 hooks would run")
        expect(other.locator(".result")).to_contain_text("history is shared")
        other.close()


def test_a_recorded_event_fills_the_form(
    page: Page, problems: Problems, inspected: Inspected
) -> None:
    inspected.settings({})
    given = {"path": f"{MARKUP}\u202etxt.exe", "n": 12345678901234567890}
    inspected.fire("BeforeTool", tool_name="write_file", tool_input=given)
    with inspected.opened(page, "/try?event=1"):
        expect(page.get_by_text("The input of event 1.")).to_be_visible()
        text = page.get_by_label("Input, as JSON").input_value()
        # What would reorder the text is written out; it means the same.
        assert "\u202e" not in text
        assert json.loads(text)["tool_input"] == given
        expect(page.locator(".summary")).to_have_text(
            "No hooks are configured for this event."
        )
        assert page.url == f"{inspected.base}/try?event=1"
        page.goto(f"{inspected.base}/try?event=99")
        expect(page.get_by_text("no event 99 is recorded")).to_be_visible()
        page.goto(f"{inspected.base}/try?{urlencode({'event': MARKUP})}")
        expect(page.get_by_text(f"Unknown event {MARKUP}.")).to_be_visible()
        problems.expect("status of 404")


def test_a_hook_that_runs_a_program_is_not_run(
    page: Page, problems: Problems, inspected: Inspected
) -> None:
    """The command to type is shown instead."""
    hook = {"type": "command", "name": MARKUP, "command": "touch ran"}
    inspected.settings({"BeforeTool": [{"hooks": [hook]}]})
    with inspected.opened(page, "/try"):
        expect(page.get_by_text("It depends on hooks")).to_contain_text(MARKUP)
        expect(page.get_by_text("hookline fire BeforeTool")).to_be_visible()
        assert not (inspected.folder / "ran").exists()


def test_the_view_fits_a_phone_and_speaks(
    page: Page, problems: Problems, inspected: Inspected
) -> None:
    """At the width of a phone, and what a screen reader is told."""
    build_showcase(inspected)
    page.set_viewport_size(PHONE)
    with inspected.opened(page, "/try"):
        expect(page.locator(".summary")).to_be_visible()
        assert sideways(page) == 0
        expect(page.locator("#announcer")).to_contain_text("hooks would run")
        unnamed = page.locator("input, select, textarea, button").evaluate_all(
            "all => all.filter(one => !(one.labels?.length || one.ariaLabel ||"
            " one.textContent.trim())).map(one => one.outerHTML)"
        )
        assert unnamed == []
