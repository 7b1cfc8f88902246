"""The Hooks view: what is configured, and how it ran (issue 16: hooks)."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from hookline import Config, HookSystem, Settings
from hookline.inspector.desk import Desk
from hookline.inspector.hooks import MAX_RECORDED, list_hooks
from tests.support.project import Project

JOURNAL: dict[str, Any] = {"hooksConfig": {"journal": True}}


def command(name: str, text: str = "true", **more: Any) -> dict[str, Any]:
    return {"type": "command", "name": name, "command": text, **more}


def listed(desk: Desk) -> dict[str, dict[str, Any]]:
    return {hook["name"]: hook for hook in list_hooks(desk)["hooks"]}


async def fire(project: Project, *tools: str, event: str = "BeforeTool") -> None:
    async with project.system() as hooks:
        for tool in tools:
            given = {"tool_name": tool, "tool_input": {"path": f"{tool}.py"}}
            await hooks.event_handler.fire(event, given)


def test_everything_that_settings_say_of_a_hook_is_told(project: Project) -> None:
    more = {
        "description": "what it is for",
        "timeout": 1234,
        "mode": "observe",
        "dialect": "claude",
        "if": "tool_name == 'x'",
        "async": True,
        "onError": {"crash": "block"},
        "standby": 2,
    }
    hook = command("checks", "bash check.sh", **more)
    group = {"matcher": "write", "sequential": True, "hooks": [hook]}
    file = project.write(
        ".hookline/settings.json", json.dumps({"hooks": {"BeforeTool": [group]}})
    )
    project.trust()
    found = listed(Desk(str(project.folder)))["checks"]
    assert found.pop("key")
    assert found == {
        "name": "checks",
        "event": "BeforeTool",
        "source": "project",
        "file": str(file),
        "project": str(project.folder),
        "type": "command",
        "matcher": "write",
        "condition": "tool_name == 'x'",
        "expression": None,
        "runs": "bash check.sh",
        "mode": "observe",
        "trust": "trusted",
        "trust_problem": None,
        "enabled": True,
        "why": None,
        "breaker": {
            "state": "closed",
            "skipped": [],
            "timeouts": 3,
            "cooldown_ms": 300_000,
        },
        "managed": False,
        "dialect": "claude",
        "async": True,
        "sequential": True,
        "standby": 2,
        "timeout_ms": 1234,
        "on_error": {
            "spawn": "allow",
            "crash": "block",
            "timeout": "allow",
            "output": "allow",
            "changed": "block",
        },
        "description": "what it is for",
        "figures": None,
        "namesakes": 0,
    }


def test_a_rule_is_told_with_its_expression(project: Project) -> None:
    project.settings({"type": "rule", "name": "no", "when": "tool_name == 'x'"})
    found = listed(Desk(str(project.folder)))["no"]
    assert (found["expression"], found["runs"]) == ("tool_name == 'x'", None)


def test_a_hook_that_does_not_run_is_listed_with_the_reason(project: Project) -> None:
    file = project.settings(command("off"), hooksConfig={"disabled": ["off"]})
    project.trust()
    found = listed(Desk(str(project.folder)))["off"]
    assert not found["enabled"]
    assert found["why"] == f"listed in hooksConfig.disabled in {file}"
    project.settings(command("off"), enableHooks=False)
    project.trust()
    found = listed(Desk(str(project.folder)))["off"]
    assert not found["enabled"]
    assert found["why"] == f"enableHooks is false in {file}"


def test_trust_is_told_as_it_is_now(project: Project) -> None:
    project.guarded()
    assert listed(Desk(str(project.folder)))["guard"]["trust"] == "untrusted"
    project.trust()
    assert listed(Desk(str(project.folder)))["guard"]["trust"] == "trusted"
    project.write(".hookline/hooks/guard.sh", "exit 0")
    found = listed(Desk(str(project.folder)))["guard"]
    problem = ".hookline/hooks/guard.sh changed since it was approved"
    assert (found["trust"], found["trust_problem"]) == ("changed", problem)


async def test_breaker_is_told_for_each_tool(project: Project) -> None:
    """Kept in a file for each project: all processes count together."""
    slow = command("slow", "sleep 30", timeout=50)
    project.settings(slow, command("fast"))
    project.trust()
    await fire(project, "write", "write", "write", "read")
    found = listed(Desk(str(project.folder)))
    assert found["fast"]["breaker"]["state"] == "closed"
    breaker = found["slow"]["breaker"]
    assert breaker["state"] == "open"
    (skipped,) = breaker["skipped"]
    assert (skipped["tool"], skipped["timeouts"]) == ("write", 3)
    assert 0 < skipped["until"] - time.time() < 301
    project.settings(slow, hooksConfig={"breaker": False})
    project.trust()
    assert listed(Desk(str(project.folder)))["slow"]["breaker"] == {"state": "off"}


async def test_figures_count_what_happened(project: Project) -> None:
    project.settings(
        command("blocks", "exit 2"),
        command("watches", "exit 2", mode="observe"),
        command("fails", "echo broken >&2; exit 1"),
        command("slow", "sleep 30", timeout=50),
        **JOURNAL,
    )
    project.trust()
    await fire(project, "write", "read")
    answer = list_hooks(Desk(str(project.folder)))
    found = {hook["name"]: hook["figures"] for hook in answer["hooks"]}
    assert found["blocks"]["blocks"] == found["blocks"]["runs"]
    assert found["watches"]["would_block"] == found["watches"]["runs"]
    assert found["watches"]["blocks"] == 0
    assert found["fails"]["failures"] == found["fails"]["runs"]
    assert found["slow"]["timeouts"] == found["slow"]["failures"] == 2
    assert found["slow"]["p50_ms"] >= 50
    assert answer["of_runs"] == sum(its["runs"] for its in found.values())
    assert answer["complete"]
    assert abs(answer["since"] - time.time()) < 600
    for its in found.values():
        assert sum(bucket["count"] for bucket in its["histogram"]) == its["runs"]
        assert its["p50_ms"] <= its["p95_ms"] <= its["max_ms"]


async def test_a_hook_that_is_asked_again_is_counted_twice(project: Project) -> None:
    change = {"hookSpecificOutput": {"tool_input": {"path": "b"}}}
    changes = command("changes", f"echo '{json.dumps(change)}'")
    project.settings(command("guard"), changes, **JOURNAL)
    project.trust()
    await fire(project, "write")
    figures = listed(Desk(str(project.folder)))["guard"]["figures"]
    assert (figures["runs"], figures["rechecks"]) == (2, 1)


async def test_hooks_of_one_name_count_apart_where_the_journal_tells(
    project: Project,
) -> None:
    """By event, source and type; and by the project where they ran."""
    rule = {"type": "rule", "name": "same", "when": "true", "mode": "observe"}
    hooks = {
        "BeforeTool": [{"hooks": [command("same"), rule]}],
        "AfterTool": [{"hooks": [command("same")]}],
    }
    text = json.dumps({"hooks": hooks, **JOURNAL})
    project.write(".hookline/settings.json", text)
    project.trust()
    await fire(project, "a", "b", "c")
    await fire(project, "d", event="AfterTool")
    found = list_hooks(Desk(str(project.folder)))["hooks"]
    runs = {(h["event"], h["type"]): h["figures"]["runs"] for h in found}
    assert runs == {
        ("BeforeTool", "command"): 3,
        ("BeforeTool", "rule"): 3,
        ("AfterTool", "command"): 1,
    }
    assert {hook["namesakes"] for hook in found} == {0}


async def test_hooks_that_the_journal_cannot_tell_apart_say_so(
    project: Project,
) -> None:
    project.settings(command("same", "true"), command("same", "echo '{}'"), **JOURNAL)
    project.trust()
    await fire(project, "a")
    found = list_hooks(Desk(str(project.folder)))["hooks"]
    assert [hook["figures"]["runs"] for hook in found] == [2, 2]
    assert [hook["namesakes"] for hook in found] == [1, 1]
    assert len({hook["key"] for hook in found}) == 2


async def test_what_is_only_in_the_journal_is_listed_apart(
    project: Project, tmp_path: Path
) -> None:
    other = Project(tmp_path / "other", project.state)
    for one in (project, other):
        one.settings(command("shared"), command("dropped"), **JOURNAL)
        one.trust()
        await fire(one, "write")
    async with project.system() as hooks:
        hooks.on("BeforeTool")(in_code)
        await hooks.event_handler.fire_before_tool_event("write", {})
    project.settings(command("shared"), **JOURNAL)
    project.trust()
    answer = list_hooks(Desk(str(project.folder)))
    assert [hook["name"] for hook in answer["hooks"]] == ["shared"]
    assert answer["hooks"][0]["figures"]["runs"] == 2
    found = {
        (one["kind"], one["name"], one["folder"]): one["figures"]["runs"]
        for one in answer["recorded"]
    }
    assert found == {
        ("code", "in_code", None): 1,
        ("gone", "dropped", None): 2,
        ("elsewhere", "shared", str(other.folder)): 1,
        ("elsewhere", "dropped", str(other.folder)): 1,
    }


def in_code(_event: dict[str, Any]) -> None:
    """Registered by a program."""


def test_hooks_are_listed_without_a_journal(project: Project) -> None:
    project.settings(command("checks"))
    answer = list_hooks(Desk(str(project.folder)))
    assert [hook["name"] for hook in answer["hooks"]] == ["checks"]
    assert (answer["of_runs"], answer["since"]) == (0, None)
    assert "nothing has been recorded yet" in answer["journal_problem"]


def test_hooks_are_listed_beside_a_damaged_journal(
    project: Project, tmp_path: Path
) -> None:
    project.settings(command("checks"))
    path = tmp_path / "journal.sqlite"
    path.write_bytes(b"not a journal" * 99)
    answer = list_hooks(Desk(str(project.folder), journal=str(path)))
    assert [hook["name"] for hook in answer["hooks"]] == ["checks"]
    assert "is not a journal" in answer["journal_problem"]


def test_no_hooks_at_all_is_an_answer(tmp_path: Path) -> None:
    answer = list_hooks(Desk(str(tmp_path)))
    assert (answer["hooks"], answer["recorded"]) == ([], [])
    assert answer["cwd"] == str(tmp_path)


@pytest.mark.parametrize("where", ["env", "headers", "url", "command", "then"])
def test_credentials_in_settings_are_not_sent(project: Project, where: str) -> None:
    secret = "s3cr3t-0f-a-pers0n"
    hook: dict[str, Any] = {
        "env": command("checks", env={"API_TOKEN": secret}),
        "headers": {"type": "http", "url": "https://a.invalid/"},
        "url": {"type": "http", "url": f"https://u:{secret}@a.invalid/?k={secret}"},
        "command": command("checks", f"API_TOKEN={secret} bash check.sh"),
        "then": {"type": "rule", "when": "true", "then": {"reason": secret}},
    }[where]
    if where == "headers":
        hook["headers"] = {"Authorization": f"Bearer {secret}"}
    project.settings({"name": "checks", **hook})
    answer = list_hooks(Desk(str(project.folder)))
    assert [one["name"] for one in answer["hooks"]] == ["checks"]
    assert secret not in json.dumps(answer)


async def test_a_journal_with_any_number_of_names_gives_a_bounded_answer(
    project: Project, tmp_path: Path
) -> None:
    """Names come from whoever wrote the settings of that time."""
    many = [command(f"h{n}" + "x" * 5000, "exit 0") for n in range(MAX_RECORDED + 5)]
    rules = [{**one, "type": "rule", "when": "false"} for one in many]
    settings = {"hooks": {"BeforeTool": [{"hooks": rules}]}, **JOURNAL}
    config = Config("s", tmp_path, Settings.from_mapping(settings))
    async with HookSystem(config) as hooks:
        await hooks.event_handler.fire_before_tool_event("write", {})
    project.settings(command("checks"), **JOURNAL)
    answer = list_hooks(Desk(str(project.folder)))
    assert len(answer["recorded"]) == MAX_RECORDED
    assert answer["recorded_left_off"] == 5
    assert max(len(one["label"]) for one in answer["recorded"]) < 400


def test_settings_with_any_number_of_hooks_give_a_bounded_answer(
    project: Project,
) -> None:
    """A clone is listed before anybody approved it."""
    many = ({"type": "rule", "name": f"r{n}", "when": "true"} for n in range(2_100))
    project.settings(*many)
    answer = list_hooks(Desk(str(project.folder)))
    assert (len(answer["hooks"]), answer["hooks_left_off"]) == (2_000, 100)
