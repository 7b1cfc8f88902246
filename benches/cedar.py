"""Cedar hooks: the whole fire against a bare call of the engine on the whole event."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import cedarpy

from hookline import Config, HookSystem, Settings
from hookline.trust.pins import YOUNG_NS

from .floor import Floors
from .measure import Bar, Figure, Timed, compare, timed, timed_plain

GROUP = "cedar"
POLICIES = """
permit(principal, action == Action::"write_file", resource);
@id("no-env") @reason("keep secrets out of .env files")
forbid(principal, action, resource) when { context.tool_input.path like "*.env" };
"""
SMALL = {"path": "src/main.py", "content": "x = 1\n"}
LARGE = {"path": "src/main.py", "content": "x" * 1_000_000}
FLOOR = "is_authorized with parsed policies"


async def figures(_: Floors, folder: Path, rounds: int) -> list[Figure]:
    """All figures of this group."""
    (folder / "tools.cedar").write_text(POLICIES)
    await asyncio.sleep(YOUNG_NS / 1e9 + 0.1)  # younger files are parsed each time
    hook = {"type": "cedar", "policies": "tools.cedar"}
    chosen = Settings.from_mapping({"hooks": {"BeforeTool": [{"hooks": [hook]}]}})
    async with HookSystem(Config("bench", folder, chosen)) as hooks:
        fire = hooks.event_handler.fire_before_tool_event
        few = max(9, rounds // 10)
        small = timed(lambda: fire("write_file", SMALL), 20)
        large = timed(lambda: fire("write_file", LARGE), 2)
        name = "cedar hook beside 1 MB"
        bare = _bare(SMALL, 20), _bare(LARGE, 2)
        return [
            await compare(GROUP, "cedar hook", small, bare[0], FLOOR, rounds, Bar(2)),
            await compare(GROUP, name, large, bare[1], FLOOR, few, Bar(1.3)),
        ]


def _bare(tool_input: dict[str, Any], repeat: int) -> Timed:
    event = {
        "session_id": "bench",
        "cwd": "/project",
        "hook_event_name": "BeforeTool",
        "timestamp": "2026-01-01T00:00:00.000Z",
        "transcript_path": "",
        "tool_name": "write_file",
        "tool_input": tool_input,
    }
    policies = cedarpy.PolicySet.from_str(POLICIES)
    entities = cedarpy.Entities.from_json_str("[]")
    request = {
        "principal": {"type": "Agent", "id": "default"},
        "action": {"type": "Action", "id": "write_file"},
        "resource": {"type": "Project", "id": "project"},
        "context": json.dumps(event),
    }
    ask = cedarpy.is_authorized
    return timed_plain(lambda: ask(request, policies, entities), repeat)
