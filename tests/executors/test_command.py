"""protocol.md#process: what a command hook's process gets."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.workshop import TOOL, Workshop


async def test_stdin_stdout_and_stderr_are_pipes(workshop: Workshop) -> None:
    kinds = (
        "import os,stat,json;"
        "json.dump([stat.S_ISFIFO(os.fstat(fd).st_mode) for fd in (0,1,2)],"
        "open('kinds.json','w'))"
    )
    await workshop.fire("BeforeTool", workshop.runs(f'{sys.executable} -c "{kinds}"'))
    assert (workshop.folder / "kinds.json").read_text() == "[true, true, true]"


async def test_a_hook_has_no_terminal(workshop: Workshop) -> None:
    hook = workshop.runs("(: < /dev/tty) 2>/dev/null && touch terminal; true")
    await workshop.fire("BeforeTool", hook)
    assert not workshop.ran("terminal")


async def test_stdin_is_one_json_object_and_then_its_end(workshop: Workshop) -> None:
    """HOOK-061."""
    await workshop.fire("BeforeTool", workshop.runs("cat > seen.json"))
    assert workshop.seen()["tool_input"] == TOOL["tool_input"]
    assert b"\n" not in (workshop.folder / "seen.json").read_bytes().strip()


async def test_a_hook_may_close_stdin_early(workshop: Workshop) -> None:
    given = {"tool_name": "t", "tool_input": {"content": "x" * 3_000_000}}
    hook = workshop.runs("exec 0<&-; sleep 0.05; echo fine")
    result = await workshop.fire("BeforeTool", hook, given=given)
    assert result.aggregated.success
    assert result.system_message == "fine"


async def test_a_big_input_arrives_whole(workshop: Workshop) -> None:
    content = "grün " * 800_000
    given = {"tool_name": "t", "tool_input": {"content": content}}
    await workshop.fire("BeforeTool", workshop.runs("cat > seen.json"), given=given)
    assert workshop.seen()["tool_input"]["content"] == content


@pytest.mark.parametrize(
    "name",
    [
        "PWD",
        "HOOKLINE_PROJECT_DIR",
        "LLXPRT_PROJECT_DIR",
        "GEMINI_PROJECT_DIR",
        "CLAUDE_PROJECT_DIR",
    ],
)
async def test_the_project_directory_is_in_the_environment(
    workshop: Workshop, name: str
) -> None:
    result = await workshop.fire("BeforeTool", workshop.runs(f"printenv {name}"))
    assert result.system_message == str(workshop.folder)


async def test_session_event_and_interpreter_are_in_the_environment(
    workshop: Workshop,
) -> None:
    hook = workshop.runs('echo "$HOOKLINE_SESSION_ID|$HOOKLINE_EVENT|$HOOKLINE_PYTHON"')
    result = await workshop.fire("BeforeTool", hook)
    assert result.system_message == f"s-1|BeforeTool|{sys.executable}"


async def test_the_hosts_environment_is_inherited_and_the_hooks_own_wins(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FROM_HOST", "host")
    monkeypatch.setenv("LEVEL", "host")
    hook = workshop.runs(
        'echo "$FROM_HOST $LEVEL $GEMINI_PROJECT_DIR"',
        env={"LEVEL": "strict", "GEMINI_PROJECT_DIR": "/mine"},
    )
    result = await workshop.fire("BeforeTool", hook)
    assert result.system_message == "host strict /mine"


async def test_the_command_runs_under_bash(workshop: Workshop) -> None:
    hook = workshop.runs('a=(x y); echo "${a[1]} $PWD"')
    result = await workshop.fire("BeforeTool", hook)
    assert result.system_message == f"y {workshop.folder}"


async def test_the_shell_key_names_another_shell(workshop: Workshop) -> None:
    shell = workshop.folder / "shell"
    shell.write_text('#!/bin/sh\necho "mine $1 $2"\n')
    shell.chmod(shell.stat().st_mode | stat.S_IXUSR)
    hook = workshop.runs("words", shell=str(shell))
    result = await workshop.fire("BeforeTool", hook)
    assert result.system_message == "mine -c words"


FOLDERS = [
    "dir with space",
    "it's",
    'say "hi"',
    "$HOME",
    "a;touch pwned",
    "`touch pwned`",
]
COMMANDS = {
    "unquoted": "sh $CLAUDE_PROJECT_DIR/hook.sh",
    "in double quotes": 'sh "$GEMINI_PROJECT_DIR/hook.sh"',
    "in braces": "sh ${LLXPRT_PROJECT_DIR}/hook.sh",
    "in quoted braces": 'sh "${HOOKLINE_PROJECT_DIR}"/hook.sh',
    "in a substitution": 'echo "$(sh $CLAUDE_PROJECT_DIR/hook.sh)"',
    "after an apostrophe in a comment": "# it's\nsh $CLAUDE_PROJECT_DIR/hook.sh",
    "beside single quotes": "sh $CLAUDE_PROJECT_DIR/'hook.sh'",
}


@pytest.mark.parametrize("name", FOLDERS)
@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
async def test_project_dir_works_for_any_name_and_nothing_in_it_is_executed(
    tmp_path: Path, name: str, command: str
) -> None:
    folder = tmp_path / name
    folder.mkdir()
    (folder / "hook.sh").write_text("echo ran\n")
    workshop = Workshop(folder)
    result = await workshop.fire("BeforeTool", workshop.runs(command))
    assert result.system_message == "ran"
    assert not any("pwned" in files for _, _, files in os.walk(tmp_path))


@pytest.mark.parametrize(
    ("command", "printed"),
    [
        ("echo '$CLAUDE_PROJECT_DIR'", "$CLAUDE_PROJECT_DIR"),
        (r"echo \$CLAUDE_PROJECT_DIR", "$CLAUDE_PROJECT_DIR"),
        ("cat <<END\n$CLAUDE_PROJECT_DIR\nEND", "{folder}"),
        ("cat <<'END'\n$CLAUDE_PROJECT_DIR\nEND", "$CLAUDE_PROJECT_DIR"),
        ("cat <<< $CLAUDE_PROJECT_DIR", "{folder}"),
        ("echo $'a\\'b' $CLAUDE_PROJECT_DIR", "a'b {folder}"),
        ('echo $(echo "x") ${CLAUDE_PROJECT_DIR}', "x {folder}"),
        ("echo $CLAUDE_PROJECT_DIRECTORY.", "."),
        ("echo `echo $CLAUDE_PROJECT_DIR`", "{folder}"),
    ],
)
async def test_project_dir_keeps_the_meaning_of_shell_quotes(
    workshop: Workshop, command: str, printed: str
) -> None:
    result = await workshop.fire("BeforeTool", workshop.runs(command))
    assert result.system_message == printed.format(folder=workshop.folder)


class Loud:
    def __repr__(self) -> str:
        raise RuntimeError("no")


class Quiet:
    def __repr__(self) -> str:
        return "<quiet>"


CYCLE: list[Any] = []
CYCLE.append(CYCLE)
DEEP: Any = []
for _ in range(5000):
    DEEP = [DEEP]

HARD: list[tuple[str, Any, Any]] = [
    ("lone surrogate", "a\ud800b", "a\ufffdb"),
    ("nan", float("nan"), None),
    ("infinity", [float("inf")], [None]),
    ("bytes", b"gr\xc3\xbcn\xff", "grün\ufffd"),
    ("set", {1}, [1]),
    ("tuple", (1, (2,)), [1, [2]]),
    ("number keys", {1: {2.5: "x"}}, {"1": {"2.5": "x"}}),
    ("odd keys", {None: 1, True: 2, (1,): 3}, {"null": 1, "true": 2, "(1,)": 3}),
    ("bytes keys", {b"k\xff": 1}, {"k\ufffd": 1}),
    ("surrogate keys", {"\udfff": 1}, {"\ufffd": 1}),
    ("object", Quiet(), "<quiet>"),
    ("raising repr", Loud(), "<unprintable Loud>"),
    ("cycle", CYCLE, ["<cycle>"]),
    ("big number", 10**5000, 10**5000),
]


@pytest.mark.parametrize(
    ("value", "seen"), [c[1:] for c in HARD], ids=[c[0] for c in HARD]
)
async def test_no_input_is_too_hard_to_encode(
    workshop: Workshop, value: Any, seen: Any
) -> None:
    from hookline.protocol.jsontext import decode

    given = {"tool_name": "t", "tool_input": {"value": value}}
    hook = workshop.runs("cat > seen.json; exit 2")
    result = await workshop.fire("BeforeTool", hook, given=given)
    assert result.blocked
    written = decode((workshop.folder / "seen.json").read_bytes())
    # Compared as values: printing a number of this size is what CPython refuses.
    assert (written["tool_input"]["value"] == seen) is True


class Unreadable(Mapping[str, Any]):
    def __getitem__(self, key: str) -> Any:
        return ".env"

    def __iter__(self) -> Any:
        raise RuntimeError("trap")

    def __len__(self) -> int:
        return 1


@pytest.mark.parametrize(
    "value",
    [DEEP, Unreadable(), {"1": "a", 1: "b"}],
    ids=["too deep", "unreadable mapping", "keys that become one"],
)
async def test_an_input_that_cannot_be_shown_as_a_whole_is_blocked_unseen(
    workshop: Workshop, value: Any
) -> None:
    """protocol.md#process, issue 12.1: what no guard has seen does not run."""
    given = {"tool_name": "t", "tool_input": {"value": value}}
    hook = workshop.runs("cat > seen.json")
    result = await workshop.fire("BeforeTool", hook, given=given)
    assert result.blocked
    assert not (workshop.folder / "seen.json").exists()


async def test_a_mapping_with_lying_methods_is_seen_as_its_base(
    workshop: Workshop,
) -> None:
    class Trap(dict[str, Any]):
        def items(self) -> Any:
            raise RuntimeError("trap")

    given = {"tool_name": "t", "tool_input": Trap(a=1)}
    await workshop.fire("BeforeTool", workshop.runs("cat > seen.json"), given=given)
    assert workshop.seen()["tool_input"] == {"a": 1}


async def test_the_callers_objects_are_not_mutated(workshop: Workshop) -> None:
    tool_input = {"path": "a.txt", "list": [1]}
    hook = workshop.says({"hookSpecificOutput": {"tool_input": {"path": "b.txt"}}})
    system = workshop.config(workshop.settings("BeforeTool", hook)).get_hook_system()
    assert system is not None
    async with system as hooks:
        result = await hooks.event_handler.fire_before_tool_event("t", tool_input)
    assert tool_input == {"path": "a.txt", "list": [1]}
    assert result.final_output is not None
    assert result.final_output.modified_tool_input == {"path": "b.txt", "list": [1]}


def test_the_test_process_itself_sees_no_hookline_depth() -> None:
    """Guards the tests above: a nested run would change what hooks are given."""
    assert "HOOKLINE_DEPTH" not in os.environ
