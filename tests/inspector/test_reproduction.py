"""Issue 16: an event as a command and as a test; both are really run here."""

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

from hookline import Config, HookSystem, Settings
from hookline.inspector.desk import Desk
from hookline.inspector.event import describe_event
from tests.support.commandline import hookline
from tests.support.project import Project

_KEEP = "import sys; open({file!r}, 'wb').write(sys.stdin.buffer.read())"


class Recorded:
    """A folder with settings and a journal; its hook keeps the input that it gets."""

    def __init__(self, folder: Path, hooks: list[dict[str, Any]] | None = None) -> None:
        self.folder = folder
        self.got = folder / "got.json"
        script = folder / "keep.py"
        script.write_text(_KEEP.format(file=str(self.got)))
        keep = {"type": "command", "name": "keep", "command": _python(script)}
        group = [{"hooks": [*(hooks or []), keep]}]
        events = ("BeforeTool", "AfterTool", "BeforeAgent", "BeforeModel")
        config = {"journal": str(folder / "journal.sqlite")}
        self.settings = folder / "hooks.json"
        content = {"hooks": dict.fromkeys(events, group), "hooksConfig": config}
        self.settings.write_text(json.dumps(content))

    def fire(self, event: str, **fields: Any) -> dict[str, Any]:
        """Fire an event and describe it as the page does."""
        asyncio.run(self._fire(event, fields))
        desk = Desk(str(self.folder), str(self.settings))
        with desk.read() as reader:
            newest = reader.last_id()
        return describe_event(desk, newest)

    async def _fire(self, event: str, fields: dict[str, Any]) -> None:
        config = Config("own", self.folder, Settings.from_file(self.settings))
        async with HookSystem(config) as system:
            await system.event_handler.fire(event, fields)

    def input(self) -> dict[str, Any]:
        """What the hook got last, without what no event can have twice."""
        found: dict[str, Any] = json.loads(self.got.read_bytes())
        del found["timestamp"]
        return found

    def test(self, described: dict[str, Any]) -> subprocess.CompletedProcess[str]:
        """Run the test that the page offers."""
        file = self.folder / described["case"]["name"]
        file.write_text(described["case"]["text"], "utf-8")
        return hookline("test", str(file), "-v")


def _python(script: Path) -> str:
    return shlex.join([sys.executable, str(script)])


def _shell(shell: list[str], text: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return subprocess.run(
        shell,
        input=text,
        cwd=cwd,
        env={**os.environ, "PATH": path, "LC_ALL": "C", "HISTFILE": "/dev/null"},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )


@pytest.fixture
def recorded(tmp_path: Path) -> Recorded:
    folder = tmp_path / "it's $HOME"
    folder.mkdir()
    return Recorded(folder)


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


@pytest.mark.parametrize(
    "shell", [["bash"], ["sh"], ["bash", "--norc", "-i"]], ids=["bash", "sh", "-i"]
)
def test_the_command_gives_the_hook_the_same_input(
    recorded: Recorded, shell: list[str]
) -> None:
    described = recorded.fire(
        "BeforeTool",
        tool_name="a 'tool' $(touch hacked) !!",
        tool_input=HOSTILE,
        tool_use_id="call-1",
        session_id="s'1 $(touch hacked)\n!!",
        transcript_path="/tmp/a b",
    )
    before = recorded.input()
    recorded.got.unlink()
    ready = "set -o history -o histexpand\n" if "-i" in shell else ""
    done = _shell(shell, ready + described["fire_command"], recorded.folder)
    assert "BeforeTool: allowed" in done.stdout, done.stderr
    assert recorded.input() == before
    assert not (recorded.folder / "hacked").exists()


def test_the_command_is_ascii_without_anything_that_a_terminal_obeys(
    recorded: Recorded,
) -> None:
    described = recorded.fire(
        "BeforeTool", tool_name="t", tool_input=HOSTILE, session_id="\x1b[31m"
    )
    text = described["fire_command"]
    assert text.isascii()
    assert all(character == "\n" or " " <= character <= "~" for character in text)
    assert "!" not in text.partition("\n")[2]


@pytest.mark.parametrize("name", HOSTILE)
def test_the_test_is_accepted_and_gives_the_hook_the_same_input(
    recorded: Recorded, name: str
) -> None:
    described = recorded.fire(
        "AfterTool",
        tool_name="t",
        tool_input={"given": HOSTILE[name]},
        tool_response={"llmContent": "x", "returnDisplay": "y"},
        session_id="s 'é'",
        mcp_context={"server_name": "m"},
    )
    before = recorded.input()
    done = recorded.test(described)
    assert done.returncode == 0, done.stdout + done.stderr
    if name == "numbers":
        assert before["tool_input"]["given"].pop() is None
        assert described["case"]["inexact"] == [
            "null is left out: TOML has no such value"
        ]
    assert recorded.input() == before


@pytest.mark.parametrize(
    ("event", "fields", "output", "word"),
    [
        (
            "BeforeTool",
            {"tool_name": "t", "tool_input": {"a": 1}},
            {"decision": "deny", "reason": "no (really) [x]*\nbecause"},
            "block",
        ),
        (
            "BeforeTool",
            {"tool_name": "t", "tool_input": {"a": 1, "b": [1, {"c": "é"}]}},
            {"hookSpecificOutput": {"tool_input": {"a": 2, "d": "\u202e"}}},
            "allow",
        ),
        (
            "BeforeTool",
            {"tool_name": "t", "tool_input": {"a": 1}},
            {"decision": "ask", "reason": "sure?"},
            "ask",
        ),
        (
            "BeforeAgent",
            {"prompt": "two\nlines"},
            {"continue": False, "stopReason": "enough"},
            "stop",
        ),
        (
            "BeforeModel",
            {"llm_request": {"model": "m", "messages": []}},
            {"hookSpecificOutput": {"llm_request": {"config": {"temperature": 0.5}}}},
            "allow",
        ),
    ],
    ids=["blocked", "changed", "ask", "stopped", "request changed"],
)
def test_the_test_passes_and_fails_when_the_verdict_changes(
    tmp_path: Path,
    event: str,
    fields: dict[str, Any],
    output: dict[str, Any],
    word: str,
) -> None:
    script = tmp_path / "say.py"
    script.write_text(f"import json; print(json.dumps({output!r}))")
    say = {"type": "command", "name": "say", "command": _python(script)}
    recorded = Recorded(tmp_path, [say])
    described = recorded.fire(event, **fields)
    assert f'expect = "{word}"' in described["case"]["text"]
    done = recorded.test(described)
    assert done.returncode == 0, done.stdout + done.stderr
    script.write_text("")  # now it says nothing
    assert recorded.test(described).returncode == 1


def test_the_test_of_a_project_uses_its_settings(project: Project) -> None:
    hook = {"type": "command", "name": "no", "command": "echo no >&2; exit 2"}
    project.settings(hook)
    project.trust()
    words = ("fire", "BeforeTool", "--tool", "t", "--record")
    fired = hookline(*words, cwd=project.folder)
    assert fired.returncode == 2, fired.stderr
    case = describe_event(Desk(str(project.folder)), 1)["case"]
    assert case["text"].startswith('settings = "project"\n')
    file = project.write(f".hookline/{case['name']}", case["text"])
    done = hookline("test", str(file), cwd=project.folder)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_failing_hook_is_expected_to_fail(tmp_path: Path) -> None:
    broken = {"type": "command", "name": "broken", "command": "exit 1"}
    recorded = Recorded(tmp_path, [broken])
    described = recorded.fire("BeforeTool", tool_name="t", tool_input={})
    assert "fails = true" in described["case"]["text"]
    assert recorded.test(described).returncode == 0


def test_copies_of_masked_and_cut_inputs_say_that_they_are_not_exact(
    recorded: Recorded,
) -> None:
    masked = recorded.fire(
        "BeforeTool", tool_name="t", tool_input={"password": "hunter2"}
    )
    assert masked["inexact"] == ["credentials in the input are masked"]
    assert "hunter2" not in json.dumps(masked)
    cut = recorded.fire("BeforeTool", tool_name="t", tool_input={"a": "x" * 300_000})
    assert cut["inexact"] == ["the input is truncated"]
    assert cut["case"]["inexact"] == cut["inexact"]


def test_placeholders_of_tests_and_deep_values_are_noted(recorded: Recorded) -> None:
    given = {"a": "{cwd}/x", "deep": nested(100)}
    described = recorded.fire("BeforeTool", tool_name="t", tool_input=given)
    assert described["inexact"] == []
    assert described["case"]["inexact"] == [
        "{cwd} and {server} are replaced when the test runs",
        "parts that are nested too deeply are left out",
    ]
    assert recorded.test(described).returncode == 0
