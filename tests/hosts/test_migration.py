"""Settings of other agents converted into ours, and what cannot be converted."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hookline import Settings
from hookline.hosts.migration import Migrated, MigrationSource, migrate, tool_matcher
from hookline.protocol.dialects import CLAUDE_TOOLS

SHELL, WRITE, EDIT = "run_shell_command", "write_file", "replace"


def claude(hooks: dict[str, Any], **more: Any) -> Migrated:
    return migrate(MigrationSource.CLAUDE, {"hooks": hooks, **more})


def one(event: str, matcher: str | None = None, **hook: Any) -> dict[str, Any]:
    group = {} if matcher is None else {"matcher": matcher}
    command = {"type": "command", "command": "check", **hook}
    return {event: [{**group, "hooks": [command]}]}


@pytest.mark.parametrize("source", MigrationSource)
def test_hooks_of_another_type_than_object_are_noted(source: MigrationSource) -> None:
    migrated = migrate(source, {"hooks": [{"PreToolUse": []}]})
    assert migrated.notes[0].startswith("hooks: expected an object")
    assert migrated.hook_count == 0


@pytest.mark.parametrize(
    ("theirs", "matched", "not_matched"),
    [
        ("Bash", [SHELL], [WRITE, "run_shell_command_2", "Bash"]),
        ("Edit|Write", [EDIT, WRITE], [SHELL, "write_files"]),
        ("Edit | Write", [EDIT, WRITE], [SHELL]),
        ("(Edit|Write)", [EDIT, WRITE], [SHELL]),
        ("MultiEdit", [EDIT], [WRITE]),
        ("mcp__.*", ["mcp__memory__store"], [SHELL, "memory"]),
        ("mcp__memory__store", ["mcp__memory__store"], ["mcp__memory__store2"]),
        ("Notebook.*", ["NotebookEdit"], [EDIT]),
        ("^(?!Bash$).*", [WRITE, "custom"], [SHELL]),
        ("^W", [WRITE, "web_fetch", "Widget"], [EDIT, "write"]),
        ("custom", ["custom"], ["customs"]),
        ("read.file", [], ["read_file"]),
        ("*", [SHELL, "x"], []),
        ("", [SHELL, "x"], []),
        (".*", [SHELL, "x"], []),
    ],
)
def test_matcher_matches_our_names_of_the_same_tools(
    theirs: str, matched: list[str], not_matched: list[str]
) -> None:
    (pattern,) = tool_matcher(theirs).patterns
    for name in matched:
        assert re.search(pattern or "", name), name
    for name in not_matched:
        assert not re.search(pattern or "", name), name


def test_invalid_expression_is_kept_and_noted() -> None:
    matcher = tool_matcher("Edit(")
    assert matcher.patterns == ("Edit(",)
    assert "not a valid regular expression" in matcher.notes[0]


@given(st.lists(st.sampled_from(sorted(CLAUDE_TOOLS)), min_size=1, unique=True))
@settings(max_examples=100)
def test_list_and_expression_of_the_same_names_match_the_same(names: list[str]) -> None:
    by_list = tool_matcher("|".join(names)).patterns[0] or ""
    by_expression = tool_matcher("^(" + "|".join(names) + ")$").patterns[0] or ""
    meant = {our for name in names for our in CLAUDE_TOOLS[name]}
    for our in {our for ours in CLAUDE_TOOLS.values() for our in ours}:
        assert bool(re.search(by_list, our)) == (our in meant)
        assert bool(re.search(by_expression, our)) == (our in meant)


def test_seconds_become_milliseconds_and_hooks_keep_their_dialect() -> None:
    found = claude(one("PreToolUse", "Bash", timeout=2.5))
    assert found.settings == {
        "enableHooks": True,
        "hooks": {
            "BeforeTool": [
                {
                    "matcher": "^run_shell_command$",
                    "hooks": [
                        {
                            "type": "command",
                            "command": "check",
                            "dialect": "claude",
                            "timeout": 2500,
                        }
                    ],
                }
            ]
        },
    }
    assert found.notes == ()
    assert found.hook_count == 1


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("PreToolUse", "BeforeTool"),
        ("PostToolUse", "AfterTool"),
        ("UserPromptSubmit", "BeforeAgent"),
        ("Stop", "AfterAgent"),
        ("SessionStart", "SessionStart"),
        ("SessionEnd", "SessionEnd"),
        ("Notification", "Notification"),
        ("PreCompact", "PreCompress"),
        ("SubagentStart", "SubagentStart"),
        ("SubagentStop", "SubagentStop"),
    ],
)
def test_event_has_our_name(theirs: str, ours: str) -> None:
    found = claude(one(theirs))
    assert list(found.settings["hooks"]) == [ours]
    assert Settings.from_mapping(found.settings).warnings == ()


def test_matcher_of_several_sources_becomes_a_group_for_each() -> None:
    found = claude(one("SessionStart", "startup|compact|boot"))
    groups = found.settings["hooks"]["SessionStart"]
    assert [group["matcher"] for group in groups] == ["startup", "compress"]
    assert found.notes == ("SessionStart: matcher 'boot' never matches here",)


def test_matcher_of_several_types_of_agents_becomes_a_group_for_each() -> None:
    found = claude(one("SubagentStart", "Explore | code-reviewer"))
    groups = found.settings["hooks"]["SubagentStart"]
    assert [group["matcher"] for group in groups] == ["Explore", "code-reviewer"]
    assert found.notes == ()


def test_matcher_of_an_event_without_one_is_dropped() -> None:
    found = claude(one("Stop", "whatever"))
    assert found.settings["hooks"]["AfterAgent"] == [
        {"hooks": [{"type": "command", "command": "check", "dialect": "claude"}]}
    ]


@pytest.mark.parametrize(
    ("hooks", "note"),
    [
        (one("PermissionRequest"), "PermissionRequest: Hookline has no such event"),
        (
            one("SubagentStop", "^rev.*"),
            (
                "SubagentStop: matcher '^rev.*' is a regular expression, compared "
                "exactly here: the hook runs for every name instead"
            ),
        ),
        (one("PreToolUse", type="prompt"), "hooks of type 'prompt'"),
        (one("PreToolUse", once=True), "'once' of 'check'"),
        (one("PreToolUse", shell="powershell"), "the shell 'powershell'"),
        (one("PreToolUse", "mcp__x__.*"), "tool names of your own host"),
        (one("Notification", "idle_prompt"), "'idle_prompt' never matches"),
        ({"PreToolUse": [{"matcher": "Bash"}]}, "a group without a list of hooks"),
        ({"PreToolUse": {"matcher": "Bash"}}, "expected a list of groups"),
        ({"PreToolUse": [{"hooks": ["x"]}]}, "hooks of type None"),
    ],
)
def test_what_cannot_be_converted_is_noted(hooks: dict[str, Any], note: str) -> None:
    assert any(note in found for found in claude(hooks).notes)


def test_disabled_hooks_stay_disabled() -> None:
    assert claude({}, disableAllHooks=True).settings["enableHooks"] is False


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=8),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ["hooks", "PreToolUse", "Stop", "BeforeTool", "matcher", "type"]
                ),
                inner,
                max_size=3,
            )
        ),
        max_leaves=12,
    ),
    st.sampled_from(MigrationSource),
)
@settings(max_examples=150)
def test_any_settings_are_turned_into_readable_ones(
    value: Any, source: MigrationSource
) -> None:
    found = migrate(source, {"hooks": value})
    Settings.from_mapping(found.settings)


GEMINI_GROUP = {
    "matcher": "write_file|replace",
    "sequential": True,
    "hooks": [{"name": "n", "type": "command", "command": "c", "timeout": 5000}],
}


@pytest.mark.parametrize("source", [MigrationSource.GEMINI, MigrationSource.LLXPRT])
def test_hooks_of_the_same_protocol_stay_as_they_are(source: MigrationSource) -> None:
    found = migrate(source, {"hooks": {"BeforeTool": [GEMINI_GROUP]}})
    assert found.settings == {
        "enableHooks": True,
        "hooks": {"BeforeTool": [GEMINI_GROUP]},
    }
    assert found.notes == ()


@pytest.mark.parametrize(
    "theirs",
    [
        {"hooksConfig": {"enabled": False, "disabled": ["n"]}},
        {"hooks": {"enabled": False, "disabled": ["n"], "notifications": True}},
        {"tools": {"enableHooks": False}, "hooksConfig": {"disabled": ["n"]}},
    ],
)
def test_options_are_found_where_each_version_keeps_them(
    theirs: dict[str, Any],
) -> None:
    found = migrate(MigrationSource.GEMINI, theirs)
    assert found.settings["enableHooks"] is False
    assert found.settings["hooksConfig"] == {"disabled": ["n"]}
    assert found.notes == ()


def test_unsupported_keys_of_the_same_protocol_are_noted() -> None:
    hooks = {
        "Surprise": [],
        "BeforeTool": [
            {"hooks": [{"type": "runtime", "x": 1}], "y": 1},
            {"hooks": [{"type": "command", "command": "c", "source": "s"}]},
            "text",
        ],
    }
    notes = migrate(MigrationSource.GEMINI, {"hooks": hooks}).notes
    assert len(notes) == 5
