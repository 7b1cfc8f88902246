"""The examples, each as a reader would start it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hookline import Config, HookSystem, Settings

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(name: str) -> str:
    ended = subprocess.run(
        [sys.executable, EXAMPLES / name, "--offline"],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.mark.parametrize(
    "name", ["genai_agent.py", "openai_agent.py", "anthropic_agent.py"]
)
def test_an_example_keeps_the_secret_out_and_redacts_the_answer(name: str) -> None:
    assert run(name).splitlines() == [
        "answer: Written. Ask [e-mail] about it.",
        "db.txt: vault: db/main",
    ]


def test_the_example_of_an_own_loop_hooks_a_plain_function() -> None:
    output = run("own_loop.py")
    assert "keep passwords out of files" in output
    assert "db.txt: vault: db/main" in output


WORKERS = {"bash": "no_env_files.sh", "node": "no_env_files.mjs"}
CALLS: dict[str, tuple[dict[str, Any], bool]] = {
    "the file": ({"path": ".env"}, True),
    "by the other name": ({"file_path": "config/.env", "content": "A=1"}, True),
    "in a folder with odd letters": ({"path": 'a "b"\\\n\u2028ä/.env'}, True),
    "behind a quote": ({"path": '"\\".env'}, True),
    "another file": ({"path": "main.py", "content": "x"}, False),
    "a text about it": ({"path": "a.md", "content": '"path":".env"'}, False),
    "a text that is it": ({"path": "a.md", "content": ".env"}, False),
    "no path": ({"command": "ls"}, False),
    "a path that is no text": ({"path": {"a": [1]}}, False),
}


@pytest.mark.parametrize("kind", ["worker", "command"])
@pytest.mark.parametrize("program", WORKERS)
async def test_a_worker_in_another_language_keeps_secrets_out(
    program: str, kind: str, tmp_path: Path
) -> None:
    """Issue 13.6: the same file as a worker and as a command."""
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    command = f"{program} '{EXAMPLES / 'workers' / WORKERS[program]}'"
    hook = {"type": kind, "command": command, "onError": "block"}
    settings = Settings.from_mapping({"hooks": {"BeforeTool": [{"hooks": [hook]}]}})
    async with HookSystem(Config("s", tmp_path, settings)) as hooks:
        for name, (given, blocked) in CALLS.items():
            fire = hooks.event_handler.fire_before_tool_event
            result = await fire("write_file", given)
            (ran,) = result.aggregated.hook_results
            assert (result.blocked, ran.reran, ran.error) == (blocked, False, None), (
                name
            )
            reason = "keep secrets out of .env files" if blocked else None
            assert result.reason == reason
