"""Issue 12.17: hooks that fire hooks are stopped at ``maxDepth``, however they do."""

from __future__ import annotations

import asyncio
import json
import resource
import shlex
import sys
import time
from pathlib import Path

import pytest

from hookline.processes.process import run_process
from hookline.processes.spawn import ProcessSpec
from tests.support.workshop import Workshop

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="the depth is marked in a limit of Linux"
)

PATIENCE_S = 60.0
WAYS = {
    "as it is": "{fire}",
    "without the variable": "env -u HOOKLINE_DEPTH {fire}",
    "unset": "unset HOOKLINE_DEPTH; {fire}",
    "without any variable": "env -i {home} {fire}",
    "as the hook's own process": "exec env -i {home} {fire}",
    "from the start": "exec 2>&1; exec setsid env -i {home} {fire}",
    "zero": "HOOKLINE_DEPTH=0 {fire}",
    "negative": "HOOKLINE_DEPTH=-5 {fire}",
    "not a number": "HOOKLINE_DEPTH=x {fire}",
    "huge": "HOOKLINE_DEPTH=99999999999999999999 {fire}",
    "a session of its own": "setsid -w env -i {home} {fire}",
    "an orphan": "(setsid env -i {home} {fire} </dev/null &)",
    "a second orphan": "(setsid sh -c '(env -i {home} {fire} &)' &)",
    "soft limit": "ulimit -Sx 5; env -i {home} {fire}",
}


def recursion(folder: Path, way: str) -> dict[str, object]:
    """A hook that fires its own event, and gives up after some rounds."""
    command = [sys.executable, "-m", "hookline.cli.main", "fire", "BeforeTool"]
    command += ["--tool", "x", "--json", "--settings", "settings.json"]
    inner = way.format(fire=shlex.join(command), home=f"HOME={folder}")
    stop = "[ $(wc -l < runs) -gt 6 ] && exit 0"
    script = f"echo >> runs; {stop}; exec > answer.$(wc -l < runs); {inner}"
    return {"type": "command", "command": script, "name": "again"}


def answers(folder: Path) -> str:
    return "".join(path.read_text() for path in folder.glob("answer.*"))


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
async def test_a_hook_cannot_recurse_past_the_depth(
    workshop: Workshop, way: str
) -> None:
    hook = recursion(workshop.folder, way)
    settings = workshop.settings("BeforeTool", hook, config={"maxDepth": 2})
    (workshop.folder / "settings.json").write_text(json.dumps(settings))
    await workshop.fire_on(settings, "BeforeTool")
    deadline = time.monotonic() + PATIENCE_S
    while "maxDepth 2" not in answers(workshop.folder):
        assert time.monotonic() < deadline, answers(workshop.folder)
        await asyncio.sleep(0.01)
    runs = len((workshop.folder / "runs").read_text().splitlines())
    # What a hook starts before its limit is set is not counted, at most once per hook
    # (decision 0094): on a busy machine an orphan can be that quick.
    assert 2 <= runs <= 4


async def limit_of(folder: Path, depth: int) -> str:
    spec = ProcessSpec(
        argv=["/bin/sh", "-c", "read -r _; grep 'file locks' /proc/self/limits"],
        cwd=str(folder),
        env={},
        stdin=b"go\n",
        timeout_s=PATIENCE_S,
        max_output_bytes=1000,
        depth=depth,
    )
    return (await run_process(spec)).stdout.decode()


async def test_only_hooks_are_marked_and_the_host_keeps_its_limit(
    tmp_path: Path,
) -> None:
    before = resource.getrlimit(10)
    assert "unlimited" in await limit_of(tmp_path, 0)
    mark = int.from_bytes(b"HOOKLINE")
    assert str(mark - 3) in await limit_of(tmp_path, 3)
    assert resource.getrlimit(10) == before
