"""``hookline explain``: why each hook would or would not run, and who said what."""

from __future__ import annotations

import json
from typing import Any

import pytest

from .bench import CRASH, GUARD, Bench, before_tool, command, group, says

MARK = command("touch ran", "mark")


def judged(found: dict[str, Any]) -> list[tuple[str, str, int | None]]:
    return [(h["name"], h["judgement"], h["order"]) for h in found["hooks"]]


def test_explain_says_of_every_hook_why_and_runs_nothing(bench: Bench) -> None:
    settings = bench.settings(
        "s.json",
        before_tool(
            group(MARK, command("true", "off"), matcher="write_.*"),
            group(MARK, matcher="write"),
            group(GUARD, matcher="read"),
            group(command("true", "watch", mode="observe")),
            disabled=["off"],
        ),
    )
    words = ("explain", "BeforeTool", "--tool", "write_file", "--settings", settings)
    found = bench.json(*words)
    assert judged(found) == [
        ("mark", "runs", 1),
        ("watch", "runs", 2),
        ("off", "disabled", None),
        ("mark", "duplicate", None),
        ("guard", "not matching", None),
    ]
    why = {hook["judgement"]: hook["why"] for hook in found["hooks"]}
    assert why["disabled"] == f"hooksConfig.disabled names it in {settings}"
    assert why["not matching"] == "matcher 'read' is not found in 'write_file'"
    assert why["duplicate"] == f"the same as 'mark' of {settings}"
    assert found["hooks"][1]["observes"] is True
    assert found["sequential"] is False
    shown = bench.run(*words).stdout
    assert "2 of 5 hooks would run, all at once" in shown
    assert "observes only" in shown
    assert not (bench.project / "ran").exists()


def test_explain_names_the_group_that_makes_the_plan_sequential(bench: Bench) -> None:
    settings = bench.settings(
        "s.json",
        before_tool(
            group(MARK),
            group(GUARD, matcher="write", sequential=True),
            group(CRASH, matcher="read", sequential=True),
        ),
    )
    words = ("explain", "BeforeTool", "--tool", "write_file", "--settings", settings)
    assert bench.json(*words)["sequential_because_of"] == ["guard"]
    shown = bench.run(*words).stdout
    assert "one after the other, because of" in shown
    assert f"the group with matcher 'write' in {settings}" in shown


def test_explain_without_a_tool_says_what_each_hook_waits_for(bench: Bench) -> None:
    settings = bench.settings("s.json", before_tool(group(GUARD, matcher="write")))
    found = bench.json("explain", "BeforeTool", "--settings", settings)
    (hook,) = found["hooks"]
    assert hook["why"] == "only where the matcher 'write' fits the tool_name"


def test_explain_knows_that_a_long_name_fits_every_matcher(bench: Bench) -> None:
    """PROTOCOL 3.2: no clever name slips past a guard."""
    settings = bench.settings("s.json", before_tool(group(GUARD, matcher="write")))
    found = bench.json(
        "explain", "BeforeTool", "--settings", settings, "--tool", "x" * 300
    )
    (hook,) = found["hooks"]
    assert hook["judgement"] == "runs"
    assert "more than 256 characters" in hook["why"]


def test_explain_shows_untrusted_and_switched_off_hooks(bench: Bench) -> None:
    folder = bench.project / ".hookline"
    folder.mkdir()
    (folder / "settings.json").write_text(json.dumps(before_tool(group(MARK))))
    assert judged(bench.json("explain", "BeforeTool", "--tool", "t")) == [
        ("mark", "untrusted", None)
    ]
    config = bench.home / "config" / "hookline"
    config.mkdir(parents=True)
    own = before_tool(group(GUARD)) | {"enableHooks": False}
    (config / "settings.json").write_text(json.dumps(own))
    found = bench.json("explain", "BeforeTool", "--tool", "t")
    guard = next(hook for hook in found["hooks"] if hook["name"] == "guard")
    assert guard["judgement"] == "switched off"
    assert guard["why"] == f"enableHooks is false in {config / 'settings.json'}"


def test_explain_shows_hooks_that_would_be_skipped(bench: Bench) -> None:
    settings = bench.settings("s.json", before_tool(group(GUARD), maxDepth=2))
    bench.env["HOOKLINE_DEPTH"] = "2"
    words = ("explain", "BeforeTool", "--tool", "t", "--settings", settings)
    (hook,) = bench.json(*words)["hooks"]
    assert hook["judgement"] == "skipped"
    assert "nested deeper than maxDepth 2" in hook["why"]
    assert hook["runs"] is False


@pytest.mark.parametrize(
    ("event", "matcher", "source", "runs"),
    [
        ("SessionStart", "startup", "startup", True),
        ("SessionStart", "start", "startup", False),
        ("BeforeAgent", "anything", None, True),
    ],
)
def test_explain_knows_how_each_event_is_matched(
    bench: Bench, event: str, matcher: str, source: str | None, runs: bool
) -> None:
    settings = bench.settings(
        "s.json", {"hooks": {event: [group(MARK, matcher=matcher)]}}
    )
    (bench.project / "in.json").write_text(json.dumps({"source": source}))
    found = bench.json("explain", event, "--settings", settings, "--input", "in.json")
    assert [hook["runs"] for hook in found["hooks"]] == [runs]


def test_explain_run_shows_who_gave_each_field_and_who_lost(bench: Bench) -> None:
    first = {
        "decision": "allow",
        "systemMessage": "one",
        "hookSpecificOutput": {"tool_input": {"path": "x", "mode": 1}},
    }
    second = {
        "decision": "block",
        "reason": "no",
        "systemMessage": "two",
        "hookSpecificOutput": {"tool_input": {"path": "y"}},
    }
    settings = bench.settings(
        "s.json", before_tool(group(says(first, "first"), says(second, "second")))
    )
    words = ("explain", "BeforeTool", "--tool", "t", "--settings", settings, "--run")
    done = bench.run(*words)
    assert done.returncode == 2
    assert "gave second" in done.stdout
    found = bench.json(*words)
    origins = {
        origin["field"]: (
            origin["value"],
            {said["hook"]: said["part"] for said in origin["said"]},
        )
        for origin in found["origins"]
    }
    path, mode = (f"hookSpecificOutput.tool_input.{key}" for key in ("path", "mode"))
    assert origins["decision"] == ("block", {"first": "lost", "second": "gave"})
    assert origins["reason"] == ("no", {"second": "gave"})
    assert origins["systemMessage"][1] == {"first": "gave", "second": "gave"}
    assert origins[path] == ("y", {"first": "lost", "second": "gave"})
    assert origins[mode] == (1, {"first": "gave"})
    assert found["result"]["blocked"] is True


def test_explain_run_needs_what_fire_needs(bench: Bench) -> None:
    done = bench.run("explain", "BeforeTool", "--run")
    assert done.returncode == 1
    assert "needs the tool's name" in done.stderr


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["Before"], "did you mean"),
        (["BeforeTool", "--tool-input", "{"], "is no JSON"),
        (["BeforeTool", "--input", "none.json"], "none.json"),
        (["BeforeTool", "--settings", "none.json"], "none.json"),
        (["BeforeTool", "--cwd", "nowhere"], "is no directory"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_explain_answers_a_mistake_with_what_to_do(
    bench: Bench, words: list[str], problem: str
) -> None:
    done = bench.run("explain", *words)
    assert done.returncode == 1
    assert problem in done.stderr
    assert "Traceback" not in done.stderr


def test_explain_says_that_nothing_is_configured(bench: Bench) -> None:
    done = bench.run("explain", "BeforeAgent")
    assert (done.returncode, done.stdout) == (
        0,
        "BeforeAgent: no hook is configured for it\n",
    )
