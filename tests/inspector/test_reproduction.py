"""An event as a command and as a test, both really run: hooks get the same input.

What the page offers for plain events is in ``tests/pins/page/event.json``.
"""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.commandline import Finished, run_command
from tests.support.page_rows import PageProject

_KEEP = "import sys; open({file!r}, 'wb').write(sys.stdin.buffer.read())"
EVENTS = ("BeforeTool", "AfterTool", "BeforeAgent", "BeforeModel")


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {"end": 1}
    for _ in range(levels):
        value = {"in": value}
    return value


HOSTILE: dict[str, Any] = {
    "expansions": "$(touch hacked) `touch hacked` $HOME ${x} ~ * ? [a] {a,b}",
    "quotes": "it's \"quoted\" \\ \\\\ \\' '\"'\"'",
    "history": "!! !$ !touch !1 ^a^b",
    "end of the document": "HOOKLINE_INPUT\nHOOKLINE_INPUT\ntouch hacked\n",
    "control characters": "a\x00b\x07\x08\x1b[201~\x7f\x85\r\n\ttab",
    "unicode": "😀 é \u202e \u2028 \ufeff \U000e0041 \ud800",
    "numbers": [12345678901234567890123, -0.0, 1e300, 0.1, True, None],
    "keys": {"": 1, "a b": 2, 'q"': 3, "é\n": 4, "__proto__": 5, "$(touch hacked)": 6},
    "empty": [{}, [], "", [[]], [{}]],
    "deep": nested(40),
    "toml": '\'\'\'\n"""\n[[case]]\nexpect = "allow"\n# x',
}


class Recorded:
    """A project whose hooks are a script, and one that keeps the input it gets."""

    def __init__(self, place: Path) -> None:
        self.page = PageProject(place)
        self.folder = self.page.folder
        self.says = self.folder / "say.py"
        self._got = self.folder / "got.json"

    async def fire(self, event: str, **fields: Any) -> Any:
        """Fire an event and describe it as the page does."""
        files = {"keep.py": _KEEP.format(file=str(self._got))}
        if not self.says.exists():
            files["say.py"] = ""
        hooks = [
            {"type": "command", "name": name, "command": _python(self.folder / name)}
            for name in ("say.py", "keep.py")
        ]
        settings = {"hooks": {key: [{"hooks": hooks}] for key in EVENTS}}
        await self.page.do({"files": files, "settings": settings})
        await self.page.do({"fire": [[event, fields]]})
        return await self.page.ask("/api/events/1")

    def input(self) -> dict[str, Any]:
        """What the hook got last, without what no event can have twice."""
        event: dict[str, Any] = json.loads(self._got.read_bytes())
        self._got.unlink()
        del event["timestamp"]
        return event

    async def test(self, described: dict[str, Any]) -> Finished:
        """Run the test that the page offers."""
        file = self.folder / described["case"]["name"]
        file.write_text(described["case"]["text"], "utf-8")
        return await asyncio.to_thread(run_command, "test", file, "-v")


def _python(script: Path) -> str:
    return shlex.join([sys.executable, str(script)])


@pytest.fixture
def recorded(tmp_path: Path) -> Recorded:
    return Recorded(tmp_path / "it's $HOME")


@pytest.mark.parametrize(
    "shell", [["bash"], ["sh"], ["bash", "--norc", "-i"]], ids=["bash", "sh", "-i"]
)
async def test_the_command_gives_the_hook_the_same_input(
    recorded: Recorded, shell: list[str]
) -> None:
    """It is ASCII, without anything that a terminal obeys."""
    described = await recorded.fire(
        "BeforeTool",
        tool_name="a 'tool' $(touch hacked) !!",
        tool_input=HOSTILE,
        tool_use_id="call-1",
        session_id="s'1 $(touch hacked)\n!!\x1b[31m",
        transcript_path="/tmp/a b",
    )
    before, text = recorded.input(), described["fire_command"]
    assert all(character == "\n" or " " <= character <= "~" for character in text)
    assert "!" not in text.partition("\n")[2]
    ready = "set -o history -o histexpand\n" if "-i" in shell else ""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = await asyncio.to_thread(
        subprocess.run,
        shell,
        input=ready + text,
        cwd=recorded.folder,
        env={**os.environ, "PATH": path, "LC_ALL": "C", "HISTFILE": "/dev/null"},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert "BeforeTool: allowed" in done.stdout, done.stderr
    assert recorded.input() == before
    assert not (recorded.folder / "hacked").exists()


async def test_the_test_is_accepted_and_gives_the_hook_the_same_input(
    tmp_path: Path, subtests: pytest.Subtests
) -> None:
    inexact = {"numbers": ["null is left out: TOML has no such value"]}
    for name, value in HOSTILE.items():
        with subtests.test(name):
            recorded = Recorded(tmp_path / name)
            described = await recorded.fire(
                "AfterTool",
                tool_name="t",
                tool_input={"given": value},
                tool_response={"llmContent": "x", "returnDisplay": "y"},
                session_id="s 'é'",
                mcp_context={"server_name": "m"},
            )
            before = recorded.input()
            ended = await recorded.test(described)
            assert ended.returncode == 0, ended.stdout + ended.stderr
            assert described["case"]["inexact"] == inexact.get(name, [])
            if name == "numbers":
                assert before["tool_input"]["given"].pop() is None
            assert recorded.input() == before


TOOL = {"tool_name": "t", "tool_input": {"a": 1, "b": [1, {"c": "é"}]}}
REQUEST = {"llm_request": {"model": "m", "messages": []}}
WARM = {"llm_request": {"config": {"temperature": 0.5}}}
VERDICTS: dict[str, tuple[str, dict[str, Any], dict[str, Any], str]] = {
    "blocked": (
        *("BeforeTool", TOOL),
        *({"decision": "deny", "reason": "no (really) [x]*\nbecause"}, "block"),
    ),
    "changed": (
        *("BeforeTool", TOOL),
        *({"hookSpecificOutput": {"tool_input": {"a": 2, "d": "\u202e"}}}, "allow"),
    ),
    "ask": ("BeforeTool", TOOL, {"decision": "ask", "reason": "sure?"}, "ask"),
    "stopped": (
        *("BeforeAgent", {"prompt": "two\nlines"}),
        *({"continue": False, "stopReason": "enough"}, "stop"),
    ),
    "request changed": ("BeforeModel", REQUEST, {"hookSpecificOutput": WARM}, "allow"),
}


async def test_the_test_passes_and_fails_when_the_verdict_changes(
    tmp_path: Path, subtests: pytest.Subtests
) -> None:
    for name, (event, fields, output, word) in VERDICTS.items():
        with subtests.test(name):
            recorded = Recorded(tmp_path / name)
            recorded.folder.mkdir(parents=True)
            recorded.says.write_text(f"import json; print(json.dumps({output!r}))")
            described = await recorded.fire(event, **fields)
            assert f'expect = "{word}"' in described["case"]["text"]
            ended = await recorded.test(described)
            assert ended.returncode == 0, ended.stdout + ended.stderr
            recorded.says.write_text("")  # now it says nothing
            assert (await recorded.test(described)).returncode == 1


async def test_the_test_of_a_project_uses_its_settings(tmp_path: Path) -> None:
    page = PageProject(tmp_path)
    hook = {"type": "command", "name": "no", "command": "echo no >&2; exit 2"}
    project = {"hooks": {"BeforeTool": [{"hooks": [hook]}]}}
    await page.do({"project": project, "trust": True})
    await page.do({"fire": [["BeforeTool", {"tool_name": "t", "tool_input": {}}]]})
    case = (await page.ask("/api/events/1"))["case"]
    assert case["text"].startswith('settings = "project"\n')
    file = page.folder / ".hookline" / case["name"]
    file.write_text(case["text"])
    ended = await asyncio.to_thread(run_command, "test", file, cwd=page.folder)
    assert ended.returncode == 0, ended.stdout + ended.stderr


async def test_placeholders_of_tests_and_deep_values_are_noted(
    recorded: Recorded,
) -> None:
    given = {"a": "{cwd}/x", "deep": nested(100)}
    described = await recorded.fire("BeforeTool", tool_name="t", tool_input=given)
    assert described["inexact"] == []
    assert described["case"]["inexact"] == [
        "{cwd} and {server} are replaced when the test runs",
        "parts that are nested too deeply are left out",
    ]
    assert (await recorded.test(described)).returncode == 0
