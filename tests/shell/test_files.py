"""Commands that are long, deep or of any text: their files are found or reported.

Which files are code, arguments or data is in ``tests/pins/shell/files.json``.
"""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hookline.shell.files import command_files
from hookline.shell.parse import project_variables
from hookline.shell.uses import FileUse, Role

KNOWN = {**project_variables("/p"), "HOME": "/home/me", "HOOKLINE_PYTHON": "python3"}


def uses(command: str) -> list[FileUse]:
    return command_files(command, "/p", KNOWN, env={})


def paths(command: str, *roles: Role) -> set[str]:
    return {use.path for use in uses(command) if use.role in roles and not use.why}


def unknown(command: str) -> list[str]:
    return [use.path for use in uses(command) if use.why]


def test_text_that_is_quoted_too_deeply_is_reported() -> None:
    command = "./x.sh"
    for _ in range(12):
        quoted = command.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$")
        command = f'bash -c "{quoted}"'
    file_uses = uses(command)
    assert any("too deeply" in use.why for use in file_uses)
    assert unknown(f"echo {'$(' * 60}./x{')' * 60}")


def test_many_words_do_not_end_the_reading() -> None:
    words = " ".join(f"a{number}" for number in range(5000))
    assert "/p/tools/a.sh" in paths(f"echo {words}; tools/a.sh", Role.CODE)
    assert "/p/tools/a.sh" in paths(f"mytool {words} tools/a.sh", Role.ARGUMENT)


@pytest.mark.parametrize(
    "command",
    [
        "; ".join(f"A{n}=$A{n + 1}$A{n + 1}" for n in range(60)) + "; bash $A0",
        "; ".join(f"A{n}=x$A{n + 1}$A{n + 1}" for n in range(40)) + "; bash $A0",
        "; ".join(f"A{n}=$A{n + 1}" for n in range(3000)) + "; bash $A0",
        f"eval {' '.join(['{a,b,c,d}'] * 40)}",
        f"{'nice ' * 3000} ./x.sh",
        f"bash {'{a,b}' * 40}",
        f"{'cd a{1..60}; ' * 50} ./x.sh",
        f"{'$(' * 3000}",
    ],
    ids=range(8),
)
def test_no_command_takes_forever_or_is_taken_as_harmless(command: str) -> None:
    assert unknown(command)


@given(st.text(alphabet="ab/.-$~'\"`;|&()<>{}[]=*, \n\\#!", max_size=40))
@example('~"~')
@example("~'*'")
def test_any_command_is_read_without_an_error(command: str) -> None:
    uses(command)
    uses(f"bash -c '{command}' | xargs python3 -c {command} < <({command})")
