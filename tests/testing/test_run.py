"""Hooktest cases run for real: what passes, and how each problem is reported."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hookline.testing.cases import read_file
from hookline.testing.run import CaseResult, run_case, run_cases

HOOK = """
import os, sys, json
from urllib.request import urlopen
from hookline.script import *
from hookline.script import run

def check(event):
    said = event.get("tool_input", {})
    if said.get("do") == "block": return block("not <this>")
    if said.get("do") == "stop": return stop("enough")
    if said.get("do") == "ask": return ask("may I?")
    if said.get("do") == "change": return modify_input(path="/x")
    if said.get("do") == "context": return add_context("more")
    if said.get("do") == "crash": raise ValueError("boom")
    if said.get("do") == "write": open("out.txt", "w").write(os.getcwd())
    if said.get("do") == "env": return system_message(os.environ.get("LEVEL", "none"))
    if said.get("do") == "session": return system_message(event["session_id"])
    if said.get("do") == "count":
        open("count", "a").write("x")
        return system_message(str(os.path.getsize("count")))
    if said.get("do") == "call": urlopen(said["url"], b"hello").read()
    if event["hook_event_name"] == "BeforeModel":
        return modify_request(model="other")

run(check)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "guard.py").write_text(HOOK)
    return tmp_path


async def run_text(folder: Path, case: str, head: str = "") -> CaseResult:
    file = folder / "guard.hooktest.toml"
    file.write_text(f'event = "BeforeTool"\n{head}\n[[case]]\n{case}\n')
    read = read_file(file)
    return await run_case(read, read.cases[0])


@pytest.mark.parametrize(
    "case",
    [
        "",
        'tool_input = { do = "block" }\nexpect = "block"\nmessage = "^not <this>$"',
        'tool_input = { do = "stop" }\nexpect = "stop"\nmessage = "enough"',
        'tool_input = { do = "ask" }\nexpect = "ask"\nmessage = "may I"',
        (
            'tool_input = { do = "change", a = 1 }\n'
            'changed = { do = "change", a = 1, path = "/x" }'
        ),
        'tool_input = { do = "context" }\ncontext = "^more$"',
        'context = ""\nunchanged = true',
        'tool_input = { do = "crash" }\nfails = true\nmessage = "ValueError: boom"',
        'tool_input = { do = "write" }\nwrote = { "out.txt" = "^{cwd}$" }',
        'absent = ["out.txt"]',
        'tool_input = { do = "env" }\nenv = { LEVEL = "9" }\nmessage = "^9$"',
        'tool_input = { do = "session" }\nsession_id = "s9"\nmessage = "^s9$"',
        'tool_input = { do = "count" }\nbefore = [{}, {}]\nmessage = "^3$"',
        'event = "BeforeModel"\nchanged = { model = "other" }',
        (
            'event = "BeforeModel"\n'
            'output = { hookSpecificOutput = { llm_request = { model = "other" } } }'
        ),
        'files = { "a/b" = "x" }\nlinks = { c = "a/b" }\nwrote = { c = "^x$" }',
        'setup = "echo 1 > one"\nafter = "cp one two"\nwrote = { two = "1" }',
        (
            'server = { body = "ok" }\nreceived = "^POST /hook hello$"\n'
            'tool_input = { do = "call", url = "{server}/hook" }'
        ),
        'server = { }\nreceived = ""',
    ],
)
async def test_case_passes_when_all_is_as_expected(folder: Path, case: str) -> None:
    result = await run_text(folder, case)
    assert result.problems == ()


@pytest.mark.parametrize(
    ("case", "problem"),
    [
        ('tool_input = { do = "block" }', "expected allow, got block: not <this>"),
        ('expect = "block"', "expected block, got allow"),
        (
            'tool_input = { do = "block" }\nexpect = "block"\nmessage = "else"',
            "message: expected something like 'else', got 'not <this>'",
        ),
        ('tool_input = { do = "crash" }', "guard failed: exited with status 1"),
        ('tool_input = { do = "crash" }', "ValueError: boom"),
        ("fails = true", "expected the hook to fail"),
        ('tool_input = { do = "context" }\ncontext = ""', "context: expected nothing"),
        (
            'tool_input = { do = "change" }\nchanged = { do = "change", path = "/y" }',
            '-  "path": "/y"\n+  "path": "/x"',
        ),
        ('changed = { path = "/y" }', '-  "path": "/y"'),
        ('tool_input = { do = "change" }\nunchanged = true', "expected no change"),
        (
            'event = "BeforeModel"\noutput = { decision = "block" }',
            '-  "decision": "block"',
        ),
        ('wrote = { "out.txt" = "x" }', "No such file"),
        ('tool_input = { do = "write" }\nabsent = ["out.txt"]', "out.txt exists"),
        ('setup = "echo no; exit 3"', "setup exited with 3: no"),
        ('files = { "../../x" = "" }', "outside the scratch folder"),
        ('server = { }\nreceived = "x"', "received: expected something like 'x'"),
    ],
)
async def test_case_fails_and_says_why(folder: Path, case: str, problem: str) -> None:
    result = await run_text(folder, case)
    assert any(problem in found for found in result.problems), result.problems


async def test_crashed_hook_fails_the_case_although_an_agent_would_go_on(
    folder: Path,
) -> None:
    """Fail-open is right for agents, but would let every such test pass."""
    result = await run_text(folder, 'tool_input = { do = "crash" }\nexpect = "allow"')
    assert not result.passed


async def test_two_hooks_run_as_a_chain(folder: Path) -> None:
    (folder / "first.py").write_text(
        "from hookline.script import modify_input, run\n"
        "run(lambda event: modify_input(do='block'))\n"
    )
    head = 'hook = ["first.py", "guard.py"]\nsequential = true'
    result = await run_text(folder, 'expect = "block"', head)
    assert result.problems == ()


async def test_hook_may_be_a_shell_script(tmp_path: Path) -> None:
    (tmp_path / "guard.sh").write_text("echo no >&2; exit 2\n")
    result = await run_text(tmp_path, 'expect = "block"\nmessage = "^no$"')
    assert result.problems == ()


async def test_settings_file_is_fired_as_a_whole(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text(
        '{"hooks": {"BeforeTool": [{"matcher": "write", "hooks": '
        '[{"type": "command", "command": "echo no >&2; exit 2"}]}]}}'
    )
    head = 'settings = "s.json"'
    blocked = 'tool = "write_file"\nexpect = "block"'
    assert (await run_text(tmp_path, blocked, head)).problems == ()
    missed = await run_text(tmp_path, 'tool = "read"\nexpect = "block"', head)
    assert any("no hook ran" in problem for problem in missed.problems)


async def test_cases_run_apart_from_each_other(folder: Path) -> None:
    file = folder / "guard.hooktest.toml"
    case = '[[case]]\ntool_input = { do = "count" }\nmessage = "^1$"\n'
    file.write_text('event = "BeforeTool"\n' + case * 4)
    results = [result async for result in run_cases([read_file(file)], jobs=4)]
    assert [result.problems for result in results] == [(), (), (), ()]


async def test_nothing_is_left_in_the_temporary_folder(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    await run_text(folder, 'tool_input = { do = "write" }')
    assert list(scratch.iterdir()) == []


RULE_TEST = """
rule = "{name}"
event = "BeforeTool"
tool = "write_file"

[[case]]
links = {{ "notes.txt" = ".env" }}
tool_input = {{ path = "notes.txt" }}
expect = "block"

[[case]]
tool_input = {{ path = "fine.txt" }}
"""


@pytest.mark.parametrize(("name", "passed"), [("no-env", True), ("noenv", False)])
async def test_a_rule_of_the_settings_is_tested_by_its_name(
    tmp_path: Path, name: str, passed: bool
) -> None:
    """Issue 13.1: alone, and in a scratch folder as scripts are."""
    folder = tmp_path / ".hookline"
    folder.mkdir()
    rule = {"type": "rule", "name": "no-env", "when": "tool_input.path.glob('**/.env')"}
    other = {"type": "command", "command": "exit 2", "name": "other"}
    settings = {"hooks": {"BeforeTool": [{"hooks": [rule, other]}]}}
    (folder / "settings.json").write_text(json.dumps(settings))
    test = folder / "rule.hooktest.toml"
    test.write_text(RULE_TEST.format(name=name))
    results = [one async for one in run_cases([read_file(test)])]
    assert [one.passed for one in results] == [passed, passed]
    if not passed:
        assert "did you mean 'no-env'?" in results[0].problems[0]
    assert not (tmp_path / "notes.txt").exists()
