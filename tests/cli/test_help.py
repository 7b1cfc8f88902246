"""Help teaches, at any width, and is the same in the manual.

Finding one's way. What each command must teach is in
``tests/pins/commands/showcase.json``.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from importlib import import_module
from pathlib import Path
from types import ModuleType

import msgspec
import pytest

from hookline.cli.main import COMMANDS, GROUPS
from tests.support.commandline import hookline, run_command
from tests.support.python import run_python

ROOT = Path(__file__).parents[2]


def test_help_of_a_command_is_its_help_option() -> None:
    for name in COMMANDS:
        shown = run_command("help", name)
        assert shown == run_command(name, "--help")
        assert (shown.returncode, shown.stderr) == (0, "")
    overview = run_command("--help")
    for words in (["help"], ["help", "help"], ["help", "--help"], ["-h"]):
        assert run_command(*words) == overview
    assert run_command().stdout == overview.stdout


def test_overview_has_every_command_under_a_heading() -> None:
    overview = run_command("--help").stdout
    headings = [line[:-1] for line in overview.splitlines() if line.endswith(":")]
    assert headings == [*GROUPS]
    assert re.findall(r"^  (\w+) ", overview, re.MULTILINE) == [*COMMANDS]
    for name in COMMANDS:
        assert import_module(f"hookline.cli.{name}").SUMMARY in overview


def test_help_has_a_purpose_and_examples() -> None:
    for name in COMMANDS:
        text = run_command(name, "--help").stdout
        assert re.search(r"\n\n([A-Z][^:]+?)[.:]\s", text), name
        examples = re.findall(rf"^  .*hookline {name}\b", text, re.MULTILINE)
        assert len(examples) >= (1 if name == "schema" else 2), name


@pytest.mark.parametrize("columns", [80, 40])
def test_help_fits_the_terminal(columns: int) -> None:
    for words in ([], *([name] for name in COMMANDS)):
        shown = run_command(*words, "--help", env={"COLUMNS": str(columns)}).stdout
        # What is to be typed stays in one piece.
        wide = [
            line
            for line in shown.splitlines()
            if len(line) > columns and (columns == 80 or line[:1] not in {" ", ""})
        ]
        assert wide == []


def test_bug_is_exit_1_and_asks_for_a_report(monkeypatch: pytest.MonkeyPatch) -> None:
    """From inside: no bug can be asked for."""
    broken = ModuleType("hookline.cli.schema")
    monkeypatch.setitem(sys.modules, "hookline.cli.schema", broken)
    ended = run_command("schema")
    assert ended.returncode == 1
    assert "a bug in Hookline" in ended.stderr


def test_running_a_command_loads_neither_help_nor_the_journal() -> None:
    script = """
        import sys
        from hookline.cli.main import main

        status = main(["fire", "BeforeAgent"])
        names = ("hookline.cli.help_text", "hookline.journal.store", "sqlite3")
        print(status, [name for name in names if name in sys.modules])
    """
    assert run_python(script).stdout.splitlines()[-1] == "0 []"


def test_command_line_runs_without_metadata(tmp_path: Path) -> None:
    """``python -m hookline``, also where nothing is installed."""
    archive = tmp_path / "hookline.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        for file in (ROOT / "src").glob("hookline/**/*.py"):
            packed.write(file, file.relative_to(ROOT / "src"))
    (tmp_path / "msgspec").symlink_to(Path(msgspec.__file__).parent)

    def run(*words: str, options: str = "-S") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, options, "-m", "hookline", *words],
            env={**os.environ, "PYTHONPATH": f"{archive}:{tmp_path}"},
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    for options in ("-S", "-SP"):
        assert run("--version", options=options).stdout == "hookline unknown\n"
    assert run("fire", "BeforeAgent").stdout.startswith("BeforeAgent: allowed, ")
    missing = "hookline: shtab is missing (hookline[cli]): run "
    assert run("completion", "bash").stderr.startswith(missing)
    # What needs its data files says which one is missing.
    ended = run("recipes")
    assert ended.returncode == 1
    assert ended.stderr.count("\n") == 1


MISSING = {
    "nats.aio.client": ("serve --bus nats://127.0.0.1:1", "'nats-py[nkeys]>=2.9'"),
    "prometheus_client": (
        "serve --bus nats://127.0.0.1:1 --metrics 0",
        "'prometheus-client>=0.21'",
    ),
    "starlette": ("inspect", "'starlette>=0.46' 'uvicorn>=0.34'"),
}


@pytest.mark.parametrize("module", MISSING)
def test_missing_package_is_named_with_how_to_install_it(module: str) -> None:
    words, packages = MISSING[module]
    script = f"""
        import sys
        sys.modules[{module!r}] = None
        from hookline.cli.main import main
        sys.exit(main({words.split()!r}))
    """
    ended = run_python(script)
    assert ended.returncode == 1
    assert ended.stderr.endswith(f" install {packages}\n")
    assert ended.stderr.count("\n") == 1


def test_extras_that_migrated_hooks_need_are_named(tmp_path: Path) -> None:
    """Without its engine a condition is true: the hook would run for every call."""
    hook = '{"type": "command", "command": "c", "if": "Bash(ls)"}'
    theirs = '{"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [%s]}]}}'
    (tmp_path / "theirs.json").write_text(theirs % hook)
    (tmp_path / "sitecustomize.py").write_text(
        "import sys; sys.modules['cel_expr_python'] = None"
    )
    words = ("migrate", "--from", "claude", "theirs.json")
    ended = hookline(*words, cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)})
    assert ended.returncode == 0, ended.stderr
    assert "conditions: cel-expr-python is missing" in ended.stdout


def test_every_command_has_a_page_in_the_order_of_the_overview() -> None:
    page = (ROOT / "docs/reference/commands/README.md").read_text()
    row = re.compile(r"^\| \[(\w+)\]\(\1\.md\) \| (.+) \|$", re.MULTILINE)
    summaries = {
        name: import_module(f"hookline.cli.{name}").SUMMARY for name in COMMANDS
    }
    listed = [(name, about.replace("`", "'")) for name, about in row.findall(page)]
    assert listed == [*summaries.items()]
