"""Which files of a project a hook's definition pins."""

from __future__ import annotations

from pathlib import Path

import pytest

from hookline.settings.model import HookConfig, HookType
from hookline.trust.pins import hook_paths, named_paths, names_nothing, trust_paths


def hook(command: str) -> HookConfig:
    return HookConfig(type=HookType.COMMAND, name="h", command=command)


@pytest.mark.parametrize(
    ("command", "named"),
    [
        ("python3 tools/a.py", "tools/a.py"),
        ("python3 'my tools/a b.py'", "my tools/a b.py"),
        (r"python3 my\ tools/a\ b.py", "my tools/a b.py"),
        ("python3 -m tools.a --strict", "tools/a.py"),
        ("python3 tools", "tools/__main__.py"),
        ("guard --config=tools/a.py", "tools/a.py"),
        ("PYTHONPATH=tools:x python3 x", "tools/__main__.py"),
        ("$PWD/tools/a.py", "tools/a.py"),
        ("(cd tools; ./a.py)|cat>/dev/null", "tools/a.py"),
        ('"$CLAUDE_PROJECT_DIR"/tools/a.py', "tools/a.py"),
        ("${GEMINI_PROJECT_DIR}/to'ol's/a.py", "tools/a.py"),
        ("bash -c 'sh \"$HOOKLINE_PROJECT_DIR\"/tools/a.py'", "tools/a.py"),
        ("${TOOL:-tools/a.py}", "tools/a.py"),
        ("cat tools/*.py | python3", "tools/a.py"),
    ],
)
def test_files_in_a_command_are_pinned(
    tmp_path: Path, command: str, named: str
) -> None:
    for folder in ("tools", "my tools"):
        (tmp_path / folder).mkdir()
    (tmp_path / "tools/a.py").touch()
    (tmp_path / "my tools/a b.py").touch()
    assert str(tmp_path / named) in named_paths(hook(command), str(tmp_path))


@pytest.mark.parametrize("command", ["true", "make check", "cat /etc/passwd", "../x"])
def test_command_may_name_no_file(tmp_path: Path, command: str) -> None:
    assert names_nothing(hook(command), str(tmp_path))


def test_files_in_the_environment_are_pinned(tmp_path: Path) -> None:
    env = {"CONFIG": "#1: tools/a.toml", "STARTUP": "$CLAUDE_PROJECT_DIR/b.sh"}
    named = named_paths(
        HookConfig(type=HookType.COMMAND, name="h", env=env), str(tmp_path)
    )
    assert {f"{tmp_path}/tools/a.toml", f"{tmp_path}/b.sh"} <= set(named)


def test_files_under_hookline_are_named_but_not_pinned_twice(tmp_path: Path) -> None:
    guard = hook("cd .hookline/hooks && sh guard.sh")
    file = tmp_path / ".hookline/hooks/guard.sh"
    file.parent.mkdir(parents=True)
    file.touch()
    assert str(file) in hook_paths(guard, str(tmp_path))
    assert str(file) not in named_paths(guard, str(tmp_path))
    assert not names_nothing(guard, str(tmp_path))


def test_trust_files_may_use_known_variables(tmp_path: Path) -> None:
    files = ("$CLAUDE_PROJECT_DIR/a b", "${PWD}/c", "~/d", "e", "$OTHER/f")
    found = trust_paths(
        HookConfig(type=HookType.COMMAND, name="h", trust_files=files), str(tmp_path)
    )
    home = Path("~/d").expanduser()
    expected = [tmp_path / "a b", tmp_path / "c", home, tmp_path / "e"]
    assert found == [*map(str, expected), f"{tmp_path}/$OTHER/f"]
