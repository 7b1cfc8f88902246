"""Matchers of hooks that were written for other hosts.

protocol.md#dialects, issue 15.6
"""

from __future__ import annotations

from typing import Any

import pytest

from hookline import Settings
from hookline.engine.planner import HookPlanner
from hookline.engine.registry import HookRegistry
from hookline.protocol.events import TRAITS
from hookline.protocol.events import HookEventName as E
from tests.support.workshop import INPUTS, Workshop

MCP = {"server_name": "github", "tool_name": "create_issue"}


def hook(dialect: str, **more: Any) -> dict[str, Any]:
    return {"type": "command", "command": "exit 2", "dialect": dialect, **more}


def planner(event: E, dialect: str, *matchers: str, **more: Any) -> HookPlanner:
    groups = [
        {"matcher": matcher, "hooks": [hook(dialect, name=matcher, **more)]}
        for matcher in matchers
    ]
    settings = Settings.from_mapping({"hooks": {event.value: groups}})
    return HookPlanner(HookRegistry(settings))


def matched(plans: HookPlanner, event: E, **fields: Any) -> list[str]:
    plan = plans.plan_for(event, fields)
    return [] if plan is None else [one.name for one in plan.hooks]


@pytest.mark.parametrize(
    ("matcher", "tool", "hit"),
    [
        ("Bash", "run_shell_command", True),
        ("Bas", "run_shell_command", False),
        ("run_shell_command", "run_shell_command", False),
        ("BashOutput|Bash", "run_shell_command", True),
        ("^B", "run_shell_command", True),
        ("Write|Edit", "replace", True),
        ("MultiEdit", "replace", True),
        ("Agent", "task", True),
        ("Task", "task", True),
        ("Grep", "grep_search", True),
        ("(?<what>Write|Edit)$", "write_file", True),
        ("(?<what>Write|Edit)$", "read_file", False),
        ("*", "anything", True),
        (" ", "anything", True),
        ("Notebook.*", "write_file", False),
    ],
)
def test_a_claude_matcher_is_held_against_the_names_that_the_hook_is_shown(
    matcher: str, tool: str, hit: bool
) -> None:
    plans = planner(E.BeforeTool, "claude", matcher)
    assert bool(matched(plans, E.BeforeTool, tool_name=tool)) is hit


@pytest.mark.parametrize(
    ("matcher", "tool", "hit"),
    [
        ("write", "write_file", True),
        ("write_file|replace", "edit", True),
        ("google_web_search", "web_search", True),
        ("grep_search", "search_file_content", True),
        ("^search_file_content$", "grep_search", True),
        ("Bash", "run_shell_command", False),
        ("(?<t>shell)", "run_shell_command", True),
    ],
)
def test_a_gemini_matcher_is_searched_in_the_name_of_the_tool(
    matcher: str, tool: str, hit: bool
) -> None:
    plans = planner(E.AfterTool, "gemini", matcher)
    assert bool(matched(plans, E.AfterTool, tool_name=tool)) is hit


@pytest.mark.parametrize(
    ("dialect", "matcher", "hit"),
    [
        ("claude", "mcp__github__.*", True),
        ("claude", "mcp__github__create_issue", True),
        ("claude", "mcp__github", False),
        ("claude", "mcp__gitlab__.*", False),
        ("claude", "create_issue", False),
        ("gemini", "mcp_github_.*", True),
        ("gemini", "^mcp_github_create_issue$", True),
        ("gemini", "^create_issue$", False),
    ],
)
def test_an_mcp_tool_has_the_name_that_the_hook_is_shown(
    dialect: str, matcher: str, hit: bool
) -> None:
    plans = planner(E.BeforeTool, dialect, matcher)
    fields = {"tool_name": "create_issue", "mcp_context": MCP}
    assert bool(matched(plans, E.BeforeTool, **fields)) is hit


@pytest.mark.parametrize(
    ("event", "matcher", "value", "claude", "gemini"),
    [
        (E.SessionStart, "compact", "compress", True, False),
        (E.SessionStart, "compress", "compress", False, True),
        (E.SessionStart, "startup|resume", "resume", True, False),
        (E.SessionStart, "^re", "resume", True, False),
        (E.Notification, "permission_prompt", "ToolPermission", True, False),
        (E.Notification, "idle_prompt", "idle_prompt", True, True),
        (E.SessionEnd, "other", "exit", True, False),
        (E.SessionEnd, "exit", "exit", False, True),
        (E.PreCompress, "auto", "auto", True, True),
        (E.SubagentStart, "code-.*", "code-reviewer", True, False),
        (E.SubagentStop, "code-reviewer", "code-reviewer", True, True),
    ],
)
def test_a_lifecycle_matcher_is_an_expression_in_claude_and_a_value_in_gemini(
    event: E, matcher: str, value: str, claude: bool, gemini: bool
) -> None:
    field = TRAITS[event].matched_field
    for dialect, hit in (("claude", claude), ("gemini", gemini)):
        plans = planner(event, dialect, matcher)
        assert bool(matched(plans, event, **{field: value})) is hit, dialect


def test_plans_of_one_tool_name_differ_by_what_hooks_are_shown() -> None:
    """The cache tells a tool from the MCP tool of the same name, in any order."""
    plans = planner(E.BeforeTool, "claude", "create_issue", "mcp__github__.*")
    for _ in range(2):
        assert matched(plans, E.BeforeTool, tool_name="create_issue") == [
            "create_issue"
        ]
        with_server = {"tool_name": "create_issue", "mcp_context": MCP}
        assert matched(plans, E.BeforeTool, **with_server) == ["mcp__github__.*"]
        host = {"name": "claude", "tool_name": "mcp__github__x"}
        sent = {"tool_name": "create_issue", "host": host}
        assert matched(plans, E.BeforeTool, **sent) == ["mcp__github__.*"]


def test_hooks_without_a_dialect_are_matched_by_our_names_beside_others() -> None:
    ours = {"type": "command", "command": "ours"}
    settings = {
        "hooks": {
            "BeforeTool": [
                {"matcher": "^run_shell_command$", "hooks": [ours]},
                {"matcher": "Bash", "hooks": [hook("claude", command="claude")]},
                {"matcher": "shell", "hooks": [hook("gemini", command="gemini")]},
                {"matcher": "Bash", "hooks": [ours | {"command": "no"}]},
            ]
        }
    }
    plans = HookPlanner(HookRegistry(Settings.from_mapping(settings)))
    found = matched(plans, E.BeforeTool, tool_name="run_shell_command")
    assert found == ["ours", "claude", "gemini"]


def test_a_rule_with_a_dialect_is_matched_by_our_names() -> None:
    rule = {"type": "rule", "when": "true", "name": "r", "dialect": "claude"}
    groups = [{"matcher": "run_shell_command", "hooks": [rule]}]
    settings = Settings.from_mapping({"hooks": {"BeforeTool": groups}})
    plans = HookPlanner(HookRegistry(settings))
    assert matched(plans, E.BeforeTool, tool_name="run_shell_command") == ["r"]


@pytest.mark.parametrize("dialect", ["claude", "gemini"])
@pytest.mark.parametrize(
    "fields",
    [
        {"tool_name": "x" * 300},
        {"tool_name": "x", "mcp_context": {"server_name": "s" * 300}},
        {"tool_name": "x", "mcp_context": object()},
        {"tool_name": 5},
    ],
    ids=["long name", "long server", "no context", "no name"],
)
def test_a_name_that_is_too_long_or_unknown_matches_every_matcher(
    dialect: str, fields: dict[str, Any]
) -> None:
    """protocol.md#planning for what the hook is shown."""
    plans = planner(E.BeforeTool, dialect, "^Read$")
    assert matched(plans, E.BeforeTool, **fields) == ["^Read$"]


@pytest.mark.parametrize("dialect", ["claude", "gemini"])
def test_a_matcher_that_backtracks_for_ever_is_decided_in_time(dialect: str) -> None:
    plans = planner(E.BeforeTool, dialect, "^(?<all>(a+)+)$")
    assert matched(plans, E.BeforeTool, tool_name="a" * 200 + "!") == []


@pytest.mark.parametrize("dialect", ["claude", "gemini"])
@pytest.mark.parametrize("event", list(E))
async def test_a_hook_without_a_matcher_runs_on_every_event(
    workshop: Workshop, event: E, dialect: str
) -> None:
    command = "cat > seen.json"
    await workshop.fire(event, hook(dialect, command=command), given=INPUTS[event])
    assert workshop.seen()["session_id"] == "s-1"
