"""The timeline in a real browser, live and back through the journal."""

from __future__ import annotations

import time
from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import Locator, Page, Route, expect

from tests.support.browser import PHONE, Problems, sideways
from tests.support.inspecting import Inspected
from tests.support.journals import NEWEST, change, make_journal

RULE = {
    "type": "rule",
    "name": "no-env",
    "when": "tool_input.path.endsWith('.env')",
    "then": {"decision": "deny", "reason": "keep secrets out of .env files"},
}
HOOKS = {"BeforeTool": [{"hooks": [RULE]}]}


def rows(page: Page) -> Locator:
    return page.locator("tr.event")


def names(page: Page) -> list[str]:
    return page.locator("tr.event .c-event a").all_inner_texts()


def query(page: Page) -> dict[str, list[str]]:
    return parse_qs(urlsplit(page.url).query)


def scroll_to(page: Page, top: int) -> None:
    page.locator(".timeline-scroller").evaluate("(e, top) => e.scrollTop = top", top)


def many(inspected: Inspected, number: int) -> None:
    inspected.settings(HOOKS)
    make_journal(inspected.journal, number)
    # Old events are deleted when one is recorded.
    change(inspected.journal, "UPDATE events SET at = at + ?", time.time() - NEWEST)


def call(path: str, use: str) -> dict[str, object]:
    return {"tool_name": "write", "tool_input": {"path": path}, "tool_use_id": use}


DONE = {"tool_response": {"llmContent": "ok", "returnDisplay": "ok"}}


def test_an_empty_journal_says_how_to_record_and_then_shows_live_events(
    inspected: Inspected, page: Page, problems: Problems
) -> None:
    inspected.settings(HOOKS)
    with inspected.opened(page):
        expect(page.get_by_role("heading", level=1)).to_have_text("Timeline")
        state = page.get_by_role("heading", name="No events are recorded yet")
        expect(state).to_be_visible()
        for hint in ("hooksConfig", "hookline demo", "hookline fire"):
            expect(page.locator(".state")).to_contain_text(hint)
        expect(page.get_by_text("Live", exact=True)).to_be_visible()
        inspected.fire("BeforeTool", tool_name="write", tool_input={"path": ".env"})
        row = rows(page).first
        expect(row).to_contain_text("BeforeTool write")
        # A sign, a word and the hook: never the colour alone.
        expect(row).to_contain_text("✕blocked")
        expect(row).to_contain_text("no-env keep secrets out of .env files")
        expect(page.locator("#announcer")).to_have_text("1 new event")


def test_events_are_grouped_by_session_turn_and_tool_call(
    inspected: Inspected, page: Page, problems: Problems
) -> None:
    inspected.settings(HOOKS)
    inspected.fire("SessionStart", "one", source="startup")
    inspected.fire("BeforeAgent", "one", prompt="go")
    inspected.fire("BeforeTool", "one", **call("a", "1"))
    inspected.fire("BeforeTool", "one", **call("b", "2"))
    inspected.fire("AfterTool", "one", **call("a", "1"), **DONE)
    inspected.fire("BeforeTool", "two", **call(".env", "3"))
    with inspected.opened(page):
        expect(page.locator("tr.group-session")).to_have_count(2)
        expect(page.locator("tr.group-session").first).to_contain_text("Session two")
        expect(page.locator("tr.group-session").first).to_contain_text("✕1 blocked")
        expect(page.locator("tr.group-turn")).to_contain_text(["4 events"])
        assert names(page)[1:] == [
            # The two events of a call are together, though another came between.
            *("AfterTool write", "BeforeTool write", "BeforeTool write"),
            *("BeforeAgent", "SessionStart startup"),
        ]
        expect(page.locator("tr.call-after + tr.call-before")).to_have_count(1)
        turn = page.locator("tr.group-turn button")
        turn.click()
        expect(rows(page)).to_have_count(2)
        expect(turn).to_have_attribute("aria-expanded", "false")
        turn.press("ArrowRight")
        expect(rows(page)).to_have_count(6)
        page.get_by_role("button", name="Groups").click()
        expect(page.locator("tr.group")).to_have_count(0)
        assert query(page) == {"flat": ["1"]}
        assert names(page)[:3] == [
            *("BeforeTool write", "AfterTool write", "BeforeTool write"),
        ]


def test_many_events_are_few_elements_and_new_ones_do_not_move_them(
    inspected: Inspected, page: Page, problems: Problems
) -> None:
    many(inspected, 1_200)
    with inspected.opened(page):
        rows(page).first.wait_for()
        page.get_by_role("button", name="Groups").click()
        scroll_to(page, 3000)
        inspected.fire("BeforeTool", tool_name="write", tool_input={"path": ".env"})
        button = page.get_by_role("button", name="1 new event")
        expect(button).to_be_visible()
        top = "document.querySelector('.timeline-scroller').scrollTop"
        assert page.evaluate(top) == 3000
        button.click()
        expect(rows(page).first).to_contain_text("BeforeTool write")
        assert page.evaluate(top) == 0
        expect(button).to_be_hidden()
        end = page.locator(".timeline-end")
        while "No older events" not in end.inner_text():
            scroll_to(page, 10_000_000)
            expect(end).not_to_have_text("Loading older events…")
            assert rows(page).count() <= 300
        expect(end).to_have_text("No older events. 1,201 events shown.")
        expect(rows(page).last).to_be_visible()
        page.get_by_role("button", name="Groups").click()
        assert rows(page).count() < 200


def test_filters_are_in_the_address_and_back_takes_them_away(
    inspected: Inspected, page: Page, problems: Problems
) -> None:
    many(inspected, 2000)
    with inspected.opened(page):
        rows(page).first.wait_for()
        page.keyboard.press("/")
        page.keyboard.type("number 1940")
        expect(rows(page)).to_have_count(1)
        expect(page.locator("#announcer")).to_have_text("1 event")
        assert query(page) == {"text": ["number 1940"]}
        expect(page.get_by_label("Search")).to_be_focused()
        page.get_by_label("Verdict").select_option("allowed")
        expect(page.get_by_role("heading", name="No matching events")).to_be_visible()
        shared = page.url
        page.go_back()
        expect(rows(page)).to_have_count(1)
        expect(page.get_by_label("Verdict")).to_have_value("")
        page.go_back()
        expect(page.get_by_label("Search")).to_have_value("")
        assert query(page) == {}
        page.goto(shared)
        expect(page.get_by_label("Search")).to_have_value("number 1940")
        expect(page.get_by_role("heading", name="No matching events")).to_be_visible()
        page.get_by_role("link", name="Clear filters").click()
        rows(page).first.wait_for()
        page.goto(f"{inspected.base}/?hook=hook-0&verdict=blocked&event=BeforeTool")
        expect(page.get_by_label("Event", exact=True)).to_have_value("BeforeTool")
        expect(rows(page).first).to_contain_text("blocked")
        options = page.locator("#filter-hook-list option")
        expect(options.first).to_have_attribute("label", "400 events")
        page.goto(f"{inspected.base}/?since=4000000000")
        expect(page.get_by_role("heading", name="No matching events")).to_be_visible()
        page.get_by_role("button", name="Remove the filter: since").click()
        rows(page).first.wait_for()
        assert query(page) == {}


def test_the_keyboard_is_enough(
    inspected: Inspected, page: Page, problems: Problems
) -> None:
    many(inspected, 300)
    with inspected.served():
        page.goto(f"{inspected.address}&flat=1")
        # A short list is there as a whole, and only that.
        expect(page.locator("tbody tr")).to_have_count(200)
        expect(page.locator("tbody tr").first).to_be_visible()
        for key in "jjjk":
            page.keyboard.press(key)
        selected = page.locator("tr.selected")
        expect(selected).to_have_attribute("data-key", "event 299")
        page.keyboard.press("End")
        expect(selected).to_be_in_viewport()
        page.keyboard.press("Home")
        expect(selected).to_have_attribute("data-key", "event 300")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        expect(page).to_have_url(f"{inspected.base}/events/299")
        expect(page.get_by_role("heading", level=1)).to_be_focused()
        page.keyboard.press("[")
        expect(page.get_by_text("#298")).to_be_visible()
        page.keyboard.press("]")
        expect(page.get_by_text("#299")).to_be_visible()
        page.go_back()
        page.go_back()
        page.go_back()
        # Back where it was, with the same row.
        expect(selected).to_have_attribute("data-key", "event 299")
        page.keyboard.press("?")
        expect(page.get_by_role("dialog", name="Keyboard")).to_be_visible()
        page.keyboard.press("Escape")
        page.keyboard.press("g")
        page.keyboard.press("h")
        expect(page).to_have_url(f"{inspected.base}/hooks")


def test_a_lost_connection_is_told_and_found_again(
    inspected: Inspected, page: Page, problems: Problems
) -> None:
    many(inspected, 5)
    with inspected.running() as process:
        page.goto(inspected.address)
        rows(page).first.wait_for()
        process.terminate()
        status = page.locator(".live")
        expect(status).to_contain_text("Connection lost")
        expect(status).to_contain_text("Trying again")
    port = str(urlsplit(inspected.address).port)
    with inspected.running("--port", port):
        printed = "open the address that 'hookline inspect' printed"
        expect(status).to_contain_text(printed)
        rows(page).first.get_by_role("link").click()
        expect(page.get_by_role("alert")).to_contain_text(printed)
        page.go_back()
        # The new server has a new token: another tab opens its address.
        page.context.new_page().goto(inspected.address)
        expect(status).to_have_text("Live")
        inspected.fire("SessionStart", source="startup")
        expect(rows(page).first).to_contain_text("SessionStart")
    problems.found = [one for one in problems.found if "Failed to load" not in one]


HOSTILE = "<img src=x onerror=alert(1)>\u202e\x1b[31m\u0000" + "x" * 100_000


def test_hostile_rows_are_text_and_nothing_scrolls_sideways(
    inspected: Inspected, page: Page, problems: Problems
) -> None:
    many(inspected, 10)
    update = "UPDATE events SET target = ?1, session = ?1, cwd = ?1, reason = ?1"
    change(inspected.journal, f"{update}, blocked = 1, verdict = 'blocked'", HOSTILE)
    change(inspected.journal, "UPDATE hooks SET blocked = 1, name = ?", HOSTILE)
    odd = "SET hook_count = 1 << 60, duration_ms = 1e300"
    change(inspected.journal, f"UPDATE events {odd} WHERE id = 3")
    change(inspected.journal, "UPDATE events SET verdict = 'constructor' WHERE id = 4")
    change(inspected.journal, "UPDATE events SET at = 1e300 WHERE id = 5")
    page.emulate_media(color_scheme="dark")
    with inspected.opened(page):
        row = rows(page).first
        expect(row).to_contain_text("<img src=x onerror=alert(1)>\\u202e\\u001b[31m")
        expect(rows(page)).to_have_count(10)
        expect(rows(page).filter(has_text="damaged")).to_have_count(2)
        assert page.locator("img").count() == 0
        background = "getComputedStyle(document.body).backgroundColor"
        assert page.evaluate(background) == "rgb(18, 19, 21)"
        for size in (page.viewport_size, PHONE):
            assert size is not None
            page.set_viewport_size(size)
            page.reload()
            expect(rows(page)).to_have_count(10)
            assert sideways(page) <= 0
            heights = rows(page).evaluate_all("all => all.map(e => e.offsetHeight)")
            assert len(set(heights)) == 1


def test_a_search_that_takes_too_long_goes_on_as_long_as_it_gets_somewhere(
    inspected: Inspected, page: Page, problems: Problems
) -> None:
    many(inspected, 10)
    empty = {"events": [], "searched_to": {"id": 5, "at": 1.0}, "complete": False}
    reached = iter((8, 5, 5))

    def answer(route: Route) -> None:
        route.fulfill(json={**empty, "next": next(reached)})

    with inspected.served():
        page.route("**/api/events?text=rare*", answer, times=3)
        page.goto(f"{inspected.address}&text=rare")
        expect(page.locator(".timeline-end")).to_contain_text("Searched back to")
        page.get_by_role("button", name="Go on").click()
        expect(page.get_by_role("heading", name="No matching events")).to_be_visible()
