"""The examples, each as a reader would start it."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hookline import Config, HookSystem, Settings
from hookline.cli.main import main

EXAMPLES = Path(__file__).parents[2] / "examples"


EXPECTED = json.loads(Path(__file__).with_name("examples.json").read_text())
SHOWN: dict[str, list[str]] = EXPECTED["shown"]
"""The lines that each example prints."""


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
    """Its own cases pass, and each agent has its own limits."""
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


@pytest.mark.parametrize("kind", ["worker", "command"])
@pytest.mark.parametrize("program", WORKERS)
async def test_a_worker_in_another_language_keeps_secrets_out(
    program: str, kind: str, tmp_path: Path
) -> None:
    """The same file as a worker and as a command."""
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    command = f"{program} '{EXAMPLES / 'workers' / WORKERS[program]}'"
    hook = {"type": kind, "command": command, "onError": "block"}
    settings = Settings.from_mapping({"hooks": {"BeforeTool": [{"hooks": [hook]}]}})
    async with HookSystem(Config("s", tmp_path, settings)) as hooks:
        for name, call in EXPECTED["calls of workers"].items():
            fire = hooks.event_handler.fire_before_tool_event
            result = await fire("write_file", call["tool_input"])
            (ran,) = result.aggregated.hook_results
            verdict = (result.blocked, ran.reran, ran.error)
            assert verdict == (call["blocked"], False, None), name
            reason = "keep secrets out of .env files" if call["blocked"] else None
            assert result.reason == reason
