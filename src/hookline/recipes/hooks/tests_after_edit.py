"""Run the tests after an edit, and hand the failures to the model.

``TEST_COMMAND`` is the command (default: pytest by the interpreter that has hookline);
``TEST_ENDINGS`` says which files count as code. A run that takes longer than
``TEST_SECONDS`` is ended and reported.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from typing import Any

from hookline.recipes.toolinput import paths_in, project_path
from hookline.script import Output, add_context, run

ENDINGS = "py,pyi,js,jsx,ts,tsx,go,rs,java,rb,c,h,cc,cpp,toml"
MAX_TEXT = 6000


def check(event: dict[str, Any]) -> Output | None:
    """Run the tests if code was touched inside the project."""
    endings = set(os.environ.get("TEST_ENDINGS", ENDINGS).lower().split(","))
    places = [
        project_path(path, event["cwd"]) for path in paths_in(event["tool_input"])
    ]
    if not any(
        place.rpartition(".")[2].lower() in endings for place in places if place
    ):
        return None
    failed = _run_tests(event["cwd"])
    return add_context(failed) if failed else None


def _run_tests(cwd: str) -> str | None:
    command = os.environ.get("TEST_COMMAND") or f'"{sys.executable}" -m pytest -q -x'
    seconds = float(os.environ.get("TEST_SECONDS", "45"))
    process = subprocess.Popen(
        ["sh", "-c", command],
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        said = process.communicate(timeout=seconds)[0].decode(errors="replace")
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return f"The tests did not end within {seconds:g} seconds and were stopped."
    if process.returncode == 0:
        return None
    return f"The tests fail after this edit:\n{said.strip()[-MAX_TEXT:]}"


if __name__ == "__main__":
    run(check)
