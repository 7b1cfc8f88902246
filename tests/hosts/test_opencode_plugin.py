"""The OpenCode plugin under Node: hazards of the process that it asks.

What it does with each answer is in ``tests/pins/hosts/opencode_plugin.json``.
"""

from __future__ import annotations

import json
import os

import pytest

from tests.support.agent_files import PROGRAMS, AgentFiles
from tests.support.opencode import BEFORE, CALLS, NODE, PLUGIN, OpenCode

pytestmark = [
    pytest.mark.skipif(NODE is None, reason="needs node"),
    pytest.mark.timeout(60),
]


@pytest.fixture
def opencode(files: AgentFiles) -> OpenCode:
    return OpenCode(files)


@pytest.mark.parametrize("closed", [False, True])
def test_missing_program_is_a_failure_like_others(
    opencode: OpenCode, closed: bool
) -> None:
    opencode.install(BEFORE, closed=closed)
    opencode.program.unlink()
    ((result,), stderr) = opencode.ask(CALLS["before"])
    assert "ENOENT" in stderr
    assert bool(result["thrown"]) is closed


def test_bridge_that_never_answers_is_ended(opencode: OpenCode) -> None:
    """Its own end is what the test waits for: the pipe is closed by it."""
    opencode.install(BEFORE, closed=False)
    plugin = opencode.files.path(PLUGIN)
    text = plugin.read_text()
    assert f'"{BEFORE}": 130000' in text
    plugin.write_text(text.replace(f'"{BEFORE}": 130000', f'"{BEFORE}": 300'))
    pipe = opencode.files.path("alive")
    os.mkfifo(pipe)
    wait = f"held = open({str(pipe)!r}, 'w'); import time; time.sleep(600)"
    opencode.files.write("bin/answer.py", wait)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    os.set_blocking(reader, True)
    ((result,), stderr) = opencode.ask(CALLS["before"])
    assert result["thrown"] is None
    assert "no answer in 300 ms" in stderr
    assert os.read(reader, 1) == b""
    os.close(reader)


def test_long_input_and_answer_pass(opencode: OpenCode) -> None:
    text = "ä" * 500_000
    opencode.install(closed=True)
    answer = "print(json.dumps({'args': json.loads(given)['args']}))"
    opencode.files.write("bin/answer.py", answer)
    name, call, _ = CALLS["before"]
    ((result,), _) = opencode.ask((name, call, {"args": {"command": text}}))
    assert result["output"]["args"] == {"command": text}


def test_plugin_and_bridge_agree(opencode: OpenCode) -> None:
    """The same with the real bridge and the user's own hooks."""

    def rule(when: str, **then: object) -> list[object]:
        hook = {"type": "rule", "name": "r", "when": when, "then": then}
        return [{"hooks": [hook]}]

    def context(text: str) -> dict[str, str]:
        return {"additionalContext": text}

    hooks = {
        "BeforeTool": rule(
            "tool_input.command.contains('rm')", decision="deny", reason="no rm"
        ),
        "AfterTool": rule("true", hookSpecificOutput=context("seen")),
        "BeforeAgent": rule("true", hookSpecificOutput=context("use tabs")),
    }
    opencode.files.path(".hookline/settings.json").unlink()
    settings = json.dumps({"hooks": hooks})
    opencode.files.write("~/.config/hookline/settings.json", settings)
    opencode.files.env["HOOKLINE_NO_RESIDENT"] = "1"
    opencode.program = opencode.files.path(f"{PROGRAMS}/hookline")
    opencode.install(closed=True)
    name, call, output = CALLS["before"]
    removal = name, call, {"args": {"command": "rm x"}}
    results, stderr = opencode.ask(removal, *(CALLS[n] for n in ("before", "after")))
    assert stderr == ""
    assert [result["thrown"] for result in results] == ["no rm", None, None]
    assert results[1]["output"] == output
    assert results[2]["output"]["output"] == "hi\n\n\nseen"
    ((chat,), _) = opencode.ask(CALLS["chat"])
    assert chat["output"]["parts"][0]["text"] == "work\n\nuse tabs"
