"""Settings of other agents converted into ours, and what cannot be converted."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hookline import Settings
from hookline.hosts.converter import Migrated, joined
from hookline.hosts.migration import MigrationSource, migrate
from hookline.protocol.dialects import CLAUDE_ONLY_FAILURE, CLAUDE_ONLY_SUCCESS


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
    "matcher",
    [
        "Bash",
        "Edit|Write",
        "mcp__.*",
        "Notebook(Edit|Read)",
        "^(?<tool>Bash)$",
        "*",
        "",
    ],
)
def test_matcher_is_copied(matcher: str) -> None:
    """The engine holds it against the names that the hook is shown.

    protocol.md#dialects
    """
    (group,) = claude(one("PreToolUse", matcher)).settings["hooks"]["BeforeTool"]
    assert group["matcher"] == matcher


def test_seconds_become_milliseconds_and_hooks_keep_their_dialect() -> None:
    found = claude(one("PreToolUse", "Bash", timeout=2.5))
    assert found.settings == {
        "enableHooks": True,
        "hooks": {
            "BeforeTool": [
                {
                    "matcher": "Bash",
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


def test_matcher_of_an_event_without_one_is_dropped() -> None:
    found = claude(one("Stop", "whatever"))
    assert found.settings["hooks"]["AfterAgent"] == [
        {"hooks": [{"type": "command", "command": "check", "dialect": "claude"}]}
    ]


def test_notification_types_sources_and_agents_keep_their_matchers() -> None:
    """Issue 15.6: SessionStart compact, idle_prompt, types of subagents."""
    for event, matcher in (
        ("SessionStart", "startup|compact"),
        ("Notification", "idle_prompt"),
        ("SubagentStop", "^rev.*"),
    ):
        found = claude(one(event, matcher))
        (groups,) = found.settings["hooks"].values()
        assert groups[0]["matcher"] == matcher
        assert found.notes == ()


def test_hooks_after_a_tool_are_told_apart_by_its_error() -> None:
    """Issue 15.6, decision 0125: both are AfterTool here."""
    hooks = {**one("PostToolUse", "Write"), **one("PostToolUseFailure", "Bash")}
    first, second = claude(hooks).settings["hooks"]["AfterTool"]
    assert (first["matcher"], second["matcher"]) == ("Write", "Bash")
    assert first["hooks"][0]["if"] == CLAUDE_ONLY_SUCCESS
    assert second["hooks"][0]["if"] == CLAUDE_ONLY_FAILURE


def test_async_hooks_stay_async() -> None:
    hook = {"type": "command", "command": "c", "async": True}
    found = claude({"PreToolUse": [{"hooks": [hook]}]})
    assert found.settings["hooks"]["BeforeTool"][0]["hooks"][0]["async"] is True


def test_http_hooks_are_converted_with_their_variables() -> None:
    """Issue 15.6; both spellings of a variable there, one here."""
    hook = {
        "type": "http",
        "url": "http://127.0.0.1:9/x",
        "headers": {"Authorization": "Bearer $TOKEN", "X-A": "${A}-${B}"},
        "allowedEnvVars": ["TOKEN", "A", "UNUSED"],
        "timeout": 3,
    }
    found = claude({"PreToolUse": [{"hooks": [hook]}]})
    assert found.settings["hooks"]["BeforeTool"][0]["hooks"] == [
        {
            "type": "http",
            "url": "http://127.0.0.1:9/x",
            "headers": {"Authorization": "Bearer ${TOKEN}", "X-A": "${A}-"},
            "allowedEnv": ["TOKEN", "A"],
            "dialect": "claude",
            "timeout": 3000,
        }
    ]
    (note,) = found.notes
    assert "B is not in allowedEnvVars" in note


def test_arguments_become_words_in_which_nothing_is_expanded() -> None:
    args = ["$HOME;ls", "${CLAUDE_PROJECT_DIR}/a b.py", ""]
    found = claude(one("PreToolUse", command="node", args=args))
    command = found.settings["hooks"]["BeforeTool"][0]["hooks"][0]["command"]
    assert command == """node '$HOME;ls' "${CLAUDE_PROJECT_DIR}"'/a b.py' ''"""
    assert found.notes == ()


def test_hooks_of_a_plugin_get_its_variables() -> None:
    """Issue 15.6: CLAUDE_PLUGIN_ROOT in ``env`` of every hook, also for its scripts."""
    hooks = {
        "PreToolUse": [
            *one("PreToolUse", command="${CLAUDE_PLUGIN_ROOT}/x")["PreToolUse"]
        ]
    }
    env = {"CLAUDE_PLUGIN_ROOT": "/my plugins/p"}
    found = migrate(MigrationSource.CLAUDE, {"hooks": hooks}, env)
    (hook,) = found.settings["hooks"]["BeforeTool"][0]["hooks"]
    assert hook["env"] == env
    assert hook["command"] == '"${CLAUDE_PLUGIN_ROOT}"/x'
    assert found.notes == ()


def test_hooks_of_hookline_itself_are_left_out() -> None:
    for command in ("hookline bridge claude", "'/my bin/hookline' bridge claude"):
        found = claude(one("PreToolUse", command=command))
        assert found.hook_count == 0
        assert "is Hookline itself" in found.notes[0]


@pytest.mark.parametrize(
    ("hooks", "note"),
    [
        (one("PermissionRequest"), "PermissionRequest: Hookline has no such event"),
        (
            one("PreToolUse", type="prompt"),
            "hooks of type 'prompt' are not supported: only Claude Code can run them",
        ),
        (one("PreToolUse", type="agent"), "hooks of type 'agent'"),
        (one("PreToolUse", asyncRewake=True), "'asyncRewake' of 'check'"),
        (one("PreToolUse", timeout="5"), "a timeout that is no number: '5'"),
        (one("PreToolUse", command="x ${user_config.key}"), "${user_config.key} is an"),
        (one("PreToolUse", surprise=1), "'surprise' of 'check' is not supported"),
        (one("PreToolUse", command="$CLAUDE_PLUGIN_ROOT/x"), "on the plugin's folder"),
        (one("PreToolUse", command="x ${CLAUDE_ENV_FILE}"), "CLAUDE_ENV_FILE is not"),
        (one("PreToolUse", "*Bash*"), "'*Bash*' matches nothing, as it does there"),
        (one("PreToolUse", env={"A": "b"}), "'env' of 'check' is not supported"),
        (one("Stop", **{"if": "Bash(ls)"}), "never runs a hook with 'if' on this"),
        (one("PreToolUse", **{"if": "git *"}), "is no permission rule"),
        (one("PreToolUse", "Edit", **{"if": "Bash(ls)"}), "no tool that its matcher"),
        (one("PreToolUse", **{"if": "Grep(x:y)"}), "for every call of Grep"),
        ({"PreToolUse": [{"if": "Bash(ls)", "hooks": []}]}, "ignores it too"),
        ({"PreToolUse": [{"matcher": "Bash", "command": "a"}, {"command": "b"}]},
         "a group without a list of hooks: {'command': 'b'}"),
        ({"PreToolUse": {"matcher": "Bash"}}, "expected a list of groups"),
        ({"PreToolUse": [{"hooks": ["x"]}]}, "hooks of type None"),
        ({"PreToolUse": [{"matcher": 5, "hooks": []}]}, "a matcher that is no text"),
    ],
)  # fmt: skip
def test_what_cannot_be_converted_is_noted(hooks: dict[str, Any], note: str) -> None:
    assert any(note in found for found in claude(hooks).notes)


def test_what_needs_no_attention_is_not_noted() -> None:
    hooks = one("PreToolUse", once=True, statusMessage="Checking", shell="bash")
    assert claude(hooks).notes == ()


def test_other_settings_that_matter_are_noted() -> None:
    """Issue 15.6: ``env`` and ``permissions`` are reported, values are not shown."""
    found = claude(
        {},
        env={"TOKEN": "s3cret"},
        permissions={"allow": ["Bash(ls)"], "deny": ["Read(.env)"], "defaultMode": "x"},
        enabledPlugins={"guard@acme": True},
        model="m",
    )
    env, permissions, plugins = found.notes
    assert "TOKEN" in env
    assert "s3cret" not in env
    assert "2 rules" in permissions
    assert "guard@acme" in plugins


def test_mcp_matchers_are_carried_over_and_said_so() -> None:
    found = claude(one("PreToolUse", "mcp__github__.*"))
    assert found.notes == ()
    assert "'mcp__github__.*' names MCP tools" in found.remarks[0]


def test_several_files_become_one() -> None:
    parts = [claude(one("Stop")), claude(one("Stop"), disableAllHooks=True)]
    found = joined(parts)
    assert found.hook_count == 2
    assert found.settings["enableHooks"] is False
    off = {"hooksConfig": {"disabled": ["n"]}}
    gemini = joined([migrate(MigrationSource.GEMINI, off)] * 2)
    assert gemini.settings["hooksConfig"] == {"disabled": ["n"]}


def test_disabled_hooks_stay_disabled() -> None:
    found = claude({}, disableAllHooks=True)
    assert found.settings["enableHooks"] is False
    assert "turned off there" in found.remarks[0]


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=8),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "hooks",
                        "PreToolUse",
                        "Stop",
                        "BeforeTool",
                        "matcher",
                        "type",
                        "if",
                    ]
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
    """But for the dialect: a deny after a tool withholds there.

    protocol.md#dialects
    """
    found = migrate(source, {"hooks": {"BeforeTool": [GEMINI_GROUP]}})
    (group,) = found.settings["hooks"]["BeforeTool"]
    hook = {**GEMINI_GROUP["hooks"][0], "dialect": source.value}  # type: ignore[index]
    assert group == {**GEMINI_GROUP, "hooks": [hook]}
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
