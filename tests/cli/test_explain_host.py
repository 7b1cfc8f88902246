"""``hookline explain --host``: what a coding agent makes of hooks (issue 15.2)."""

from __future__ import annotations

from typing import Any

import pytest

from hookline.hosts.catalog import all_hosts
from hookline.hosts.host import EFFECTS, Host
from hookline.protocol.events import HookEventName

from .bench import GUARD, Bench, before_tool, command, group, says

UNTESTED = "untested: written by its documentation"
HOOKS = {
    "BeforeTool": [group(GUARD), group(command("true", "second"))],
    "AfterModel": [group(command("true", "filter"))],
}


def settings(bench: Bench, **config: Any) -> str:
    return bench.settings("s.json", {"hooks": HOOKS, "hooksConfig": config})


def test_overview_shows_their_events_the_hooks_and_what_is_lost(bench: Bench) -> None:
    shown = bench.run("explain", "--host", "cursor", "--settings", settings(bench))
    assert shown.returncode == 0
    lines = shown.stdout.splitlines()
    assert lines[0] == f"Cursor ({UNTESTED})"
    assert lines[2].split() == ["event", "in", "Cursor", "hooks"]
    assert lines[3].split() == ["BeforeTool", "preToolUse", "guard,", "second"]
    assert lines[4].split() == ["AfterModel", "-", "filter"]
    assert "  BeforeTool, stop: the call is refused, and the agent goes on" in lines
    told = "Cursor has no such event, hooks of AfterModel do not run there"
    assert f"  AfterModel: not fired: {told}" in lines


def test_overview_leaves_disabled_hooks_out(bench: Bench) -> None:
    names = ["guard", "second", "filter"]
    path = settings(bench, disabled=names)
    shown = bench.run("explain", "--host", "cline", "--settings", path).stdout
    assert "no hooks are configured" in shown
    path = settings(bench, disabled=names[1:])
    (event,) = bench.json("explain", "--host", "cline", "--settings", path)["events"]
    assert (event["event"], event["hooks"]) == ("BeforeTool", ["guard"])


@pytest.mark.parametrize("host", all_hosts().values(), ids=lambda one: one.name.value)
def test_overview_of_every_host_says_what_its_tables_say(
    bench: Bench, host: Host
) -> None:
    path = settings(bench)
    found = bench.json("explain", "--host", host.name.value, "--settings", path)
    about = {"name": host.name.value, "title": host.title, "tested": host.tested}
    assert found["host"] == about
    for one in found["events"]:
        event = HookEventName(one["event"])
        names = [name for name, ours in host.events.items() if ours is event]
        assert (one["events"], one["fired"]) == (names, bool(names))
        limits = host.limits.get(event, {})
        expected = {each.value: limits.get(each) for each in EFFECTS[event]}
        assert one["effects"] == (expected if names else {})


def test_an_event_is_explained_with_its_name_there_and_each_effect(
    bench: Bench,
) -> None:
    words = ("explain", "BeforeTool", "--tool", "write_file", "--host", "kiro")
    shown = bench.run(*words, "--settings", settings(bench)).stdout
    assert "2 of 2 hooks would run" in shown
    there = shown.partition(f"\nin Kiro ({UNTESTED})\n")[2].splitlines()
    assert there[0] == "    its event: PreToolUse"
    assert there[1] == "    block: as the hook says"
    told = "hooks cannot ask here, hooksConfig.onAsk decides"
    assert there[2] == f"    ask: limited: {told}"


def test_an_event_that_the_host_does_not_have_is_said_so(bench: Bench) -> None:
    words = ("explain", "AfterModel", "--host", "cline", "--settings", settings(bench))
    shown = bench.run(*words).stdout
    assert "in Cline (tested with 3.0.65)\n    not fired: Cline has no such" in shown
    assert bench.json(*words)["host"]["fired"] is False


def test_a_run_shows_only_the_effects_that_hooks_asked_for(bench: Bench) -> None:
    change = {"hookSpecificOutput": {"tool_input": {"path": "b"}}}
    both = says({**change, "systemMessage": "a note"}, "both")
    path = bench.settings("s.json", before_tool(group(both)))
    words = ("explain", "BeforeTool", "--tool", "write_file", "--host", "kiro")
    found = bench.json(*words, "--run", "--settings", path)["host"]
    assert list(found["effects"]) == ["change", "message"]
    expected = "the call is refused, with the input that hooks want"
    assert found["effects"]["change"] == expected


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("explain",), "which event?"),
        (("explain", "--host", "cline", "--tool", "x"), "which event?"),
        (("explain", "--host", "cline", "--run"), "which event?"),
        (("explain", "--host", "clin"), "unknown host 'clin': did you mean 'cline'?"),
        (("explain", "BeforeTol", "--host", "cline"), "BeforeTol"),
    ],
)
def test_usage_errors(bench: Bench, words: tuple[str, ...], message: str) -> None:
    done = bench.run(*words)
    assert done.returncode == 1
    assert message in done.stderr
    assert not done.stdout
