"""Hooks on standby against the same hooks cold: Python, Node and bash."""

from __future__ import annotations

import asyncio
import shutil
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from hookline import Config, HookSystem, Settings

from .floor import Floors
from .measure import Bar, Figure, Timed, compare
from .processes import SMALL

GROUP = "standby"
PYTHON = """
import json, sys
open("up", "a").write("x")
event = json.load(sys.stdin)
print(json.dumps({"decision": "allow", "systemMessage": event["tool_name"]}))
"""
NODE = """
require("fs").appendFileSync("up", "x");
let text = "";
process.stdin.on("data", piece => text += piece).on("end", () => {
  const event = JSON.parse(text);
  console.log(JSON.stringify({decision: "allow", systemMessage: event.tool_name}));
});
"""
BASH = """
printf x >> up
read -r event
echo '{"decision": "allow", "systemMessage": "write_file"}'
"""
SCRIPTS = {"Python": (sys.executable, PYTHON), "Node": ("node", NODE)}
SCRIPTS["bash"] = ("bash", BASH)
_REST_S = 0.02
"""From the note of the script to its first read."""


async def figures(_: Floors, folder: Path, rounds: int) -> list[Figure]:
    """All figures of this group; those without their program are left out."""
    few = max(9, rounds // 8)
    standby_figures = []
    for name, (program, text) in SCRIPTS.items():
        if shutil.which(program) is None:
            continue
        script = folder / f"hook-{name}"
        script.write_text(text)
        command = f"'{program}' '{script}'"
        async with (
            _fired(_made(folder / f"{name}-ahead"), command, 1) as ahead,
            _fired(_made(folder / f"{name}-cold"), command, 0) as cold,
        ):
            title = f"standby over cold, {name}"
            bar = Bar(3, "speedup") if name == "Python" else None
            standby_figures.append(
                await compare(GROUP, title, ahead, cold, "the same cold", few, bar)
            )
    return standby_figures


@asynccontextmanager
async def _fired(folder: Path, command: str, standby: int) -> AsyncIterator[Timed]:
    """One fire as something to time; a process is waiting before the clock starts."""
    hook = {"type": "command", "name": "h", "command": command, "standby": standby}
    settings = Settings.from_mapping({"hooks": {"BeforeTool": [{"hooks": [hook]}]}})
    fires = 0

    async def run() -> float:
        nonlocal fires
        # Another process writes this file.
        while standby and _started(folder) <= fires:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        await asyncio.sleep(_REST_S)
        started = time.perf_counter()
        result = await hooks.event_handler.fire_before_tool_event("write_file", SMALL)
        took = time.perf_counter() - started
        fires += 1
        (ran,) = result.aggregated.hook_results
        assert result.system_message == "write_file"
        assert ran.standby is (True if standby else None)
        return took

    async with HookSystem(Config("bench", folder, settings)) as hooks:
        yield run


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def _started(folder: Path) -> int:
    file = folder / "up"
    return len(file.read_bytes()) if file.exists() else 0
