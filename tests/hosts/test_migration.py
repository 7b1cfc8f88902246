"""Hazards of ``migrate``: any settings, odd conditions, secrets in http headers.

What it makes of files is in ``tests/pins/hosts/migrate.json``, whole projects are in
``migrated_projects.json``.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hookline import Config, HookSystem
from tests.support.agent_files import AgentFiles
from tests.support.web import WebServer, reply

SOURCES = ["claude", "gemini", "llxprt"]
KEYS = ["hooks", "PreToolUse", "Stop", "BeforeTool", "matcher", "type", "if"]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(KEYS), inner, max_size=3)
    ),
    max_leaves=12,
)
ODD_TEXTS = st.text(alphabet="aB(*/\\\"'{},:|)[]!~ \n\u00e9", max_size=12)


def migrate(files: AgentFiles, source: str, theirs: Any) -> str:
    """Migrate settings; what ``check`` finds in the result."""
    files.write(f".{source}/settings.json", json.dumps(theirs))
    ended = files.run("migrate", "--from", source, "--force")
    assert ended.returncode == 0, ended.stderr
    return files.run("check").stdout


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=VALUES, source=st.sampled_from(SOURCES))
def test_any_settings_are_turned_into_readable_ones(
    files: AgentFiles, value: Any, source: str
) -> None:
    assert ": error: " not in migrate(files, source, {"hooks": value})


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=ODD_TEXTS, tool=st.sampled_from(["Bash", "Write", "WebFetch", "Task"]))
def test_any_condition_is_turned_into_a_readable_one(
    files: AgentFiles, text: str, tool: str
) -> None:
    hook = {"type": "command", "command": "true", "if": f"{tool}({text})"}
    theirs = {"hooks": {"PreToolUse": [{"hooks": [hook]}]}}
    assert ": error: " not in migrate(files, "claude", theirs)


async def test_http_guard_is_asked_with_its_header(
    files: AgentFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {**files.env, "GUARD_TOKEN": "t-1"}.items():
        monkeypatch.setenv(name, value)
    denied = {"permissionDecision": "deny", "permissionDecisionReason": "by policy"}
    specific = {"hookEventName": "PreToolUse", **denied}
    call = {"tool_name": "run_shell_command", "tool_input": {"command": "ls"}}
    with WebServer(reply({"hookSpecificOutput": specific})) as server:
        asked = {
            "type": "http",
            "url": server.url,
            "headers": {"Authorization": "Bearer $GUARD_TOKEN"},
            "allowedEnvVars": ["GUARD_TOKEN"],
            "timeout": 20,
        }
        group = {"matcher": "Bash", "hooks": [asked]}
        migrate(files, "claude", {"hooks": {"PreToolUse": [group]}})
        assert files.run("trust", "--yes").returncode == 0
        async with HookSystem(Config.load(files.project)) as system:
            result = await system.event_handler.fire("BeforeTool", call)
    assert result.reason == "by policy"
    (request,) = server.exchanges
    assert request.headers["authorization"] == "Bearer t-1"
    assert request.event["tool_name"] == "Bash"
