"""The examples, each as a reader would start it."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hookline import Config, HookSystem, Settings
from hookline.cli.main import main

EXAMPLES = Path(__file__).parents[2] / "examples"


AGENT = ["answer: Written. Ask [e-mail] about it.", "db.txt: vault: db/main"]
SHOWN = {
    "genai_agent.py": AGENT,
    "openai_agent.py": AGENT,
    "anthropic_agent.py": AGENT,
    "own_loop.py": [
        "keep passwords out of files: name the vault entry instead",
        "wrote db.txt",
        "answer: done",
        "db.txt: vault: db/main",
    ],
    "frameworks/anthropic_client.py": [
        "streamed: Ask Grace about it.",
        "answered: I left notes.md alone.",
        "the tool gave the model: keep notes.md",
        "refused: POST /v1/messages/batches is refused",
        "requests that the service got: 3",
    ],
    "frameworks/openai_client.py": [
        "answered: Ask Grace about it.",
        "streamed: Ask Grace again.",
        "blocked: content_filter - keep passwords to yourself",
        "refused: POST /embeddings is refused",
        "requests that the service got: 2",
    ],
}


@pytest.mark.parametrize("name", SHOWN)
def test_an_example_shows_what_its_hooks_do(name: str) -> None:
    ended = subprocess.run(
        [sys.executable, EXAMPLES / name, "--offline"],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    lines = ended.stdout.splitlines()
    for line, text in zip(lines, SHOWN[name], strict=True):
        # What a refusal goes on to say is text of the library.
        assert line.startswith(text) if "refused" in text else line == text


async def credits_of(folder: Path) -> tuple[bool, bool]:
    """Whether a small and a large credit are blocked."""
    given = {"order": "7", "currency": "EUR", "complaint": "C-1"}
    async with HookSystem(Config.load(folder)) as hooks:
        fire = hooks.event_handler.fire_before_tool_event
        tool = "OrderDesk___issue_credit"
        small = await fire(tool, {**given, "cents": 100})
        large = await fire(tool, {**given, "cents": 90_000})
    return small.blocked, large.blocked


def test_the_cedar_example_carries_over_policies_of_a_tool_gateway(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Issue 13.2: its own cases pass, and each agent has its own limits."""
    folder = shutil.copytree(EXAMPLES / "cedar", tmp_path / "order-desk")
    assert main(["check", "--strict", "--cwd", str(folder)]) == 0
    assert main(["trust", "--yes", str(folder)]) == 0
    assert main(["test", str(folder)]) == 0, capsys.readouterr().out
    settings = folder / ".hookline" / "settings.json"
    given = json.loads(settings.read_text())
    verdicts = {}
    for agent in ("lead-bot", "desk-bot", "night-bot", "stranger"):
        given["hooks"]["BeforeTool"][0]["hooks"][0]["principal"] = agent
        settings.write_text(json.dumps(given))
        assert main(["trust", "--yes", str(folder)]) == 0
        verdicts[agent] = asyncio.run(credits_of(folder))
    assert verdicts == {
        "lead-bot": (False, False),
        "desk-bot": (False, True),
        "night-bot": (True, True),
        "stranger": (True, True),
    }


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
