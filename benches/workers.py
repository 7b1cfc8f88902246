"""A Python hook kept warm: against a bare line of JSON, and against itself cold."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .floor import Floors
from .measure import Bar, Figure, Timed, compare, timed_plain
from .processes import SMALL, fired

GROUP = "workers"
HOOK = """
from hookline.script import block, run
def no_env_files(event):
    if event["tool_input"].get("path", "").endswith(".env"):
        return block("keep secrets out of .env files")
run(no_env_files)
"""
ECHO = """
import json, sys
for line in sys.stdin.buffer:
    sys.stdout.buffer.write(json.dumps(json.loads(line)).encode() + b"\\n")
    sys.stdout.buffer.flush()
"""


async def figures(_: Floors, folder: Path, rounds: int) -> list[Figure]:
    """All figures of this group."""
    (folder / "hook.py").write_text(HOOK)
    command = f"{shlex.quote(sys.executable)} hook.py"
    line = "a line of JSON to Python and back"
    async with fired(folder, command, 1, SMALL, kind="worker") as warm:
        with _echo() as bare:
            bar = Bar(150, "us")
            many = 4 * rounds
            whole = await compare(GROUP, "warm hook", warm, bare, line, many, bar)
    async with (
        fired(folder, command, 1, SMALL, kind="worker", repeat=20) as warm,
        fired(folder, command, 1, SMALL) as cold,
    ):
        few = max(9, rounds // 10)
        faster = Bar(100, "speedup")
        name = "warm hook over cold one"
        against = await compare(GROUP, name, warm, cold, "the same cold", few, faster)
    return [whole, against]


@contextmanager
def _echo() -> Iterator[Timed]:
    frame = {"id": 1, "input": {"tool_name": "write_file", "tool_input": SMALL}}
    line = json.dumps(frame).encode() + b"\n"
    with subprocess.Popen(
        [sys.executable, "-c", ECHO],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
    ) as process:
        stdin, stdout = process.stdin, process.stdout
        assert stdin
        assert stdout

        def ask() -> None:
            stdin.write(line)
            stdout.readline()

        yield timed_plain(ask)
        stdin.close()
