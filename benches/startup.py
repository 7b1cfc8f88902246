"""What it takes to load things: ``import hookline``, its parts, ``hookline fire``.

Bytecode is compiled beforehand, as an installer does: without it the time to compile
would be measured instead.
"""

from __future__ import annotations

import compileall
import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import hookline

from .floor import Floors
from .measure import Bar, Figure, Timed, compare, timed_plain

GROUP = "start-up"


async def figures(_: Floors, folder: Path, rounds: int) -> list[Figure]:
    """All figures of this group."""
    compileall.compile_dir(Path(hookline.__file__).parent, quiet=1)
    few = max(9, rounds // 8)
    bare, reference = _python("pass"), _python("import asyncio, msgspec")
    pass_, both = "python -c pass", 'python -c "import asyncio, msgspec"'
    script = _python("import hookline.script")
    names = _python("from hookline import Config, HookSystem")
    fire, silent = _fire(folder, "BeforeTool"), _fire(folder, "AfterTool")
    bar = Bar(1.3)
    return [
        await compare(GROUP, "import hookline.script", script, bare, pass_, few),
        await compare(GROUP, "import the hook system", names, reference, both, few),
        await compare(GROUP, "hookline fire", silent, reference, both, few, bar),
        await compare(GROUP, "hookline fire, one hook", fire, reference, both, few),
    ]


def _python(source: str) -> Timed:
    return _run([sys.executable, "-c", source])


def _fire(folder: Path, event: str) -> Timed:
    settings = folder / "settings.json"
    hooks = [{"hooks": [{"type": "command", "command": "true"}]}]
    settings.write_text(json.dumps({"hooks": {"BeforeTool": hooks}}))
    program = Path(sysconfig.get_path("scripts")) / "hookline"
    words = ["fire", event, "--tool", "write_file", "--json"]
    more = ["--cwd", str(folder), "--settings", str(settings)]
    return _run([str(program), *words, *more])


def _run(argv: list[str]) -> Timed:
    state = {"XDG_STATE_HOME": os.devnull}

    def once() -> None:
        subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **state},
            check=True,
        )

    return timed_plain(once)
