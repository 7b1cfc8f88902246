"""Which files of a project a hook's definition pins."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hookline.settings.model import HookConfig, HookType
from hookline.trust.pins import (
    HookFile,
    Treatment,
    hook_files,
    named_paths,
    names_nothing,
    paths_to_pin,
    trust_paths,
)
from tests.support.project import GUARD, Project


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
    assert str(tmp_path / named) in paths_to_pin(hook(command), str(tmp_path))


@pytest.mark.parametrize("command", ["true", "make check", "cat /etc/passwd", "../x"])
def test_command_may_name_no_file(tmp_path: Path, command: str) -> None:
    assert names_nothing(hook(command), str(tmp_path))


def test_files_in_the_environment_are_pinned(tmp_path: Path) -> None:
    env = {"CONFIG": "#1: tools/a.toml", "STARTUP": "$CLAUDE_PROJECT_DIR/b.sh"}
    named = paths_to_pin(
        HookConfig(type=HookType.COMMAND, name="h", env=env), str(tmp_path)
    )
    assert {f"{tmp_path}/tools/a.toml", f"{tmp_path}/b.sh"} <= set(named)


def test_files_under_hookline_are_named_but_not_pinned_twice(tmp_path: Path) -> None:
    guard = hook("cd .hookline/hooks && sh guard.sh")
    file = tmp_path / ".hookline/hooks/guard.sh"
    file.parent.mkdir(parents=True)
    file.touch()
    assert str(file) in named_paths(guard, str(tmp_path)).roles
    assert str(file) not in paths_to_pin(guard, str(tmp_path))
    assert not names_nothing(guard, str(tmp_path))


def test_trust_files_may_use_known_variables(tmp_path: Path) -> None:
    files = ("$CLAUDE_PROJECT_DIR/a b", "${PWD}/c", "~/d", "e", "$OTHER/f")
    found = trust_paths(
        HookConfig(type=HookType.COMMAND, name="h", trust_files=files), str(tmp_path)
    )
    home = Path("~/d").expanduser()
    expected = [tmp_path / "a b", tmp_path / "c", home, tmp_path / "e"]
    assert found == [*map(str, expected), f"{tmp_path}/$OTHER/f"]


def reviewed(tmp_path: Path, command: str, **more: Any) -> dict[str, Treatment]:
    found = hook_files(
        HookConfig(type=HookType.COMMAND, name="h", command=command, **more),
        str(tmp_path),
    )
    return {one.path.removeprefix(f"{tmp_path}/"): one.treatment for one in found}


def test_a_review_lists_what_is_pinned_what_cannot_be_and_what_is_data(
    tmp_path: Path,
) -> None:
    """Issue 12.10: nothing that a hook names is left out of the review."""
    (tmp_path / "tools").mkdir()
    for name in ("tools/a.sh", "data.json", "conf.toml"):
        (tmp_path / name).touch()
    command = "bash tools/a.sh conf.toml | jq . data.json; bash $X/b.sh; lint tools"
    assert reviewed(tmp_path, command) == {
        "tools/a.sh": Treatment.PINNED,
        "conf.toml": Treatment.PINNED,
        "$X/b.sh": Treatment.UNPINNABLE,
        "tools": Treatment.UNPINNABLE,
        # Whatever $X/b.sh is, it could run what jq prints.
        "data.json": Treatment.PINNED,
    }
    assert reviewed(tmp_path, "jq . data.json") == {"data.json": Treatment.DATA}


def test_an_unknown_file_says_what_to_do(tmp_path: Path) -> None:
    (found,) = hook_files(hook("bash $X/b.sh"), str(tmp_path))
    assert found == HookFile("$X/b.sh", Treatment.UNPINNABLE, found.why)
    assert "trustFiles" in found.why


def test_modules_beside_a_script_are_pointed_out(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools/a.py").write_text("import used")
    (tmp_path / "tools/used.py").touch()
    (tmp_path / "tools/other.py").touch()
    assert reviewed(tmp_path, "python3 tools/a.py") == {
        "tools/a.py": Treatment.PINNED,
        "tools/used.py": Treatment.PINNED,
        "tools/other.py": Treatment.UNPINNABLE,
    }
    listed = reviewed(tmp_path, "python3 tools/a.py", trust_files=("tools",))
    assert Treatment.UNPINNABLE not in listed.values()


def test_what_a_hook_runs_outside_the_project_is_pinned(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (tmp_path / "guard.sh").touch()
    (tmp_path / "data.txt").touch()
    command = f"/bin/bash {tmp_path}/guard.sh; mytool {tmp_path}/data.txt /dev/null"
    found = named_paths(hook(command), str(project)).roles
    assert set(found) == {f"{tmp_path}/guard.sh"}


def test_files_under_another_name_of_the_project_are_pinned(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "a.txt").touch()
    (tmp_path / "link").symlink_to(project)
    named = named_paths(hook(f"mytool {tmp_path}/link/a.txt"), str(project)).roles
    assert f"{tmp_path}/link/a.txt" in named


@pytest.mark.parametrize("name", ["a\ue12ab.sh", "a\ue000b.sh", "a\ue12b.sh"])
def test_no_letter_in_a_name_hides_a_script(tmp_path: Path, name: str) -> None:
    """Also those of the private area, which stood for marks of the reader once."""
    (tmp_path / name).write_text("exit 2")
    hook = HookConfig(type=HookType.COMMAND, name="n", command=f"bash {name}")
    found = hook_files(hook, str(tmp_path))
    pinned = [one.path for one in found if one.treatment is Treatment.PINNED]
    assert pinned == [str(tmp_path / name)]


READ_AS_BASH_READS = [
    r"""echo "${x//\"/}"; sh tools/g.sh""",
    r"""echo "${x//\'/}" "${y%\}}"; sh tools/g.sh""",
    r'''echo "${x//'"'/}"; sh tools/g.sh; echo "${x//'"'/}"''',
    r"""echo "${x:-it's}" "${a[0]:-it's}"; sh tools/g.sh""",
    r"""echo "${x//${y//\"/}/\"}"; sh tools/g.sh""",
    'env -S"sh tools/g.sh"',
    "env -S 'sh tools/g.sh'",
    "env -iS'sh tools/g.sh' one two",
    "env --split-string='sh tools/g.sh'",
    "env --split-string 'sh tools/g.sh'",
    "env -S'bash -c' '. tools/g.sh'",
    "tools/{g..g}.sh",
    "tools/{a..i..2}.sh",
    "sh tools/{h,{f..g}}.sh",
    "sh tools/{g,h}.sh",
    "sh tools/0{08..10}.sh",
]


@pytest.mark.parametrize("command", READ_AS_BASH_READS)
async def test_file_of_a_command_is_pinned_however_it_is_spelled(
    project: Project, command: str
) -> None:
    """protocol.md#settings: a guard whose script changes blocks."""
    script = "tools/009.sh" if "08" in command else "tools/g.sh"
    project.write(script, "exit 0", mode=0o755)
    project.settings({**GUARD, "command": command})
    assert project.trust() == 0
    project.write(script, "exit 0 # changed", mode=0o755)
    result = await project.fire()
    assert result.blocked
    assert f"{script} changed since it was approved" in (result.reason or "")


@pytest.mark.parametrize(
    "command",
    [
        r"env -S'sh\_tools/g.sh'",
        'env -S"sh $TOOLS/g.sh"',
        "sh tools/{$a..$b}.sh",
        "sh tools/{1..9999999}.sh",
        "echo 'it; sh tools/g.sh",
        'echo "${x//"/}; sh tools/g.sh',
        'echo "$(echo "x; sh tools/g.sh',
    ],
)
def test_command_that_cannot_be_read_is_reported(
    project: Project, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """protocol.md#settings: what is not pinned is told."""
    project.write("tools/g.sh", "exit 0")
    project.settings({**GUARD, "command": command})
    assert project.trust() == 0
    assert "cannot be pinned" in capsys.readouterr().out
