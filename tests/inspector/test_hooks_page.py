"""The Hooks view in a browser."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.support.browser import PHONE, Problems, sideways
from tests.support.inspecting import Inspected, build_showcase

HOSTILE = (
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(2)</script>",
    "javascript:alert(3)//\u202egnp.exe",
    "\x1b[2J\x00bell\x07\u3164\U000e0041",
    "long" * 900,
)


def open_view(page: Page, inspected: Inspected) -> None:
    page.goto(inspected.address)
    page.goto(f"{inspected.base}/hooks")
    expect(page.get_by_role("heading", level=1, name="Hooks")).to_be_visible()


def names(page: Page) -> list[str]:
    found = page.get_by_role("table", name="Configured hooks").locator("[data-row]")
    return found.all_inner_texts()


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Inspected]:
    """A project that does a bit of everything, inspected; nothing changes it."""
    inspected = Inspected(tmp_path_factory.mktemp("shown"))
    build_showcase(inspected)
    with inspected.served():
        yield inspected


def test_hooks_are_sorted_filtered_and_opened(
    page: Page, problems: Problems, shown: Inspected
) -> None:
    open_view(page, shown)
    table = page.get_by_role("table", name="Configured hooks")
    row = table.get_by_role("row", name="no-env-files")
    expect(row.get_by_role("cell").nth(0)).to_contain_text("write_file|replace")
    expect(row.get_by_role("img", name="Times of")).to_be_visible()
    assert len(names(page)) == 8

    table.get_by_role("button", name="Failures", exact=True).click()
    expect(page).to_have_url(re.compile(r"sort=-failures"))
    assert names(page)[0] == "licenses"
    heads = table.locator("th[aria-sort=descending]")
    assert heads.all_inner_texts()[0].startswith("Failures")
    focused = page.evaluate("() => document.activeElement.dataset.sort")
    assert focused == "failures"

    page.keyboard.press("/")
    page.keyboard.type("push")
    expect(page).to_have_url(re.compile(r"q=push"))
    assert names(page) == ["no-force-push"]
    expect(page.locator("#announcer")).to_have_text("1 of 8 hooks")
    page.reload()
    expect(page.locator("[data-row]")).to_have_count(1)
    page.get_by_label("Search hooks").fill("no such hook")
    page.get_by_role("button", name="Clear the filters").click()
    page.get_by_label("Event", exact=True).select_option("AfterTool")
    expect(page.locator("[data-row]")).to_have_text(["no-keys"])
    assert problems.found == []


def test_one_click_shows_the_last_failures_with_stderr(
    page: Page, problems: Problems, shown: Inspected
) -> None:
    open_view(page, shown)
    page.set_viewport_size({"width": 1280, "height": 500})
    page.get_by_role("button", name="show the last ones").click()
    failures = page.locator(".failed-runs > li")
    expect(page.get_by_role("region", name="Last failures")).to_be_focused()
    expect(failures.first).to_be_in_viewport()
    expect(failures.first).to_contain_text("licenses.toml: no such file")
    expect(failures.first).to_contain_text("exit code 1")
    link = failures.first.get_by_role("link", name=re.compile(r"Event \d+"))
    address = link.get_attribute("href") or ""
    assert address.startswith("/events/")
    opened = page.url
    link.click()
    expect(page).to_have_url(re.compile(f"{address}$"))
    page.go_back()
    expect(page).to_have_url(opened)
    expect(page.locator(".failed-runs > li").first).to_be_visible()
    assert problems.found == []


def test_a_rule_is_shown_with_the_values_of_a_chosen_event(
    page: Page, problems: Problems, shown: Inspected
) -> None:
    """By keyboard: to the row, open it, then any event by its number."""
    open_view(page, shown)
    page.keyboard.press("j")
    expect(page.locator("[data-row]").first).to_be_focused()
    page.keyboard.press("j")
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    row = page.get_by_role("button", name="no-env-files")
    expect(row).to_have_attribute("aria-expanded", "true")
    values = page.locator(".values")
    expect(values).to_contain_text("tool_input.path")
    chosen = page.get_by_label("With the values of")
    assert chosen.locator("option").count() > 2
    number = page.get_by_label("or event number")
    number.fill("5")
    number.press("Enter")
    expect(values.get_by_role("link", name="Event 5")).to_be_visible()
    expect(values).to_contain_text('"app/.env"')
    expect(values).to_contain_text("It ran on this event: blocked.")
    number.fill("1")
    number.press("Enter")
    expect(values).to_contain_text("choose one that is BeforeTool")
    problems.expect("400")


def test_nothing_scrolls_sideways_on_a_phone(
    page: Page, problems: Problems, shown: Inspected
) -> None:
    page.set_viewport_size(PHONE)
    open_view(page, shown)
    for name in ("licenses", "no-env-files", "no-downloads"):
        page.get_by_role("button", name=name, exact=True).click()
    expect(page.locator(".values").first).to_contain_text("tool_input")
    expect(page.locator(".failed-runs > li").first).to_be_visible()
    assert sideways(page) == 0
    # What screen readers are told does not depend on the layout.
    row = page.get_by_role("row", name="no-downloads").first
    assert row.get_by_role("cell").count() == 8
    assert problems.found == []


def test_empty_and_failed_states_say_what_to_do(
    page: Page, problems: Problems, inspected: Inspected
) -> None:
    with inspected.served():
        open_view(page, inspected)
        state = page.locator(".state")
        expect(state).to_contain_text("No hooks are configured")
        expect(state).to_contain_text("hookline init")
        expect(page.locator(".hook-notices")).to_contain_text("There are no figures")
    page.get_by_role("link", name="Trust").click()
    page.get_by_role("link", name="Hooks").click()
    expect(page.get_by_role("alert")).to_contain_text("hookline inspect")
    expect(page.get_by_role("button", name="Try again")).to_be_visible()
    problems.expect("ERR_CONNECTION_REFUSED")


def test_hostile_names_and_output_are_shown_as_text(
    page: Page, problems: Problems, inspected: Inspected
) -> None:
    """Settings are a project's, and stderr is anybody's."""
    script = inspected.folder / "say.py"
    script.write_text(
        "import sys\n"
        f"sys.stderr.write({''.join(HOSTILE)!r})\n"
        "sys.stderr.write('y' * 5_000_000)\nsys.exit(1)\n"
    )
    say = f'"$HOOKLINE_PYTHON" {script}'
    hooks = [
        {"type": "command", "name": name, "command": say, "description": name}
        for name in HOSTILE
    ]
    inspected.settings({"BeforeTool": [{"hooks": hooks}]})
    inspected.fire("BeforeTool", tool_name=HOSTILE[0], tool_input={})
    page.set_viewport_size(PHONE)
    with inspected.served():
        open_view(page, inspected)
        assert names(page)[:3] == [
            HOSTILE[0],
            HOSTILE[1],
            "javascript:alert(3)//\\u202egnp.exe",
        ]
        for row in page.locator("[data-row]").all():
            row.click()
        expect(page.locator(".failed-runs > li")).to_have_count(len(HOSTILE))
        said = page.locator(".failed-runs > li").first
        expect(said).to_contain_text("\\u001b[2J")
        expect(said).to_contain_text("\\u0007\\u3164\\udb40\\udc41")
        expect(said).to_contain_text(HOSTILE[1])
        assert page.locator("main img, main script").count() == 0
        assert sideways(page) == 0
        assert problems.found == []
