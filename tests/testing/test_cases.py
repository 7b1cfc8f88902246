"""Reading hooktest files, and the errors for mistakes in them."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hookline.testing.cases import HookTestError, find_files, read_file
from tests.support.commandline import hookline

GOOD = 'event = "BeforeTool"\n\n[[case]]\nname = "one"\n'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "guard.py").write_text("")
    return tmp_path / "guard.hooktest.toml"


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        pytest.param(
            GOOD + 'expct = "block"\n',
            5,
            "unknown key 'expct': did you mean 'expect'?",
            id="key-of-a-case",
        ),
        pytest.param(
            'evnt = "BeforeTool"\n' + GOOD,
            1,
            "unknown key 'evnt': did you mean 'event'?",
            id="key-of-the-file",
        ),
        pytest.param(
            GOOD + "[[case]]\n[[case]]\ntool_inptu = {}\n",
            7,
            "did you mean 'tool_input'?",
            id="key-of-a-later-case",
        ),
        pytest.param(
            GOOD + "\nbefore = [\n  { evnt = 'x' },\n]\n",
            7,
            "unknown key 'evnt': did you mean 'event'?",
            id="key-of-an-earlier-event",
        ),
        pytest.param(
            GOOD + 'expect = "blocked"\n',
            5,
            "expect = 'blocked': did you mean 'block'?",
            id="verdict",
        ),
        pytest.param(
            GOOD + 'event = "BeforeTol"\n',
            5,
            "did you mean 'BeforeTool'?",
            id="event",
        ),
        pytest.param(
            '[[case]]\nname = "one"\n', 1, "the event is missing", id="no-event"
        ),
        pytest.param(
            GOOD + "\nmessage = '('\n", 6, "is not a regular expression", id="pattern"
        ),
        pytest.param(
            'type = "wroker"\n' + GOOD, 1, "did you mean 'worker'?", id="hook-type"
        ),
        pytest.param(GOOD + "tool = 3\n", 5, "Expected `str", id="wrong-type"),
        pytest.param(GOOD + "x = \n", 5, "invalid TOML", id="no-toml"),
        pytest.param('event = "BeforeTool"\n', 1, "no cases", id="no-cases"),
        pytest.param(
            'hook = "other.py"\n' + GOOD, 1, "no hook 'other.py'", id="missing-hook"
        ),
        pytest.param(
            'settings = "project"\n' + GOOD + "files = { a = 'b' }\n",
            6,
            "files works only with a hook",
            id="files-with-settings",
        ),
    ],
)
def test_mistake_is_named_with_file_line_and_hint(
    file: Path, text: str, line: int, problem: str
) -> None:
    file.write_text(text)
    with pytest.raises(HookTestError) as caught:
        read_file(file)
    assert str(caught.value).startswith(f"{file}:{line}: ")
    assert problem in str(caught.value)


def test_mistake_reaches_the_command_line(file: Path) -> None:
    file.write_text(GOOD + 'expct = "block"\n')
    ended = hookline("test", str(file))
    assert ended.returncode == 1
    assert f"{file}:5: unknown key 'expct': did you mean 'expect'?" in ended.stderr


def test_script_beside_it_is_the_default_hook(file: Path) -> None:
    file.write_text(GOOD)
    assert read_file(file).hooks == (file.parent.resolve() / "guard.py",)


def test_missing_script_beside_it_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "lonely.hooktest.toml"
    file.write_text(GOOD)
    with pytest.raises(HookTestError, match=r"no lonely\.py in this folder"):
        read_file(file)


def test_case_takes_defaults_of_the_file_and_adds_its_own(file: Path) -> None:
    file.write_text(
        'event = "BeforeTool"\ntool = "a"\nenv = { A = "1", B = "1" }\n'
        '[[case]]\ntool = "b"\nenv = { B = "2" }\n[[case]]\n'
    )
    first, second = read_file(file).cases
    assert (first.tool, first.env) == ("b", {"A": "1", "B": "2"})
    assert (second.tool, second.env) == ("a", {"A": "1", "B": "1"})
    assert (first.name, second.name) == ("case 1", "case 2")


def test_files_are_found_in_folders_but_not_in_foreign_ones(tmp_path: Path) -> None:
    for name in ("a.hooktest.toml", "x/b.hooktest.toml", ".hookline/c.hooktest.toml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    for name in (".venv/d.hooktest.toml", "node_modules/e.hooktest.toml", "f.toml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    clone = tmp_path / "clone"
    (clone / ".git").mkdir(parents=True)
    (clone / "g.hooktest.toml").write_text("")
    found = [file.name[0] for file in find_files([tmp_path])]
    assert sorted(found) == ["a", "b", "c"]
    assert [file.name[0] for file in find_files([clone])] == ["g"]


def test_a_file_without_an_end_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "x.hooktest.toml"
    path.symlink_to("/dev/zero")
    with pytest.raises(HookTestError, match="is not a regular file"):
        read_file(path)


def test_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(HookTestError, match="no such file"):
        find_files([tmp_path / "nowhere"])


@given(text=st.text(max_size=300) | st.text(alphabet='case[]="\n {},.ev', max_size=80))
@settings(max_examples=100)
def test_any_text_is_read_or_refused_with_our_own_error(
    text: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.getbasetemp() / "any.hooktest.toml"
    file.write_text(text, "utf-8", "replace")
    file.with_name("any.py").write_text("")
    with suppress(HookTestError):
        read_file(file)
