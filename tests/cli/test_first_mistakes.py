"""Issue 17: the first mistakes of a hook author, and what each is told to do next.

The mistakes of one table are made in one new project, each in a hook of its own: GUARD
stands for its name, and PROJECT for the folder. A command is run there as a person
would run it, and the text that it prints about the hook holds the sentence.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

import pytest

from hookline import Config
from hookline.settings.lint import check_file
from tests.support.project import Project

from .bench import Bench

SCRIPT = ".hookline/GUARD.sh"
MODULE = ".hookline/GUARD.py"


class Mistake(NamedTuple):
    """What the author wrote, the command, and what it says."""

    hook: dict[str, Any]
    files: dict[str, str]
    command: str
    sentence: str
    outcome: str = ""


def command(line: str, **more: Any) -> dict[str, Any]:
    return {"type": "command", "command": line, **more}


def runs(script: str, file: str = SCRIPT) -> tuple[dict[str, Any], dict[str, str]]:
    """A script that the settings run as a program."""
    return command(file), {file: script}


def shell(script: str) -> tuple[dict[str, Any], dict[str, str]]:
    """A script that the settings run by bash."""
    return command(f"bash {SCRIPT}"), {SCRIPT: script}


def python(
    source: str, function: str = "GUARD:guard"
) -> tuple[dict[str, Any], dict[str, str]]:
    return {"type": "python", "function": function}, {MODULE: source}


def matches(matcher: str) -> tuple[dict[str, Any], dict[str, str]]:
    return {**command("exit 2"), "matcher": matcher}, {}


OK, NO = "failed ", "block "
BLOCKS = "exit 2 blocks; exit 1 counts as a failure"
BY_ITSELF = "exit 2 blocked here, but not by the script's decision: "
CRLF = "has Windows line ends (CRLF): convert it with dos2unix, or sed -i 's/\\r$//'"
TERMINAL = 'hooks have no terminal: answer {"decision": "ask"} to ask a person'
STDERR = "with exit 2 the reason is read from stderr, not from stdout"
JSON = "is not valid JSON: "
DEEP = "{'a': 1}"

FIRED = {
    "exit 1 meant as a block": Mistake(*shell("exit 1"), "fire", BLOCKS, OK),
    "exit 1 with an answer": Mistake(
        *shell('echo \'{"decision": "block"}\'; exit 1'),
        *("fire", f"{BLOCKS}, and its stdout is not read", OK),
    ),
    "exit 3": Mistake(*shell("exit 3"), "fire", "exit 3 counts as a failure", OK),
    "killed in the script": Mistake(
        *shell("bash -c 'kill -9 $$'"), "fire", "status 137 is 128 + 9: SIGKILL", OK
    ),
    "reason on stdout": Mistake(*shell("echo no; exit 2"), "fire", STDERR, NO),
    "answer with exit 2": Mistake(
        *shell("echo '{}'; echo no >&2; exit 2"), "fire", STDERR, NO
    ),
    "reason with exit 0": Mistake(
        *shell("echo no >&2"), "fire", "stderr, ignored with exit 0: hook 'GUARD': no"
    ),
    "CRLF after #!": Mistake(
        *runs("#!/bin/sh\r\nexit 2\r\n"), "fire", f"'{SCRIPT}' {CRLF}", OK
    ),
    "CRLF in Python after #!": Mistake(
        *runs("#!/usr/bin/env python3\r\n", MODULE), "fire", f"'{MODULE}' {CRLF}", OK
    ),
    "CRLF in bash": Mistake(
        *shell("echo no >&2\r\nexit 2\r\n"), "fire", f"{BY_ITSELF}'{SCRIPT}' {CRLF}", NO
    ),
    "CRLF, checked": Mistake(*runs("#!/bin/sh\r\n"), "check", f"'{SCRIPT}' {CRLF}"),
    "program of the folder": Mistake(
        *runs("#!/bin/sh\n", "GUARD.sh"),
        *("fire", "'GUARD.sh' is not on the PATH: did you mean './GUARD.sh'?"),
    ),
    "missing command": Mistake(
        *(command("GUARDIAN --x"), {}, "fire"),
        "'GUARDIAN' is not installed, or not on the PATH that the hook gets",
    ),
    "missing interpreter": Mistake(
        *runs("#!/usr/bin/env nosuch\n"),
        *("fire", f"'nosuch', the interpreter of '{SCRIPT}', is not installed"),
    ),
    "missing interpreter, checked": Mistake(
        *runs("#!/opt/nosuch\n"),
        *("check", f"'/opt/nosuch', the interpreter of '{SCRIPT}', is not installed"),
    ),
    "Python without #!": Mistake(
        *runs("import sys\nsys.exit(2)\n", MODULE),
        *(
            "fire",
            f"'{MODULE}' has no #! line, so a shell would read it: start it with #!",
        ),
    ),
    "path from the wrong folder": Mistake(
        *(command("bash GUARD.sh"), {SCRIPT: ""}, "fire"),
        f"'GUARD.sh' does not exist in PROJECT: did you mean '{SCRIPT}'?",
    ),
    "python3 missing.py": Mistake(
        *(command("python3 GUARD.py"), {}, "fire"),
        *(f"{BY_ITSELF}'GUARD.py' does not exist in PROJECT", NO),
    ),
    "python3 missing.py, checked": Mistake(
        command("python3 GUARD.py"), {}, "check", "'GUARD.py' does not exist"
    ),
    "usage error": Mistake(
        *shell("echo 'usage: x' >&2; exit 2"), "fire", "a usage error exits with 2", NO
    ),
    "syntax error in bash": Mistake(
        *shell("if true; then"), "fire", "the shell exits with 2 at a syntax error", NO
    ),
    "terminal, then exit 2": Mistake(
        *shell("read x < /dev/tty || exit 2"), "fire", TERMINAL, NO
    ),
    "crash of a Python script": Mistake(
        *(command(f"python3 {MODULE}"), {MODULE: "{}['x']"}, "fire"),
        *('the script crashed, which is a failure: "onError": "block" blocks then', OK),
    ),
    "name of another tool": Mistake(
        *matches("edit"), "fire", "'edit' does not match tool_name 'write_file'"
    ),
    "terminal": Mistake(*shell("read x < /dev/tty"), "fire", TERMINAL, OK),
    "question": Mistake(
        *(command("python3 -c 'input(); input()'"), {}, "fire", TERMINAL)
    ),
    "question without an answer": Mistake(
        *(command("printf 'Go on? [y/N] '; sleep 60", timeout=700), {}, "fire"),
        f"its output ends like a question, and {TERMINAL}",
    ),
    "timeout in seconds": Mistake(
        *(command("sleep 60", timeout=5), {}, "fire"),
        "timeout is in milliseconds: for 5 s write 5000",
    ),
    "timeout in seconds, checked": Mistake(
        *(command("true", timeout=5), {}, "check"), "for 5 s write 5000"
    ),
    "text before the answer": Mistake(
        *shell('echo debug; echo \'{"decision": "block"}\''),
        *("fire", "print one JSON object and nothing else", "ok "),
    ),
    "single quotes": Mistake(
        *shell(f'echo "{DEEP}"'),
        "fire",
        "JSON has double quotes: in Python, use json.dumps",
    ),
    "unknown decision": Mistake(
        *shell('echo \'{"decision": "blocked"}\''),
        *("fire", "decision: expected one of allow, approve, ask, block, deny, got"),
    ),
    "misspelt answer": Mistake(
        *shell("echo '{\"hookSpecficOutput\": {}}'"),
        *("fire", "did you mean 'hookSpecificOutput'?"),
    ),
    "missing module": Mistake(
        *({"type": "python", "function": "GUARD:guard"}, {}, "fire"),
        "No module named 'GUARD': put it into .hookline, or install it for",
    ),
    "module with .py": Mistake(
        *python("", "GUARD.py:guard"), "fire", "name the module without .py"
    ),
    "misspelt function": Mistake(
        *python("def guard(event): ...\n", "GUARD:gaurd"),
        *("fire", f"PROJECT/{MODULE} has no function 'gaurd': did you mean 'guard'?"),
    ),
    "run not called, checked": Mistake(
        *(command(f"python3 {MODULE}"), {MODULE: "from hookline.script import run"}),
        *("check", f"'{MODULE}' imports hookline.script and never calls run()"),
    ),
    "misspelt function, checked": Mistake(
        *python("def guard(event): ...\n", "GUARD:gaurd"),
        *("check", f"{MODULE} has no function 'gaurd': did you mean 'guard'?"),
    ),
    "syntax error in Python": Mistake(
        *python("x = 1\ndef guard(event:\n"), "fire", f"(PROJECT/{MODULE}, line 2)"
    ),
    "syntax error in Python, checked": Mistake(
        *python("x = 1\ndef guard(event:\n"),
        "check",
        f"{MODULE}, line 2: '(' was never",
    ),
    "exception": Mistake(
        *python("def guard(event):\n    event['nothing']\n"),
        *("fire", f'Traceback (most recent call last):\n  File "PROJECT/{MODULE}"'),
    ),
    "text returned": Mistake(
        *python("def guard(event): return 'no'\n"),
        *("fire", 'expected None or a dict, such as {"decision": "block"'),
    ),
    "glob": Mistake(*matches("write_*"), "check", "did you mean 'write_.*'?"),
    "glob that does not match": Mistake(
        *matches("edit_*"), "fire", "not a glob: did you mean 'edit_.*'?"
    ),
    "glob that does not match, explained": Mistake(
        *matches("edit_*"), "explain", "not a glob: did you mean 'edit_.*'?"
    ),
    "files as a matcher": Mistake(
        *matches("*.py"), "check", "compared with names of tools, not of files"
    ),
    "permission rule as a matcher": Mistake(
        *matches("Bash(rm *)"), "check", "did you mean 'Bash'? Its input is for 'if'"
    ),
    "list as a matcher": Mistake(
        *matches("edit,write_file"), "fire", "did you mean 'edit|write_file'?"
    ),
    "invalid expression": Mistake(
        *matches("write_(file"), "check", "invalid regular expression (missing ),"
    ),
    "name of another host": Mistake(
        *matches("Write"),
        *("fire", '\'Write\' is its name for "dialect": "claude": set that on the'),
    ),
    "wrong case": Mistake(*matches("WRITE"), "fire", "upper and lower case count"),
    "misspelt field of a rule": Mistake(
        *({"type": "rule", "when": "tool_input.pth == 'a'"}, {}, "check"),
        "did you mean 'path'?",
    ),
    "misspelt key": Mistake(
        *(command("true", on_error="block"), {}, "fire"),
        "unknown key 'on_error': did you mean 'onError'?",
    ),
    "misspelt type": Mistake(
        *({"type": "comand", "command": "x"}, {}, "fire"), "did you mean 'command'?"
    ),
}


def settle(bench: Bench, text: str) -> None:
    folder = bench.project / ".hookline"
    folder.mkdir(exist_ok=True)
    (folder / "settings.json").write_text(text)
    bench.env["HOOKLINE_TRUST"] = "all"


def named(name: str, value: Any) -> Any:
    """Text or settings with the name of a hook in the place of GUARD."""
    return json.loads(json.dumps(value).replace("GUARD", name))


def write(bench: Bench, mistakes: dict[str, Mistake]) -> None:
    groups = []
    for key, mistake in mistakes.items():
        name = slug(key)
        hook = {"name": name, **named(name, mistake.hook)}
        matcher = hook.pop("matcher", None)
        groups.append({"hooks": [hook]} | ({"matcher": matcher} if matcher else {}))
        for file, text in named(name, mistake.files).items():
            path = bench.project / file
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(text.encode())
            path.chmod(0o755)
    settle(bench, json.dumps({"hooks": {"BeforeTool": groups}}))


def slug(key: str) -> str:
    return re.sub(r"\W+", "_", key)


def told(bench: Bench, command: str, *more: str) -> str:
    """What a person reads, with the folder of the project as ``PROJECT``."""
    event = ("BeforeTool", "--tool", "write_file", "--tool-input", '{"path": "a"}')
    done = bench.run(command, *(() if command == "check" else event), *more)
    text = done.stdout + done.stderr
    return text.replace(str(bench.project), "PROJECT")


Kind = tuple[bool, str]


def kind_of(mistake: Mistake) -> Kind:
    """Whether its hook is never started, and the command that tells of it."""
    return "matcher" in mistake.hook, mistake.command


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> dict[Kind, str]:
    """What the commands say, each about all mistakes of its kind."""
    found: dict[Kind, str] = {}
    for kind in dict.fromkeys(map(kind_of, FIRED.values())):
        bench = Bench(tmp_path_factory.mktemp("mistakes"))
        write(bench, {key: one for key, one in FIRED.items() if kind_of(one) == kind})
        found[kind] = told(bench, kind[1])
    return found


@pytest.mark.parametrize("key", FIRED)
def test_a_mistake_in_a_hook_is_told_with_a_next_step(
    printed: dict[Kind, str], key: str
) -> None:
    mistake, name = FIRED[key], slug(key)
    text, sentence = printed[kind_of(mistake)], named(name, mistake.sentence)
    lines = text.splitlines()
    if mistake.command == "fire" and "\n" not in sentence:
        # Of this hook, or of the settings.
        lines = [one for one in lines if name in one or one.startswith("hookline: ")]
    assert sentence in "\n".join(lines), text
    outcomes = (line.strip() for line in lines if f" {name} (" in line)
    assert all(line.startswith(mistake.outcome) for line in outcomes), text


SETTINGS = {
    "comma missing": ('{"hooks": {}\n "enableHooks": true}', 2, "a comma is missing"),
    "two commas": (
        "{,}",
        1,
        "one comma too many (trailing commas and comments are fine",
    ),
    "# comment": (
        "{\n# no\n}",
        2,
        "comments start with //; they and trailing commas are",
    ),
    "single quotes": ("{'hooks': {}}", 1, "texts stand in double quotes"),
    "True": ('{"enableHooks": True}', 1, "write true, false or null"),
    "wrong bracket": ('{"hooks": {"BeforeTool": [{}}', 1, "']' is missing before this"),
    "bracket open": ('{"hooks": {', 1, "a bracket or a quote is not closed"),
    "backslash": ('{"a": "\\_"}', 1, "a backslash in a text is written twice"),
    "empty": ("", 1, "it is empty: write {} for no settings"),
    "event name": ('{"hooks": {"beforetool": []}}', 1, "did you mean 'BeforeTool'?"),
    "event outside": ('{"BeforeTool": []}', 1, "events belong into 'hooks'"),
    "key": ('{"hookConfig": {}}', 1, "did you mean 'hooksConfig'?"),
    "group key": (
        '{"hooks": {"BeforeTool": [\n{"machter": "x",\n "hooks": []}]}}',
        *(2, "unknown key 'machter': did you mean 'matcher'?"),
    ),
    "hook without a group": (
        '{"hooks": {"BeforeTool": [{"type": "command", "command": "x"}]}}',
        *(1, 'write {"hooks": [...]} around the hook'),
    ),
}


@pytest.mark.parametrize(("text", "line", "sentence"), SETTINGS.values(), ids=SETTINGS)
def test_a_mistake_in_settings_is_told_with_its_place(
    project: Project, text: str, line: int, sentence: str
) -> None:
    """Both where they are loaded, and by ``hookline check``."""
    file = project.write(".hookline/settings.json", text)
    settings = Config.load(project.folder).settings
    loaded = "\n".join([*map(str, settings.errors), *settings.warnings])
    assert str(file) in loaded
    assert sentence in loaded
    checked = "\n".join(map(str, check_file(file).findings))
    assert f"{file}:{line}: error: " in checked
    assert sentence in checked


def test_comments_and_trailing_commas_are_fine(project: Project) -> None:
    text = '{"hooks": {"BeforeTool": [], /* x */}, // y\n}'
    assert check_file(project.write(".hookline/settings.json", text)).findings == ()


def test_output_over_the_limit_is_told_with_the_limit(bench: Bench) -> None:
    loud = command("head -c 2000 /dev/zero | tr '\\0' x")
    hooks = {"BeforeTool": [{"hooks": [loud]}]}
    settle(bench, json.dumps({"hooks": hooks, "hooksConfig": {"maxOutputBytes": 1024}}))
    sentence = (
        "more than maxOutputBytes (1,024 bytes): the output is ignored: print less"
    )
    assert sentence in told(bench, "fire")


def test_a_hint_is_in_json_and_in_the_journal(bench: Bench) -> None:
    write(bench, {"guard": FIRED["exit 1 meant as a block"]})
    event = ("BeforeTool", "--tool", "write_file", "--record")
    assert bench.json("fire", *event)["hooks"][0]["warnings"] == [BLOCKS]
    assert BLOCKS in bench.run("log", "1").stdout


OFF = {
    "not trusted": ({}, "", "run 'hookline trust' in PROJECT to review and approve it"),
    "disabled": (
        {"hooksConfig": {"disabled": ["guard"]}},
        *("all", "guard: listed in hooksConfig.disabled in PROJECT/.hookline/"),
    ),
    "switched off": (
        *({"enableHooks": False}, "all"),
        "guard: enableHooks is false in PROJECT/.hookline/settings.json",
    ),
}


@pytest.mark.parametrize(("more", "trust", "sentence"), OFF.values(), ids=OFF)
def test_a_hook_that_does_not_run_is_told(
    bench: Bench, more: dict[str, Any], trust: str, sentence: str
) -> None:
    hooks = [{"name": "guard", **command("exit 2")}]
    settle(bench, json.dumps({"hooks": {"BeforeTool": [{"hooks": hooks}]}, **more}))
    bench.env["HOOKLINE_TRUST"] = trust
    assert sentence in told(bench, "fire")
