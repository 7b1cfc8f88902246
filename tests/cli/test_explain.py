"""``hookline explain``: why each hook would or would not run, and what it set."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hookline.cli.main import main
from tests.support.project import Project

from .bench import CRASH, GUARD, Bench, before_tool, command, group, says

MARK = command("touch ran", "mark")


def judged(found: dict[str, Any]) -> list[tuple[str, str, int | None]]:
    return [(h["name"], h["judgement"], h["order"]) for h in found["hooks"]]


def test_explain_gives_a_reason_for_every_hook_and_runs_none(bench: Bench) -> None:
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
    assert why["disabled"] == f"listed in hooksConfig.disabled in {settings}"
    assert why["not matching"] == "matcher 'read' does not match tool_name 'write_file'"
    assert why["duplicate"] == f"the same hook as 'mark' in {settings}"
    assert found["hooks"][1]["observes"] is True
    assert found["sequential"] is False
    shown = bench.run(*words).stdout
    assert "2 of 5 hooks would run, in parallel" in shown
    assert "observes only" in shown
    assert not (bench.project / "ran").exists()


def test_explain_matches_hooks_of_other_hosts_by_what_they_are_shown(
    bench: Bench,
) -> None:
    """protocol.md#dialects."""
    theirs = MARK | {"dialect": "claude"}
    settings = before_tool(
        {"matcher": "Bash", "hooks": [theirs | {"name": "a"}]},
        {"matcher": "Write|Edit", "hooks": [theirs | {"name": "b"}]},
        {"matcher": "^mcp__x__", "hooks": [theirs | {"name": "c"}]},
    )
    (bench.project / "s.json").write_text(json.dumps(settings))
    words = ("explain", "BeforeTool", "--settings", "s.json", "--tool", "replace")
    found = bench.json(*words)
    assert {one["name"]: one["why"] for one in found["hooks"]} == {
        "a": "matcher 'Bash' does not match 'Edit' or 'MultiEdit', "
        "for claude tool_name 'replace'",
        "b": "matcher 'Write|Edit' matches 'Edit', for claude tool_name 'replace'",
        "c": "matcher '^mcp__x__' does not match 'Edit' or 'MultiEdit', "
        "for claude tool_name 'replace'",
    }
    assert {one["dialect"] for one in found["hooks"]} == {"claude"}
    assert ", dialect claude" in bench.run(*words).stdout


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
    assert "one after another, because of" in shown
    assert f"the group with matcher 'write' in {settings}" in shown


def test_explain_without_a_tool_shows_when_each_hook_runs(bench: Bench) -> None:
    settings = bench.settings("s.json", before_tool(group(GUARD, matcher="write")))
    found = bench.json("explain", "BeforeTool", "--settings", settings)
    (hook,) = found["hooks"]
    assert hook["why"] == "runs if matcher 'write' matches the tool_name"


def test_explain_shows_that_a_long_name_matches_every_matcher(bench: Bench) -> None:
    """protocol.md#planning: a crafted name cannot bypass a guard."""
    settings = bench.settings("s.json", before_tool(group(GUARD, matcher="write")))
    found = bench.json(
        "explain", "BeforeTool", "--settings", settings, "--tool", "x" * 300
    )
    (hook,) = found["hooks"]
    assert hook["judgement"] == "runs"
    assert "more than 256 characters" in hook["why"]


def test_explain_shows_untrusted_and_disabled_hooks(bench: Bench) -> None:
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


@pytest.mark.parametrize("matcher", ["startup", " startup ", "resume", "start"])
def test_explain_gives_a_true_reason_for_an_exact_match(
    bench: Bench, matcher: str
) -> None:
    """Blanks around a matcher do not count (protocol.md#planning)."""
    settings = bench.settings(
        "s.json", {"hooks": {"SessionStart": [group(MARK, matcher=matcher)]}}
    )
    (bench.project / "in.json").write_text('{"source": "startup"}')
    words = ("explain", "SessionStart", "--settings", settings, "--input", "in.json")
    (hook,) = bench.json(*words)["hooks"]
    verb = "matches" if hook["runs"] else "does not match"
    assert hook["runs"] is (matcher.strip() == "startup")
    assert hook["why"] == f"matcher {matcher.strip()!r} {verb} source 'startup'"


def test_explain_run_shows_which_hook_set_each_field(bench: Bench) -> None:
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
    assert 'second: "block" (used)' in done.stdout
    assert 'first: "allow" (overridden)' in done.stdout
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
    assert "needs a tool name" in done.stderr


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["Before"], "did you mean"),
        (["BeforeTool", "--tool-input", "{"], "is not valid JSON"),
        (["BeforeTool", "--input", "none.json"], "none.json"),
        (["BeforeTool", "--settings", "none.json"], "none.json"),
        (["BeforeTool", "--cwd", "nowhere"], "is not a directory"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_explain_reports_usage_errors(
    bench: Bench, words: list[str], problem: str
) -> None:
    done = bench.run("explain", *words)
    assert done.returncode == 1
    assert problem in done.stderr
    assert "Traceback" not in done.stderr


def test_explain_reports_that_no_hooks_are_configured(bench: Bench) -> None:
    done = bench.run("explain", "BeforeAgent")
    assert (done.returncode, done.stdout) == (
        0,
        "BeforeAgent: no hooks are configured for this event\n",
    )


def test_explain_does_not_say_that_a_changed_hook_runs(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    """Issue 12.14: it fails, whatever its matcher says."""
    project.guarded()
    project.trust()
    project.write(".hookline/hooks/guard.sh", "exit 0")
    capsys.readouterr()
    main(["explain", "BeforeTool", "--tool", "x", "--cwd", str(project.folder)])
    shown = capsys.readouterr().out
    assert "none of 1 hook would run" in shown
    assert "guard: changed" in shown
    assert "guard.sh changed since it was approved, so it fails" in shown
