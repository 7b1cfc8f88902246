"""A stop that Claude Code does not obey after a failed tool (issue 15.2)."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from hookline.hosts.bridge import Bridge

FAILED = {"tool_name": "Bash", "tool_input": {"command": "cat key"}, "error": "sk-1"}
WITHHELD = {"decision": "deny", "hookSpecificOutput": {"withholdResult": True}}
STOPPED = {"continue": False, "stopReason": "enough"}


@pytest.fixture
async def bridge() -> AsyncIterator[Bridge]:
    bridge = Bridge(one_shot=True)
    yield bridge
    await bridge.close()


async def ask(bridge: Bridge, folder: Path, name: str, **fields: Any) -> Any:
    given = {"session_id": "s", "cwd": str(folder), "hook_event_name": name, **fields}
    reply = await bridge.answer("claude", None, json.dumps(given).encode())
    return json.loads(reply.stdout)


def write_rule(folder: Path, monkeypatch: pytest.MonkeyPatch, then: Any) -> None:
    config = folder.parent / f"{folder.name}-config"
    monkeypatch.setenv("XDG_CONFIG_HOME", str(config))
    monkeypatch.delenv("CLAUDE_PROJECT_DIR", raising=False)
    rule = {"type": "rule", "when": "true", "then": {"reason": "a key", **then}}
    (config / "hookline").mkdir(parents=True)
    settings = {"hooks": {"AfterTool": [{"hooks": [rule]}]}}
    (config / "hookline" / "settings.json").write_text(json.dumps(settings))


@pytest.mark.parametrize(
    ("then", "reason"),
    [
        pytest.param(WITHHELD, "a key", id="withheld"),
        pytest.param(STOPPED, "enough", id="stopped"),
    ],
)
async def test_run_ends_after_a_failed_tool_and_before_the_model_is_called(
    tmp_path: Path,
    bridge: Bridge,
    monkeypatch: pytest.MonkeyPatch,
    then: Any,
    reason: str,
) -> None:
    write_rule(tmp_path, monkeypatch, then)
    await ask(bridge, tmp_path, "PostToolUseFailure", **FAILED)
    other = await ask(bridge, tmp_path, "PostToolBatch", agent_id="a", tool_calls=[])
    assert other == {}
    ended = await ask(bridge, tmp_path, "PostToolBatch", tool_calls=[])
    assert ended == {"continue": False, "stopReason": reason}
    assert await ask(bridge, tmp_path, "PostToolBatch", tool_calls=[]) == {}
