"""What hosts sent, and the bridge's answers to it with rules as hooks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hookline.hosts.bridge import Bridge, Reply
from hookline.hosts.host import Host, HostEvent

_CAPTURES = Path(__file__).parent / "captures"
_VARIABLES = (
    *("CLAUDE_PROJECT_DIR", "CURSOR_PROJECT_DIR", "FACTORY_PROJECT_DIR"),
    *("GEMINI_PROJECT_DIR", "QWEN_PROJECT_DIR", "COPILOT_PROJECT_DIR"),
)
BLOCK = {"decision": "deny", "reason": "no <b>"}
ASK = {"decision": "ask", "reason": "sure?"}
STOP = {"continue": False, "stopReason": "enough"}
CONTEXT = {"hookSpecificOutput": {"additionalContext": "see <b>"}}
MESSAGE = {"systemMessage": "a note"}
WITHHOLD = {"reason": "secret", "hookSpecificOutput": {"withholdResult": True}}
CLEAR = {"hookSpecificOutput": {"clearContext": True}}
ALL = {**BLOCK, **MESSAGE, **CONTEXT}


def captured(host: str, name: str) -> dict[str, Any]:
    """What a host wrote to a hook's standard input."""
    file = _CAPTURES / host / f"{name}.json"
    found: dict[str, Any] = json.loads(file.read_text())["stdin"]
    return found


def capture_names(host: str) -> list[str]:
    """The captures of a host."""
    return sorted(file.stem for file in (_CAPTURES / host).glob("*.json"))


def changing(**tool_input: Any) -> dict[str, Any]:
    """The output of a hook that changes fields of a tool's input."""
    return {"hookSpecificOutput": {"tool_input": tool_input}}


def read_event(host: Host, given: dict[str, Any]) -> HostEvent:
    """An event whose name is in what the host wrote."""
    return host.read(given, host.event_name(given, None))


def shown_to_hooks(host: Host, given: dict[str, Any]) -> dict[str, Any]:
    """What hooks see of an event that is fired once."""
    (found,) = read_event(host, given).inputs(host.name)
    return found


def line(**wire: Any) -> bytes:
    """An answer as the bridge writes it."""
    text = json.dumps(wire, separators=(",", ":"), ensure_ascii=False)
    return text.encode() + b"\n"


class Desk:
    """A user whose settings have one rule, and a bridge for each question."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.project = folder / "project"
        self.project.mkdir()
        self._settings = folder / "config" / "hookline" / "settings.json"
        self._settings.parent.mkdir(parents=True)
        patch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
        patch.setenv("XDG_STATE_HOME", str(folder / "state"))
        for name in (*_VARIABLES, "COPILOT_CLI", "CLAUDECODE"):
            patch.delenv(name, raising=False)
        patch.chdir(self.project)

    def rule(self, event: str, then: Any, when: str = "true", **config: Any) -> None:
        """Say what the hook of an event says."""
        hook = {"type": "rule", "name": "guard", "when": when, "then": then}
        self.hook(event, hook, **config)

    def command(self, event: str, command: str, **more: Any) -> None:
        """Have a command as the hook of an event."""
        self.hook(event, {"type": "command", "command": command, **more})

    def hook(self, event: str, *hooks: Any, **config: Any) -> None:
        """Write the user's settings."""
        found = {event: [{"hooks": list(hooks)}]}
        self.settings({"hooks": found, "hooksConfig": config})

    def settings(self, settings: Any) -> None:
        """Write any settings of the user."""
        self._settings.write_text(json.dumps(settings))

    async def ask(self, host: str, given: Any, event: str | None = None) -> Reply:
        """What the bridge answers a host."""
        stdin = given if isinstance(given, bytes) else json.dumps(given).encode()
        bridge = Bridge(one_shot=True)
        try:
            return await bridge.answer(host, event, stdin)
        finally:
            await bridge.close()

    async def check_loss(
        self, host: Host, given: dict[str, Any], then: Any, expected: str
    ) -> None:
        """What a hook says is lost with this message, or not lost if it is empty."""
        event = host.events[host.event_name(given, None)].value
        self.rule(event, then)
        reply = await self.ask(host.name, given)
        prefix = f"hookline: {host.title}: {event}: {expected}" if expected else ""
        assert reply.stderr.decode().startswith(prefix)
        assert bool(reply.stderr) == bool(expected)


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """A user with an empty project."""
    return Desk(tmp_path, monkeypatch)
