"""A Python hook kept warm: against a bare line of JSON, and against itself cold."""

from __future__ import annotations

import asyncio
import json
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

from .floor import Floors
from .measure import Bar, Figure, Timed, compare, timed_plain
from .processes import SMALL, fired

GROUP = "workers"
CALLERS, EACH, POOL = 100, 5, 2
"""Callers at once, events of each, and workers."""
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


BARE = """
import os
while line := os.read(0, 65536):
    os.write(1, line)
"""


async def figures(_: Floors, folder: Path, rounds: int) -> list[Figure]:
    """All figures of this group."""
    (folder / "hook.py").write_text(HOOK)
    command = f"{shlex.quote(sys.executable)} hook.py"
    many = 4 * rounds
    async with fired(folder, command, 1, SMALL, kind="worker") as warm:
        with _echo(ECHO) as echo:
            what = "a line of JSON to Python and back"
            against_json = await compare(GROUP, "warm hook", warm, echo, what, many)
        with _echo(BARE) as echo:
            name, what = "warm hook over bare pipes", "a line to Python and back"
            bar = Bar(3.5)
            against_pipes = await compare(GROUP, name, warm, echo, what, many, bar)
    async with (
        fired(folder, command, 1, SMALL, kind="worker", repeat=20) as warm,
        fired(folder, command, 1, SMALL) as cold,
    ):
        few = max(9, rounds // 10)
        faster = Bar(100, "speedup")
        name = "warm hook over cold one"
        against = await compare(GROUP, name, warm, cold, "the same cold", few, faster)
    return [against_json, against_pipes, against, await _crowd(folder, command, few)]


async def _crowd(folder: Path, command: str, rounds: int) -> Figure:
    """Many callers at once on a pool of workers; times are per event."""
    with ExitStack() as stack:
        pipes = [stack.enter_context(_pipe()) for _ in range(POOL)]
        threads = stack.enter_context(ThreadPoolExecutor(POOL))

        async def bare() -> float:
            started = time.perf_counter()
            list(threads.map(_ask_many, pipes))
            return (time.perf_counter() - started) / (CALLERS * EACH)

        async with fired(
            folder, command, 1, SMALL, kind="worker", repeat=EACH, pool=POOL
        ) as caller:

            async def callers() -> float:
                started = time.perf_counter()
                await asyncio.gather(*(caller() for _ in range(CALLERS)))
                return (time.perf_counter() - started) / (CALLERS * EACH)

            name = f"{CALLERS} callers on {POOL} workers"
            line = f"lines of JSON to {POOL} Python processes and back"
            return await compare(GROUP, name, callers, bare, line, rounds, Bar(1.3))


@contextmanager
def _echo(program: str) -> Iterator[Timed]:
    with _pipe(program) as ask:
        yield timed_plain(ask)


def _ask_many(ask: Callable[[], None]) -> None:
    for _ in range(CALLERS * EACH // POOL):
        ask()


@contextmanager
def _pipe(program: str = ECHO) -> Iterator[Callable[[], None]]:
    frame = {"id": 1, "input": {"tool_name": "write_file", "tool_input": SMALL}}
    line = json.dumps(frame).encode() + b"\n"
    with subprocess.Popen(
        [sys.executable, "-c", program],
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

        yield ask
        stdin.close()
