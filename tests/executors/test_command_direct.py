"""A command that needs no shell ends the same with bash and without it."""

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from hookline.executors.command import default_shell, direct_start, shell_argv
from hookline.processes.process import ProcessOutcome, run_process
from hookline.processes.spawn import ProcessSpec

BASH = default_shell("/")
pytestmark = pytest.mark.skipif(not BASH.endswith("bash"), reason="needs bash")

FILES = {
    "args.sh": '#!/bin/bash\nprintf "%s\\n" "$0" "$#" "$@"; cat',
    "noshebang": 'echo "ran as $0 by ${BASH_VERSION:+bash}"',
    "blocks.sh": "#!/bin/sh\necho no >&2; exit 2",
    "killed.sh": "#!/bin/sh\nkill -9 $$",
    "badshebang": "#!/no/such/interpreter\n",
    "sub/tool": "#!/bin/sh\necho tool $PWD",
}

COMMANDS = [
    "./args.sh",
    "./args.sh one two=2 --three=3 4.5 a:b a@b a%b a,b a+b",
    "  ./args.sh   spaced   out  ",
    './args.sh "two words" "" x"y"z',
    "./args.sh $HOOKLINE_PROJECT_DIR/x",
    './args.sh "$CLAUDE_PROJECT_DIR/a b" ${GEMINI_PROJECT_DIR}',
    "$HOOKLINE_PROJECT_DIR/args.sh",
    '"$HOOKLINE_PROJECT_DIR"/args.sh q',
    "sub/tool",
    "tool",
    "./noshebang",
    "./badshebang",
    "./blocks.sh",
    "./killed.sh",
    "./missing",
    "no-such-program",
    "sub",
    "./sub",
    "plain-file",
    "./plain-file",
    "cat",
    "env",
    "printenv HOOKLINE_PROJECT_DIR PWD SHLVL _",
    "true",
    "echo hello",
    "test -d sub",
    "pwd",
    "cd sub",
    "exit 3",
    "A=1 env",
    '"ec"ho quoted',
    "../outside",
    "sleep 0",
]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "a project's $dir"
    folder.mkdir()
    for name, text in FILES.items():
        file = folder / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        file.chmod(0o755)
    (folder / "plain-file").write_text("echo never")
    return folder


def _environment(project: Path, **more: str) -> dict[str, str]:
    names = ("HOOKLINE", "LLXPRT", "GEMINI", "CLAUDE")
    dirs = {f"{name}_PROJECT_DIR": str(project) for name in names}
    path = f"{project}/sub:{os.environ['PATH']}"
    home = {"HOME": str(project), "PATH": path, "PWD": str(project)}
    return {**dirs, **home, "LANG": "C.UTF-8", **more}


async def _both_ways(
    command: str, project: Path, env: dict[str, str]
) -> tuple[ProcessOutcome, ProcessOutcome]:
    direct = direct_start(command, str(project), env)
    spec = ProcessSpec(
        argv=shell_argv(command, BASH),
        cwd=str(project),
        env=env,
        stdin=b'{"some": "input"}',
        timeout_s=60,
        max_output_bytes=1 << 20,
    )
    by_shell = await run_process(spec)
    without = await run_process(structs.replace(spec, direct=direct))
    return _comparable(by_shell), _comparable(without)


def _comparable(outcome: ProcessOutcome) -> ProcessOutcome:
    # env prints in the order of the environment, which may differ.
    lines = b"\n".join(sorted(outcome.stdout.split(b"\n")))
    return structs.replace(outcome, duration_ms=0.0, stdout=lines)


@pytest.mark.parametrize("command", COMMANDS)
async def test_plain_command_ends_the_same_with_and_without_bash(
    project: Path, command: str
) -> None:
    """protocol.md#process: leaving bash out makes no difference."""
    by_shell, without = await _both_ways(command, project, _environment(project))
    assert without == by_shell


@pytest.mark.parametrize(
    "more",
    [
        {"SHLVL": "3"},
        {"SHLVL": "999"},
        {"SHLVL": "x"},
        {"OLDPWD": "/"},
        {"OLDPWD": "/no/such/dir"},
        {"PWD": "/elsewhere"},
        {"LC_ALL": "no_SUCH.locale"},
        {"A.B": "odd name"},
        {"OPTIND": "7", "IFS": "x", "SECONDS": "5"},
        {"POSIXLY_CORRECT": "1"},
        {"BASH_FUNC_cat%%": "() { echo function; }"},
        {"SHELLOPTS": "xtrace"},
        {"PATH": ".:/usr/bin:/bin"},
        {"PATH": "/usr/bin:/bin:"},
        {"PATH": ""},
        {"_": "before"},
        {"HOOKLINE_PROJECT_DIR": ""},
    ],
    ids=str,
)
@pytest.mark.parametrize("command", ["env", "cat", "tool", "./args.sh a"])
async def test_environment_reaches_the_program_the_same(
    project: Path, command: str, more: dict[str, str]
) -> None:
    env = _environment(project, **more)
    by_shell, without = await _both_ways(command, project, env)
    assert without == by_shell


async def test_start_up_file_of_bash_is_still_read(project: Path) -> None:
    (project.parent / "startup").write_text("echo from the start-up file")
    env = _environment(project, BASH_ENV=str(project.parent / "startup"))
    by_shell, without = await _both_ways("cat", project, env)
    assert without == by_shell
    assert b"start-up file" in without.stdout


@pytest.mark.parametrize(
    ("command", "is_direct"),
    [
        ("./args.sh a", True),
        ("cat", True),
        ('"$HOOKLINE_PROJECT_DIR"/args.sh', True),
        ("true", False),
        ("cat | cat", False),
        ("cat; cat", False),
        ("cat *", False),
        ("cat ~", False),
        ("cat $HOME", False),
        ("cat `x`", False),
        ("cat 'x'", False),
        ("cat \\x", False),
        ("cat #x", False),
        ("cat\ncat", False),
        ("cat {a,b}", False),
        ("!cat", False),
        ("", False),
        ("   ", False),
        ("nowhere-to-be-found", False),
    ],
)
def test_only_plain_commands_are_started_without_bash(
    project: Path, command: str, is_direct: bool
) -> None:
    found = direct_start(command, str(project), _environment(project))
    assert (found is not None) is is_direct


@given(st.text(alphabet="ab$\"' {}_./-=;*~\\#&|", max_size=12))
def test_nothing_that_needs_bash_is_started_without_it(text: str) -> None:
    """The arguments are those that bash would pass."""
    env = {"PWD": "/", "PATH": "/usr/bin:/bin"}
    found = direct_start(f"cat {text}", "/", env)
    if found is not None:
        assert not set(text) & set("$'{};*~\\#&|")
        assert found.argv == ["cat", *_words_by_bash(text)]


def _words_by_bash(text: str) -> list[str]:
    printed = subprocess.run(
        ["bash", "-c", f"printf '%s\\0' {text}"], capture_output=True, check=True
    ).stdout
    words = printed.decode().split("\0")[:-1]
    return [] if words == [""] and '"' not in text else words


async def test_script_without_permission_is_reported_by_bash(project: Path) -> None:
    command = "./args.sh"
    env = _environment(project)
    before = direct_start(command, str(project), env)
    assert before is not None
    (project / "args.sh").chmod(stat.S_IRUSR)
    by_shell, without = await _both_ways(command, project, env)
    assert without == by_shell
    assert without.exit_code == 126


def test_program_is_searched_in_the_path_of_the_hook(project: Path) -> None:
    env = _environment(project, PATH=f"{project}/sub")
    found = direct_start("tool", str(project), env)
    assert found is not None
    assert found.path == f"{project}/sub/tool"
    assert direct_start("cat", str(project), env) is None
