"""One event in a real browser, whatever the event holds."""

from __future__ import annotations

import json
import shlex
import sys
from typing import Any

from playwright.sync_api import Page, expect

from tests.support.browser import PHONE, Problems, sideways
from tests.support.inspecting import Inspected
from tests.support.journals import change

EVIL = "<img src=x onerror=alert(1)>\u202e\x1b[31m"
SHOWN = "<img src=x onerror=alert(1)>\\u202e\\u001b[31m"
_CHANGE = """\
import json, sys

given = json.load(sys.stdin)["tool_input"]
text = given.get("text", "").replace("old", "new")
print("noise on stderr", file=sys.stderr)
print(json.dumps({"hookSpecificOutput": {"tool_input": {**given, "text": text}}}))
"""


def prepare(inspected: Inspected, *more: dict[str, object]) -> None:
    script = inspected.folder / "change.py"
    script.write_text(_CHANGE)
    command = shlex.join([sys.executable, str(script)])
    hook = {"type": "command", "name": f"<b>change</b>{EVIL}", "command": command}
    inspected.settings({"BeforeTool": [{"hooks": [hook, *more]}]})


def fire(inspected: Inspected, tool_input: dict[str, Any], tool: str = "t") -> None:
    inspected.fire("BeforeTool", tool_name=tool, tool_input=tool_input)


def test_an_event_is_told_with_its_hooks_changes_and_merge(
    inspected: Inspected, page: Page, problems: Problems
) -> None:
    prepare(inspected, {"type": "command", "name": "broken", "command": "exit 1"})
    text = "\n".join(["first", *(["same"] * 30), "the old line", "last"])
    fire(inspected, {"text": text, "n": 12345678901234567890123})
    fire(inspected, {"text": "nothing to do"})
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    with inspected.opened(page, "/events/1"):
        title = page.get_by_role("heading", level=1)
        expect(title).to_contain_text("BeforeTool t")
        expect(title).to_contain_text("changed")
        expect(page.locator(".removed .diff-content")).to_have_text("the old line")
        expect(page.locator(".diff-line.added ins")).to_have_text("new")
        page.get_by_role("button", name="28 unchanged lines").click()
        expect(page.locator(".diff-line.same")).to_have_count(32)
        expect(
            page.get_by_role("heading", name=f"<b>change</b>{SHOWN}")
        ).to_be_visible()
        expect(page.get_by_text("re-check of the final input")).to_have_count(1)
        expect(page.get_by_text("noise on stderr").first).to_be_visible()
        expect(page.get_by_text("Failed: exited with status 1").first).to_be_visible()
        expect(page.get_by_text("12345678901234567890123").first).to_be_visible()
        merge = page.locator("section", has=page.get_by_role("heading", name="Merge"))
        expect(merge).to_contain_text("hookSpecificOutput.tool_input.text")
        expect(merge).to_contain_text("decided")
        expect(page.get_by_text("With current settings")).to_be_visible()
        expect(page.get_by_text("hookline log 1")).to_be_visible()
        page.get_by_role("button", name="Copy as hookline fire").click()
        expect(page.get_by_role("button", name="Copied")).to_be_visible()
        copied = page.evaluate("navigator.clipboard.readText()")
        assert copied.startswith("hookline fire BeforeTool --settings")
        assert '"n": 12345678901234567890123' in copied
        page.get_by_role("button", name="Make a test of this").click()
        case = page.get_by_label("Make a test of this")
        expect(case).to_contain_text("[[case]]")
        page.get_by_role("link", name="Next in session").click()
        expect(page).to_have_url(f"{inspected.base}/events/2")
        expect(page.get_by_role("heading", level=1)).to_be_focused()
        page.get_by_role("link", name="s-1").click()
        expect(page.locator("tr.event")).to_have_count(2)
        page.goto(f"{inspected.base}/events/99")
        expect(page.get_by_role("alert")).to_contain_text("no event 99 is recorded")
        expect(page.get_by_role("button", name="Try again")).to_be_visible()
    problems.expect("404")


def test_hostile_content_is_shown_as_text(
    inspected: Inspected, page: Page, problems: Problems
) -> None:
    prepare(inspected)
    deep: dict[str, object] = {}
    for _ in range(100):
        deep = {"deeper": deep}
    given = {EVIL: EVIL, "__proto__": {"x": EVIL}, "deep": deep, "wide": "x" * 5000}
    fire(inspected, given, tool=EVIL)
    with inspected.opened(page, "/events/1"):
        expect(page.get_by_role("heading", level=1)).to_contain_text(SHOWN)
        entry = page.get_by_label("Input", exact=True).get_by_text(f"{SHOWN}: {SHOWN}")
        expect(entry.first).to_be_visible()
        assert page.locator("img, script:not([src])").count() == 0
        assert sideways(page) <= 0
        page.set_viewport_size(PHONE)
        page.reload()
        expect(entry.first).to_be_visible()
        assert sideways(page) <= 0
        assert page.title() == f"BeforeTool {SHOWN} · Hookline"
        assert "\u202e" not in page.content()


def test_huge_content_comes_in_pieces(
    inspected: Inspected, page: Page, problems: Problems
) -> None:
    prepare(inspected)
    fire(inspected, {"text": "x"})
    lines = "".join(f"line {n}\n" for n in range(150_000))
    keys = {f"key {n}": n for n in range(10_000)}
    given = {"text": lines, "keys": keys}
    text = json.dumps({"tool_name": "t", "tool_input": given})
    final = {"tool_input": {"text": f"{lines}the end"}}
    merged = json.dumps({"hookSpecificOutput": final})
    change(inspected.journal, "UPDATE events SET input = ?, final = ?", text, merged)
    change(inspected.journal, "UPDATE hooks SET stderr = ?", "E" * 500_000)
    with inspected.opened(page, "/events/1"):
        expect(page.locator(".diff-line.added")).to_contain_text("the end")
        expect(page.get_by_text("too large to be copied")).to_be_visible()
        assert page.evaluate("document.querySelectorAll('*').length") < 3000
        shown = page.get_by_label("Text", exact=True)
        expect(shown).to_have_text("E" * 4000)
        more = page.get_by_role("button", name="Show 64,000 more").last
        hook = page.locator(".hook-run")
        hook.get_by_role("button", name="Show 64,000 more").click()
        expect(shown).to_have_text("E" * 68_000)
        expect(more).to_be_visible()
        page.get_by_text("10,000 fields").click()
        page.get_by_role("button", name="Show 100 more of 10,000").click()
        expect(page.get_by_text("key 199:")).to_be_visible()
        assert page.get_by_text("key 200:").count() == 0
