"""What a coding agent waits for at each event: ``hookline bridge``, helper running.

The floor is the least that any hook in Python costs, an interpreter that does nothing.
The clock starts before the client's process and stops after it. Bytecode is compiled
beforehand, as an installer does.
"""

from __future__ import annotations

import compileall
import json
import os
import shlex
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import hookline

from .floor import Floors
from .measure import Bar, Figure, Timed, compare, timed_plain
from .workers import HOOK

GROUP = "bridge"
PROGRAM = Path(sysconfig.get_path("scripts")) / "hookline"
FUNCTIONS = "def guard(event):\n    return {'decision': 'block', 'reason': 'no'}\n"
MAX_ONE, MAX_TEN = 1.6, 2.0
EVENT = {
    "session_id": "bench",
    "transcript_path": "",
    "hook_event_name": "PreToolUse",
    "tool_name": "Write",
    "tool_input": {"file_path": ".env", "content": "print()"},
}


async def figures(_: Floors, folder: Path, rounds: int) -> list[Figure]:
    """All figures of this group."""
    compileall.compile_dir(Path(hookline.__file__).parent, quiet=1)
    few = max(15, rounds // 4)
    worker = {"type": "worker", "command": f"{shlex.quote(sys.executable)} hook.py"}
    python = {"type": "python", "function": "guards:guard"}
    cases: list[tuple[str, list[dict[str, Any]], Bar | None]] = [
        ("bridge, no hook", [], None),
        ("bridge, warm worker", [worker], Bar(MAX_ONE)),
        ("bridge, ten workers", [worker] * 10, Bar(MAX_TEN)),
        ("bridge, ten functions", [python] * 10, Bar(MAX_TEN)),
    ]
    bare = timed_plain(_bare)
    found = []
    for number, (name, hooks, bar) in enumerate(cases):
        with _desk(folder / f"bridge{number}", hooks) as ask:
            floor = "python -c pass"
            found.append(await compare(GROUP, name, ask, bare, floor, few, bar))
    return found


def _bare() -> None:
    subprocess.run([sys.executable, "-c", "pass"], input=b"", check=True)


@contextmanager
def _desk(folder: Path, hooks: list[dict[str, Any]]) -> Iterator[Timed]:
    """A user with these hooks, and with a helper that has answered before."""
    config, runtime = folder / "config" / "hookline", folder / "run"
    project = folder / "project"
    config.mkdir(parents=True)
    project.mkdir()
    runtime.mkdir(mode=0o700)
    (project / "hook.py").write_text(HOOK)
    (folder / "guards.py").write_text(FUNCTIONS)
    named = [{**hook, "name": f"hook {number}"} for number, hook in enumerate(hooks)]
    settings = {"hooks": {"BeforeTool": [{"hooks": named}]}} if named else {}
    (config / "settings.json").write_text(json.dumps(settings))
    env = {
        **os.environ,
        "PYTHONPATH": str(folder),
        "XDG_CONFIG_HOME": str(folder / "config"),
        "XDG_RUNTIME_DIR": str(runtime),
        "XDG_STATE_HOME": str(folder / "state"),
    }
    event = json.dumps({**EVENT, "cwd": str(project)}).encode()

    def run(*words: str) -> bytes:
        argv = [str(PROGRAM), "bridge", *words]
        return subprocess.run(
            argv, env=env, cwd=project, input=event, capture_output=True, check=True
        ).stdout

    run("claude")
    while b"is running" not in run("--status"):
        pass
    # A figure of hooks that do not run would be a good one.
    assert (b'"deny"' in run("claude")) is bool(hooks)
    try:
        yield timed_plain(lambda: run("claude"))
    finally:
        run("--stop")
