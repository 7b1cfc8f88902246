"""A project with hooks in its ``.hookline``, and a person who may trust it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hookline import Config, HookSystem, ProcessedHookResult
from hookline.cli.main import main

DENY = "echo 'the guard says no' >&2; exit 2"
GUARD = {"type": "command", "name": "guard", "command": "bash .hookline/hooks/guard.sh"}


class Project:
    """Files, settings, trust and events of one project."""

    def __init__(self, folder: Path, state: Path) -> None:
        self.folder = folder
        self.state = state
        self.folder.mkdir()

    def write(self, name: str, text: str, mode: int = 0o644) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)
        return path

    def settings(
        self, *hooks: dict[str, Any], event: str = "BeforeTool", **more: Any
    ) -> Path:
        content = {"hooks": {event: [{"hooks": list(hooks)}]}, **more}
        return self.write(".hookline/settings.json", json.dumps(content))

    def guarded(self, **more: Any) -> None:
        """A guard that blocks every tool, in a script."""
        self.write(".hookline/hooks/guard.sh", DENY)
        self.settings({**GUARD, **more})

    def trust(self, *options: str) -> int:
        return main(["trust", str(self.folder), *(options or ("--yes",))])

    async def fire(self, tool: str = "write_file") -> ProcessedHookResult:
        """What a new session makes of a tool call."""
        async with self.system() as hooks:
            return await hooks.event_handler.fire_before_tool_event(tool, {"a": 1})

    def system(self) -> HookSystem:
        return HookSystem(Config.load(self.folder))

    def record_files(self) -> list[Path]:
        return sorted((self.state / "hookline" / "trust").glob("*.json"))
