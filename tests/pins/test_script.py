"""Scripts with ``hookline.script``: what real processes of them print and answer."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hookline import HookEventName, script
from hookline.protocol.outputs import read_output
from tests.support.fired import described, folder_of
from tests.support.pins import PinTable
from tests.support.python import run_python

Tables = Callable[[str], PinTable]

LONG = {
    '"<digits>"': "9" * 5000,
    "<digits>": "9" * 5000,
    "<4000 digits>": "9" * 4000,
    "<4001 digits>": "9" * 4001,
    "<5 megabytes>": "x" * 5_000_000,
}
"""What would make the table unreadable."""


async def run_script(
    row: dict[str, Any], folder: Path, stdin: str, **env: str
) -> tuple[int | None, str, str]:
    """The exit status, the output and the errors of a script with this input."""
    for name, text in LONG.items():
        stdin = stdin.replace(name, text)
    folder.mkdir(parents=True)
    script = folder / "hook.py"
    imports = "from hookline.script import *\nimport os, sys\n"
    script.write_text(f"{imports}{row['source']}\n")
    inherited = {k: v for k, v in os.environ.items() if k != "HOOKLINE_WORKER"}
    process = await asyncio.create_subprocess_exec(
        *("sh", "-c", f'exec "$0" "$1" {row.get("redirect", "")}'),
        *(sys.executable, str(script)),
        cwd=folder,
        env={**inherited, **row.get("env", {}), **env},
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
    )
    stdout, stderr = await asyncio.wait_for(process.communicate(stdin.encode()), 60)
    return process.returncode, stdout.decode(), stderr.decode()


async def test_script_that_answers_one_event(pin_table: Tables, tmp_path: Path) -> None:
    async def run(name: str, row: dict[str, Any]) -> object:
        folder = folder_of(name, tmp_path)
        stdin = row["stdin"] if "stdin" in row else json.dumps(row["event"])
        status, output, errors = await run_script(row, folder, stdin)
        if row.get("last_line"):  # above it are lines of this installation
            assert errors.startswith("Traceback (most recent call last):\n")
            errors = errors.splitlines()[-1]
        shown = {"status": status, "printed": output, "errors": errors}
        return described(shown, {"folder": folder})

    await pin_table("script/run").check(run)


async def test_script_that_is_kept_running(pin_table: Tables, tmp_path: Path) -> None:
    async def run(name: str, row: dict[str, Any]) -> object:
        folder = folder_of(name, tmp_path)
        frames = [
            json.dumps({"id": number, "env": {}, **event}) + "\n"
            for number, event in enumerate(row["events"], 1)
        ]
        status, output, errors = await run_script(
            row, folder, "".join(frames), HOOKLINE_WORKER="1", OWN="worker"
        )
        answers = [json.loads(line) for line in output.splitlines()]
        shown = {"status": status, "answers": answers, "errors": errors}
        return described(shown, {"folder": folder})

    await pin_table("script/worker").check(run)


async def test_answers_and_their_combinations(pin_table: Tables) -> None:
    """``|`` never softens a verdict, and leaves both sides as they were."""
    sides = {name: getattr(script, name) for name in script.__all__}

    def evaluate(expression: str, row: dict[str, Any]) -> object:
        try:
            answer = eval(expression, sides)
        except TypeError as error:
            return f"TypeError: {error}"
        assert isinstance(answer, script.Output)
        warnings = read_output(answer, HookEventName.BeforeModel)[1]
        return {"answer": answer, "warnings": warnings}

    await pin_table("script/outputs").check(evaluate)
    left, right = script.modify_input(a=1), script.modify_input(a=2)
    assert (left | right) == right
    assert (left, right) == (script.modify_input(a=1), script.modify_input(a=2))


def test_importing_loads_nothing_but_itself() -> None:
    """Importing may add at most 5 ms to a bare interpreter: so it imports nothing."""
    done = run_python(
        "import sys; before = set(sys.modules); import hookline.script;"
        "print(sorted(set(sys.modules) - before - {'__future__'}))"
    )
    assert done.stdout == "['hookline', 'hookline.script']\n"
