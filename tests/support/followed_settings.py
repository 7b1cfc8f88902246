"""A settings file that changes, and a hook system that follows it."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

from hookline import Config, HookSystem, ProcessedHookResult, Settings


class FollowedSettings:
    """Settings in a file, and the system that reloads them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "hooks.json"
        self.system: HookSystem

    def write(
        self, *hooks: dict[str, Any], group: dict[str, Any] | None = None, **more: Any
    ) -> None:
        """Let these be the hooks before every tool, in one ``group``."""
        groups = [{"hooks": list(hooks), **(group or {})}]
        self.put(json.dumps({"hooks": {"BeforeTool": groups}, **more}))

    def put(self, text: str) -> None:
        """Replace the file as programs do that take care."""
        new = self.folder / f"new-{threading.get_ident()}"
        new.write_text(text)
        new.replace(self.file)

    def start(self) -> HookSystem:
        """A system that looks for changes at every event."""
        config = Config("s", self.folder, Settings.from_file(self.file))
        self.system = HookSystem(config, reload=True)
        return self.system

    async def fire(self, tool: str = "x") -> ProcessedHookResult:
        return await self.system.event_handler.fire_before_tool_event(tool, {})

    async def reason(self, tool: str = "x") -> str | None:
        return (await self.fire(tool)).reason
