"""Help: every command teaches, at any width (issue 17: finding one's way)."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from importlib import import_module
from pathlib import Path

import msgspec
import pytest

from hookline.cli.main import COMMANDS, GROUPS, main
from tests.support.python import run_python

SOURCE = Path(__file__).parents[2] / "src"


def shown(
    capsys: pytest.CaptureFixture[str], *words: str, status: int = 0
) -> tuple[str, str]:
    assert main([*words]) == status
    done = capsys.readouterr()
    return done.out, done.err


def test_help_of_a_command_is_its_help_option(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in COMMANDS:
        assert shown(capsys, "help", name) == shown(capsys, name, "--help")
    overview = shown(capsys, "--help")
    assert shown(capsys, "help") == shown(capsys, "help", "help") == overview
    assert shown(capsys, "help", "--help") == shown(capsys, "-h") == overview


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["help", "fir"], "unknown command 'fir': did you mean 'hookline fire'?\n"),
        (["help", "nonsense"], "unknown command 'nonsense': see 'hookline --help'\n"),
        (["fire", "help"], "unknown event 'help'"),
    ],
)
def test_help_of_an_unknown_command_fails(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out, err = shown(capsys, *words, status=1)
    assert out == ""
    assert err.startswith(f"hookline: {message}")


def test_overview_has_every_command_under_a_heading(
    capsys: pytest.CaptureFixture[str],
) -> None:
    out, _ = shown(capsys, "--help")
    headings = [line[:-1] for line in out.splitlines() if line.endswith(":")]
    assert headings == [*GROUPS]
    assert re.findall(r"^  (\w+) ", out, re.MULTILINE) == [*COMMANDS]


@pytest.mark.parametrize("columns", [80, 40])
def test_help_fits_the_terminal(
    columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    for words in ([], *([name] for name in COMMANDS)):
        out, _ = shown(capsys, *words, "--help")
        # What is to be typed stays in one piece.
        wide = [
            line
            for line in out.splitlines()
            if len(line) > columns and (columns == 80 or line[:1] not in {" ", ""})
        ]
        assert wide == []


def test_help_has_a_purpose_and_examples(capsys: pytest.CaptureFixture[str]) -> None:
    for name in COMMANDS:
        out, _ = shown(capsys, name, "--help")
        purpose = re.search(r"\n\n([A-Z][^:]+?)[.:]\s", out)
        assert purpose, name
        examples = re.findall(rf"^  .*hookline {name}\b", out, re.MULTILINE)
        assert len(examples) >= (1 if name == "schema" else 2), name


def test_running_a_command_loads_no_help() -> None:
    script = """
        import sys
        from hookline.cli.main import main

        status = main(["fire", "BeforeAgent"])
        print(status, "hookline.cli.help_text" in sys.modules)
    """
    assert run_python(script).stdout.splitlines()[-1] == "0 False"


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package in a zip file, without metadata."""
    path = tmp_path_factory.mktemp("zip") / "hookline.zip"
    with zipfile.ZipFile(path, "w") as packed:
        for file in SOURCE.glob("hookline/**/*.py"):
            packed.write(file, file.relative_to(SOURCE))
    return path


@pytest.mark.parametrize("safe", [[], ["-P"]], ids=["plain", "-P"])
def test_command_line_runs_without_metadata(
    archive: Path, safe: list[str], tmp_path: Path
) -> None:
    """Issue 17: python -m hookline, also where nothing is installed."""
    (tmp_path / "msgspec").symlink_to(Path(msgspec.__file__).parent)

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-S", *safe, "-m", "hookline", *words],
            env={**os.environ, "PYTHONPATH": f"{archive}:{tmp_path}"},
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    assert run("--version").stdout == "hookline unknown\n"
    assert run("fire", "BeforeAgent").stdout.startswith("BeforeAgent: allowed, ")
    missing = "hookline: shtab is missing (hookline[cli]): run "
    assert run("completion", "bash").stderr.startswith(missing)
    # What needs its data files says which one is missing.
    done = run("recipes")
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1


def test_every_command_has_a_page_in_the_order_of_the_overview() -> None:
    page = (SOURCE.parent / "docs/reference/commands/README.md").read_text()
    row = re.compile(r"^\| \[(\w+)\]\(\1\.md\) \| (.+) \|$", re.MULTILINE)
    listed = row.findall(page)
    modules = {name: import_module(f"hookline.cli.{name}") for name in COMMANDS}
    assert {name: about.replace("`", "'") for name, about in listed} == {
        name: module.SUMMARY for name, module in modules.items()
    }
    assert [name for name, _ in listed] == [*COMMANDS]
