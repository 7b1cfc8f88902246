"""Cedar hooks in a directory, and what they say about tool calls."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hookline import Config, HookSystem, ProcessedHookResult, Settings
from hookline.protocol.results import FailureCause, HookExecutionResult

PERMIT = "permit(principal, action, resource);"


class PolicyBench:
    """A folder with policies, and one hook that asks them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def hook(self, text: str, name: str = "tools.cedar", **more: Any) -> dict[str, Any]:
        """Write policies and return the hook that asks them."""
        self.write(name, text)
        return {"type": "cedar", "name": "policy", "policies": name, **more}

    def system(
        self, *hooks: dict[str, Any], event: str = "BeforeTool", **group: Any
    ) -> HookSystem:
        chosen = {"hooks": {event: [{"hooks": list(hooks), **group}]}}
        return HookSystem(Config("s-1", self.folder, Settings.from_mapping(chosen)))

    async def ask(
        self, hook: dict[str, Any], tool: Any = "write_file", **tool_input: Any
    ) -> ProcessedHookResult:
        """What one hook makes of a tool call."""
        async with self.system(hook) as hooks:
            return await hooks.event_handler.fire_before_tool_event(tool, tool_input)

    async def allows(self, text: str, tool: Any = "write_file", **given: Any) -> bool:
        """Whether policies let a tool call through, and without a failure."""
        result = await self.ask(self.hook(text), tool, **given)
        assert result.aggregated.success == (not result.aggregated.errors)
        assert the_hook(result).cause is None, the_hook(result).error
        return not result.blocked


def the_hook(result: ProcessedHookResult) -> HookExecutionResult:
    """The result of the only hook."""
    [found] = result.aggregated.hook_results
    return found


def failure(result: ProcessedHookResult) -> tuple[FailureCause | None, str]:
    """Why the only hook failed."""
    found = the_hook(result)
    return found.cause, found.error or ""


def entity(uid: str, *parents: str, **attributes: Any) -> dict[str, Any]:
    """One entity: ``Agent::reviewer``."""
    return {
        "uid": _uid(uid),
        "attrs": attributes,
        "parents": [_uid(parent) for parent in parents],
    }


def entities(*found: dict[str, Any]) -> str:
    return json.dumps(found)


def _uid(text: str) -> dict[str, str]:
    kind, _, name = text.partition("::")
    return {"type": kind, "id": name}
