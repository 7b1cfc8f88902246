"""Fire events at scripts or settings through the real pipeline, in a given folder."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from hookline.config import Config
from hookline.events import HookEventName
from hookline.results import ProcessedHookResult, make_empty_success_result
from hookline.settings.load import Settings
from hookline.system import HookSystem

EventInput = Mapping[str, Any]


def script_settings(
    scripts: Iterable[Path],
    *,
    env: Mapping[str, str] | None = None,
    sequential: bool = False,
    hook_type: str = "command",
    timeout_ms: float = 60_000,
) -> Settings:
    """Settings with these scripts on every event."""
    hooks = [
        {
            "type": hook_type,
            "command": command_of(script),
            "name": script.stem,
            "env": dict(env or {}),
            "timeout": timeout_ms,
        }
        for script in scripts
    ]
    group = {"sequential": sequential, "hooks": hooks}
    return Settings.from_mapping({"hooks": {str(e): [group] for e in HookEventName}})


def command_of(script: Path) -> str:
    """How a script is started: Python by our own interpreter, others by themselves."""
    quoted = shlex.quote(str(script))
    if script.suffix == ".py":
        return f'"$HOOKLINE_PYTHON" {quoted}'
    return quoted if os.access(script, os.X_OK) else f"bash {quoted}"


def event_input(
    event: HookEventName | str,
    *,
    tool: str | None = None,
    fields: EventInput | None = None,
    **named: Any,
) -> dict[str, Any]:
    """The fields of an event, with what it cannot do without filled in."""
    given = {key: value for key, value in named.items() if value is not None}
    if tool is not None:
        given["tool_name"] = tool
    given |= fields or {}
    for key, value in _NEEDED[HookEventName.of(event)].items():
        given.setdefault(key, value)
    return given


_RESPONSE = {"llmContent": "", "returnDisplay": ""}
_REQUEST: dict[str, Any] = {"model": "test", "messages": []}
_NEEDED: dict[HookEventName, dict[str, Any]] = {
    HookEventName.BeforeTool: {"tool_name": "tool", "tool_input": {}},
    HookEventName.AfterTool: {
        "tool_name": "tool",
        "tool_input": {},
        "tool_response": _RESPONSE,
    },
    HookEventName.BeforeAgent: {"prompt": ""},
    HookEventName.AfterAgent: {
        "prompt": "",
        "prompt_response": "",
        "stop_hook_active": False,
    },
    HookEventName.BeforeModel: {"llm_request": _REQUEST},
    HookEventName.AfterModel: {
        "llm_request": _REQUEST,
        "llm_response": {"text": "", "candidates": []},
    },
    HookEventName.BeforeToolSelection: {"llm_request": _REQUEST},
    HookEventName.SessionStart: {"source": "startup"},
    HookEventName.SessionEnd: {"reason": "exit"},
    HookEventName.Notification: {"message": ""},
    HookEventName.PreCompress: {"trigger": "auto"},
}


class Firing:
    """A hook system in a folder, for the time of a ``with`` block."""

    def __init__(
        self, settings: Settings, cwd: Path, session_id: str | None = None
    ) -> None:
        config = Config(session_id or "hooktest", cwd, settings)
        self._system: HookSystem | None = config.get_hook_system()

    async def fire(
        self, event: HookEventName | str, fields: EventInput
    ) -> ProcessedHookResult:
        """Fire one event."""
        if self._system is None:
            return ProcessedHookResult(aggregated=make_empty_success_result())
        return await self._system.event_handler.fire(event, fields)

    async def __aenter__(self) -> Firing:
        if self._system is not None:
            await self._system.initialize()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._system is not None:
            await self._system.dispose()
