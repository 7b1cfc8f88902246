"""The files that ``check`` looks for in a command."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookline.shelltext.parse import executed_files

PROJECT = Path("/my project/$x")


@pytest.mark.parametrize(
    ("command", "programs", "scripts"),
    [
        ("true", [], []),
        ("./x.sh", ["./x.sh"], []),
        ("./x.sh --flag > /dev/null 2>&1", ["./x.sh"], []),
        ("LEVEL=1 exec hooks/x a b", ["hooks/x"], []),
        ("'./my hook.sh' a", ["./my hook.sh"], []),
        ("python3 x.py", [], ["x.py"]),
        ("python3.11 -u -W error dir/x", [], ["dir/x"]),
        ("/usr/bin/python3 x.py", [], ["x.py"]),
        ("$HOOKLINE_PYTHON x.py", [], ["x.py"]),
        ('"${HOOKLINE_PYTHON}" x.py', [], ["x.py"]),
        ("python3 -m acme.hook", [], []),
        ("python3 -c 'import a/b.py'", [], []),
        ("bash -eu hooks/x.sh", [], ["hooks/x.sh"]),
        ("bash -c './x.sh'", [], []),
        ("node x.js", [], ["x.js"]),
        ("node -e 'a/b.js'", [], []),
        ("python3 script", [], []),
        ("cat | ./x.sh; ./y.sh && sh z.sh", ["./x.sh", "./y.sh"], ["z.sh"]),
        ("./x.sh\n./y.sh", ["./x.sh", "./y.sh"], []),
        (". ./env.sh; source lib/a.sh", [], ["./env.sh", "lib/a.sh"]),
        ("$CLAUDE_PROJECT_DIR/x.sh", [f"{PROJECT}/x.sh"], []),
        ('"$GEMINI_PROJECT_DIR"/x.sh', [f"{PROJECT}/x.sh"], []),
        ('python3 "${HOOKLINE_PROJECT_DIR}/a b.py"', [], [f"{PROJECT}/a b.py"]),
        ("$LLXPRT_PROJECT_DIR/x.sh", [f"{PROJECT}/x.sh"], []),
        ("~/x.sh", [str(Path("~/x.sh").expanduser())], []),
        ("$HOME/x.sh", [str(Path("~/x.sh").expanduser())], []),
    ],
)
def test_executed_files_are_found(
    command: str, programs: list[str], scripts: list[str]
) -> None:
    found = executed_files(command, str(PROJECT))
    assert [file.path for file in found if file.is_program] == programs
    assert [file.path for file in found if not file.is_program] == scripts


@pytest.mark.parametrize(
    "command",
    [
        "$OTHER/x.sh",
        "$CLAUDE_PROJECT_DIR/$x.sh",
        "$CLAUDE_PROJECT_DIRECTORY/x.sh",
        "~other/x.sh",
        "./*.sh",
        "$(which x)/y",
        "`pwd`/x",
        "test -x ./x.sh && ./x.sh",
        "[ -f ./x.sh ] && ./x.sh",
        "if true; then ./x.sh; fi",
        "cd sub && ./x.sh",
        "cat <<EOF\n./x.sh\nEOF",
        "echo 'open ./x.sh",
        "uv run x.py",
        "python3",
        "A=1",
    ],
)
def test_nothing_is_reported_where_the_shell_decides(command: str) -> None:
    assert executed_files(command, str(PROJECT)) == []


def test_project_variable_is_unknown_when_no_project_is_known() -> None:
    assert executed_files("$CLAUDE_PROJECT_DIR/x.sh", None) == []
    (relative,) = executed_files("./x.sh", None)
    assert relative.path == "./x.sh"


@given(st.text(alphabet="ab/.-$~'\"`;|&()<>{}[]=* \n\\#", max_size=30))
def test_any_command_is_read_without_an_error(command: str) -> None:
    executed_files(command, str(PROJECT))
