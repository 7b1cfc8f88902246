"""The OpenCode plugin under Node: what it sends, and what it does (issue 15.7)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hookline.hosts.file_changes import apply
from hookline.hosts.host import HostName
from hookline.hosts.install import Wanted

from .installing import Workplace

NODE = shutil.which("node")
pytestmark = [
    pytest.mark.skipif(NODE is None, reason="needs node"),
    pytest.mark.timeout(60),
]
HARNESS = Path(__file__).with_name("opencode_harness.mjs")
BEFORE, AFTER, CHAT = "tool.execute.before", "tool.execute.after", "chat.message"
EVENTS = (BEFORE, AFTER, CHAT, "event.session.created", "event.session.idle")
SESSION = "ses_e20ff3d06ffePRAnrhAnMWFy4h"


class OpenCode:
    """A host that has loaded the plugin, and a bridge that answers from a file."""

    def __init__(self, workplace: Workplace) -> None:
        self.workplace = workplace
        self.program = workplace.write(
            "bin/hookline",
            f"#!{sys.executable}\nimport json, os, sys\n"
            "here = os.path.dirname(__file__)\n"
            "given = sys.stdin.read()\n"
            "with open(f'{here}/seen', 'a') as file:\n"
            "    print(json.dumps([sys.argv[1:], os.getcwd(), json.loads(given)]),"
            " file=file)\n"
            "exec(open(f'{here}/answer.py').read())\n",
        )
        self.program.chmod(0o755)
        self.answer({})

    def answer(self, value: object) -> None:
        """What the bridge says."""
        self.does(f"print({json.dumps(value)!r})")

    def does(self, program: str) -> None:
        """What the bridge does; ``given`` is what it read."""
        self.workplace.write("bin/answer.py", program)

    def setup(self, *events: str, needs_ms: float = 0, closed: bool = False) -> None:
        wanted = [Wanted(one, needs_ms, closed) for one in events]
        installer = self.workplace.installer(HostName.OPENCODE)
        apply(installer.install(wanted, (), (str(self.program),)))
        # Node, unlike OpenCode, wants to be told what kind of file it is.
        self.workplace.write(".opencode/plugins/package.json", '{"type": "module"}')

    def run(self, *calls: tuple[str, Any, Any]) -> tuple[list[dict[str, Any]], str]:
        keys = ("name", "input", "output")
        given = {"calls": [dict(zip(keys, call, strict=True)) for call in calls]}
        plugin = self.workplace.project / ".opencode/plugins/hookline.js"
        ended = subprocess.run(
            [str(NODE), str(HARNESS), str(plugin), str(self.workplace.project)],
            input=json.dumps(given),
            capture_output=True,
            text=True,
            check=False,
            timeout=50,
        )
        assert ended.returncode == 0, ended.stderr
        return json.loads(ended.stdout), ended.stderr

    def seen(self) -> list[Any]:
        file = self.workplace.project / "bin/seen"
        lines = file.read_text().splitlines() if file.exists() else []
        return [json.loads(line) for line in lines]


@pytest.fixture
def opencode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OpenCode:
    found = OpenCode(Workplace(tmp_path, monkeypatch))
    found.setup(*EVENTS)
    return found


def before(**args: Any) -> tuple[str, Any, Any]:
    about = {"tool": "bash", "sessionID": SESSION, "callID": "call_2"}
    return BEFORE, about, {"args": args or {"command": "echo hi", "description": "d"}}


def after(output: Any = None) -> tuple[str, Any, Any]:
    args = {"command": "echo hi", "description": "d"}
    about = {"tool": "bash", "sessionID": SESSION, "callID": "call_2", "args": args}
    metadata = {"output": "hi\n", "exit": 0, "truncated": False}
    own = {"title": "echo hi", "metadata": metadata, "output": "hi\n"}
    return AFTER, about, own if output is None else output


def chat(*parts: Any) -> tuple[str, Any, Any]:
    model = {"providerID": "fake", "modelID": "fake-model"}
    shown = parts or ({"type": "text", "text": '"please work"'},)
    message = {"id": "msg_1", "role": "user"}
    about = {"sessionID": SESSION, "model": model, "agent": "build"}
    return CHAT, about, {"message": message, "parts": list(shown)}


CREATED = {"id": "evt_1", "type": "session.created", "properties": {"sessionID": "s"}}


def test_plugin_sends_what_was_captured(opencode: OpenCode) -> None:
    event = {"event": CREATED}
    opencode.run(before(), after(), chat(), ("event", event, None))
    project = str(opencode.workplace.project)
    words, folders, sent = zip(*opencode.seen(), strict=True)
    assert set(map(tuple, words)) == {("bridge", "opencode")}
    assert set(folders) == {project}
    args = {"command": "echo hi", "description": "d"}
    call = {"tool": "bash", "sessionID": SESSION, "callID": "call_2", "args": args}
    model = {"providerID": "fake", "modelID": "fake-model"}
    metadata = {"output": "hi\n", "exit": 0, "truncated": False}
    output = {"title": "echo hi", "metadata": metadata, "output": "hi\n"}
    assert sent == (
        {"hook_event_name": BEFORE, "cwd": project, **call},
        {"hook_event_name": AFTER, "cwd": project, "output": output, **call},
        {
            "hook_event_name": CHAT,
            "sessionID": SESSION,
            "model": model,
            "cwd": project,
            "prompt": '"please work"',
        },
        {"hook_event_name": "event.session.created", **CREATED},
    )


def test_plugin_asks_only_about_installed_events(opencode: OpenCode) -> None:
    opencode.setup(AFTER)
    updated = {"event": {"type": "message.updated"}}
    opencode.run(before(), chat(), ("event", updated, None))
    assert opencode.seen() == []


@pytest.mark.parametrize("text", ["", "{}", "\n"])
def test_no_answer_changes_nothing(opencode: OpenCode, text: str) -> None:
    opencode.does(f"print({text!r}, end='')")
    results, stderr = opencode.run(before(), after(), chat())
    expected = [before()[2], after()[2], chat()[2]]
    assert results == [{"output": one, "thrown": None} for one in expected]
    assert stderr == ""


def test_block_is_thrown_with_its_reason(opencode: OpenCode) -> None:
    opencode.answer({"block": "not here", "context": "see the rules"})
    results, stderr = opencode.run(before(), chat())
    assert [one["thrown"] for one in results] == ["not here\n\nsee the rules"] * 2
    assert stderr == "hookline: not here\n"


def test_changed_args_replace_the_whole_input(opencode: OpenCode) -> None:
    opencode.answer({"args": {"command": "ls"}})
    ((result,), _) = opencode.run(before())
    assert result == {"output": {"args": {"command": "ls"}}, "thrown": None}


def test_context_before_a_tool_arrives_with_its_result(opencode: OpenCode) -> None:
    opencode.setup(BEFORE)
    opencode.answer({"context": "careful"})
    results, _ = opencode.run(before(), after(), after())
    assert [one["output"]["output"] for one in results[1:]] == [
        "hi\n\n\ncareful",
        "hi\n",
    ]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ({"output": "withheld"}, "withheld"),
        ({"output": ""}, ""),
        ({"context": "more"}, "hi\n\n\nmore"),
        ({"output": "withheld", "context": "more"}, "withheld\n\nmore"),
    ],
)
def test_result_is_replaced_and_extended(
    opencode: OpenCode, answer: object, expected: str
) -> None:
    opencode.answer(answer)
    ((result,), _) = opencode.run(after())
    assert result["output"]["output"] == expected


def test_withheld_result_is_gone_everywhere(opencode: OpenCode) -> None:
    opencode.answer({"output": "withheld"})
    output = {**after()[2], "attachments": [{"url": "data:secret"}]}
    ((result,), _) = opencode.run(after(output))
    assert "secret" not in json.dumps(result)
    assert result["output"]["metadata"]["output"] == "withheld"


def test_result_of_an_mcp_tool_is_read_and_replaced(opencode: OpenCode) -> None:
    image = {"type": "image", "data": "secret"}
    texts = [{"type": "text", "text": one} for one in ("a", "b")]
    opencode.answer({"output": "withheld", "context": "more"})
    given = {"content": [*texts, image], "structuredContent": {"a": "secret"}}
    ((result,), _) = opencode.run(after(given))
    assert opencode.seen()[0][2]["output"]["output"] == "a\nb"
    shown = [{"type": "text", "text": one} for one in ("withheld", "more")]
    assert result["output"] == {"content": shown}


def test_context_of_the_prompt_is_added_to_its_text(opencode: OpenCode) -> None:
    opencode.answer({"context": "use tabs"})
    file = {"type": "file", "url": "a"}
    own = {"type": "text", "text": "x", "synthetic": True}
    ((result,), _) = opencode.run(chat({"type": "text", "text": "do it"}, file, own))
    added = {"type": "text", "text": "do it\n\nuse tabs"}
    assert result["output"]["parts"] == [added, file, own]
    assert opencode.seen()[0][2]["prompt"] == "do it"


FAILURES = {
    "exit status": "sys.exit(3)",
    "not JSON": "print('{')",
    "no object": "print('[1]')",
    "unknown key": 'print(\'{"decision": "deny"}\')',
    "another type": "print('{\"block\": true}')",
    "empty reason": 'print(\'{"block": ""}\')',
    "killed": "os.kill(os.getpid(), 9)",
}


@pytest.mark.parametrize("program", FAILURES.values(), ids=FAILURES)
def test_failed_bridge_lets_the_tool_run_and_says_so(
    opencode: OpenCode, program: str
) -> None:
    opencode.does(program)
    results, stderr = opencode.run(before(), after(), chat())
    expected = [before()[2], after()[2], chat()[2]]
    assert results == [{"output": one, "thrown": None} for one in expected]
    assert stderr.count("hookline: no verdict on ") == 3


@pytest.mark.parametrize("program", FAILURES.values(), ids=FAILURES)
def test_failed_bridge_blocks_where_a_policy_asks_for_it(
    opencode: OpenCode, program: str
) -> None:
    opencode.setup(*EVENTS, closed=True)
    opencode.does(program)
    results, _ = opencode.run(before(), after(), chat())
    problem = "hookline: no verdict on "
    assert results[0]["thrown"].startswith(problem)
    assert results[1]["output"]["output"].startswith(problem)
    assert "hi\n" not in json.dumps(results[1]["output"]["metadata"])
    assert results[2]["thrown"].startswith(problem)


@pytest.mark.parametrize("closed", [False, True])
def test_missing_program_is_a_failure_like_others(
    opencode: OpenCode, closed: bool
) -> None:
    opencode.setup(BEFORE, closed=closed)
    opencode.program.unlink()
    ((result,), stderr) = opencode.run(before())
    assert "ENOENT" in stderr
    assert bool(result["thrown"]) is closed


def test_bridge_that_never_answers_is_ended(opencode: OpenCode) -> None:
    """Its own end is what the test waits for: the pipe is closed by it."""
    opencode.setup(BEFORE)
    plugin = opencode.workplace.project / ".opencode/plugins/hookline.js"
    short = plugin.read_text().replace(f'"{BEFORE}": 60000', f'"{BEFORE}": 300')
    plugin.write_text(short)
    pipe = opencode.workplace.project / "alive"
    os.mkfifo(pipe)
    wait = f"held = open({str(pipe)!r}, 'w'); import time; time.sleep(600)"
    opencode.does(wait)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    os.set_blocking(reader, True)
    ((result,), stderr) = opencode.run(before())
    assert result["thrown"] is None
    assert "no answer in 300 ms" in stderr
    assert os.read(reader, 1) == b""
    os.close(reader)


def test_long_input_and_answer_pass(opencode: OpenCode) -> None:
    text = "ä" * 500_000
    opencode.does("print(json.dumps({'args': json.loads(given)['args']}))")
    ((result,), _) = opencode.run(before(command=text))
    assert result["output"]["args"] == {"command": text}


def test_plugin_and_bridge_agree(
    opencode: OpenCode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same with the real bridge and the user's own hooks."""
    monkeypatch.setenv("HOOKLINE_NO_RESIDENT", "1")
    hooks = {
        "BeforeTool": {
            "when": "tool_input.command.contains('rm')",
            "then": {"decision": "deny", "reason": "no rm"},
        },
        "AfterTool": {
            "when": "true",
            "then": {"hookSpecificOutput": {"additionalContext": "seen"}},
        },
        "BeforeAgent": {
            "when": "true",
            "then": {"hookSpecificOutput": {"additionalContext": "use tabs"}},
        },
    }
    settings = {
        "hooks": {
            event: [{"hooks": [{"type": "rule", "name": event, **rule}]}]
            for event, rule in hooks.items()
        }
    }
    own = opencode.workplace.home / ".config/hookline/settings.json"
    own.parent.mkdir(parents=True)
    own.write_text(json.dumps(settings))
    opencode.program = Path(sys.executable).with_name("hookline")
    opencode.setup(*EVENTS)
    results, stderr = opencode.run(before(command="rm x"), before(), after(), chat())
    assert stderr == ""
    assert [one["thrown"] for one in results] == ["no rm", None, None, None]
    assert results[1]["output"] == before()[2]
    assert results[2]["output"]["output"] == "hi\n\n\nseen"
    assert results[3]["output"]["parts"][0]["text"] == '"please work"\n\nuse tabs'
