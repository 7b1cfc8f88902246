"""Run the tests after an edit, and show the failures to the model.

``TEST_COMMAND`` is the command (default: pytest with Hookline's interpreter);
``TEST_ENDINGS`` are the extensions of files that count as code. A run that takes
longer than ``TEST_SECONDS`` is killed and reported.
"""

import os
import subprocess
import sys
from contextlib import suppress
from os import killpg
from signal import SIGKILL
from typing import Any

from hookline.recipes.toolinput import env_list, paths_in, project_paths
from hookline.script import Output, add_context, run

ENDINGS = "py,pyi,js,jsx,ts,tsx,go,rs,java,rb,c,h,cc,cpp,toml"
MAX_TEXT = 6000


def check(event: dict[str, Any]) -> Output | None:
    """Run the tests if code in the project was changed."""
    endings = {ending.lower() for ending in env_list("TEST_ENDINGS", ENDINGS)}
    paths = project_paths(paths_in(event["tool_input"]), event["cwd"])
    if endings.isdisjoint(path.rpartition(".")[2].lower() for path in paths):
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
        output = process.communicate(timeout=seconds)[0].decode(errors="replace")
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            killpg(process.pid, SIGKILL)
        process.communicate()
        return f"The tests did not finish within {seconds:g} seconds and were killed."
    if process.returncode == 0:
        return None
    return f"The tests fail after this edit:\n{output.strip()[-MAX_TEXT:]}"


if __name__ == "__main__":
    run(check)
