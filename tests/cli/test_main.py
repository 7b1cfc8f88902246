"""The command line as a whole: help, unknown commands, usage errors."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from hookline.cli.common import Parser
from hookline.cli.main import COMMANDS, main
from tests.support.commandline import hookline

CASE = 'event = "BeforeAgent"\nhook = "x.py"\n[[case]]\nname = "one"\n'
BUS = ("--bus", "nats://127.0.0.1:1")

USAGE_ERRORS: list[tuple[list[str], str]] = [
    (["fire", "BeforTool"], "did you mean 'BeforeTool'?"),
    (["fire", "BeforeTool"], "--tool NAME"),
    (["fire", "BeforeTool", "--tool", "t", "--tool-input", "{"], "--tool-input is not"),
    (
        ["fire", "BeforeTool", "--tool", "t", "--tool-input", "[]"],
        "expected a JSON obj",
    ),
    (["fire", "BeforeAgent", "--input", "missing.json"], "missing.json"),
    (["fire", "BeforeAgent", "--input", "-"], "standard input is not valid JSON"),
    (["fire", "SessionStart", "--input", "-"], "standard input is not valid JSON"),
    (["fire", "BeforeAgent", "--settings", "none.json"], "none.json"),
    (["fire", "BeforeAgent", "--cwd", "nowhere"], "nowhere"),
    (["fire", "BeforeAgent", "--nonsense"], "--nonsense"),
    (["fire"], "EVENT"),
    (["fire"], "see 'hookline fire --help'"),
    (["fir"], "did you mean 'hookline fire'?"),
    (["xyzzy"], "hookline --help"),
]


@pytest.mark.parametrize(("words", "message"), USAGE_ERRORS)
def test_a_usage_error_is_exit_1_with_a_message_that_helps(
    tmp_path: Path, words: list[str], message: str
) -> None:
    done = hookline(*words, cwd=tmp_path)
    assert done.returncode == 1
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_help_has_examples(tmp_path: Path) -> None:
    overview = hookline("--help", cwd=tmp_path)
    assert overview.returncode == 0
    assert "fire" in overview.stdout
    described = hookline("fire", "--help", cwd=tmp_path)
    assert described.returncode == 0
    assert "exit status" in described.stdout
    assert hookline(cwd=tmp_path).returncode == 1
    version = hookline("--version", cwd=tmp_path)
    assert version.stdout.startswith("hookline ")


def test_every_command_has_help(tmp_path: Path) -> None:
    overview = hookline("--help", cwd=tmp_path).stdout
    for name in COMMANDS:
        module = import_module(f"hookline.cli.{name}")
        assert f"  {name}" in overview
        assert module.SUMMARY in overview
        parser = Parser()
        module.add_arguments(parser)
        assert f"hookline {name}" in module.DESCRIPTION


def test_a_bug_is_exit_1_and_asks_for_a_report(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = ModuleType("hookline.cli.schema")
    monkeypatch.setitem(sys.modules, "hookline.cli.schema", broken)
    assert main(["schema"]) == 1
    assert "a bug in Hookline" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        pytest.param(("demo", "--keep", "file/x"), "--keep file/x: Not a", id="keep"),
        pytest.param(("test", "--jobs", "-3"), "--jobs: must be at least 1", id="jobs"),
        pytest.param(
            ("test", "-k", "two"), "no case with 'two' in its name", id="case"
        ),
        pytest.param(
            ("migrate", "--from", "claude", ".", "--cwd", "nowhere"),
            "--cwd: 'nowhere' is not a directory",
            id="cwd",
        ),
        pytest.param(("request", "X", "--bus", " ,"), "--bus is required", id="bus"),
        pytest.param(
            ("request", "X", *BUS, "--timeout", "nan"), "--timeout must", id="nan"
        ),
        pytest.param(
            ("request", "X", *BUS, "--timeout", "-1"), "--timeout must", id="negative"
        ),
        pytest.param(
            ("request", "X", *BUS, "--retries", "-1"), "--retries: must", id="retries"
        ),
        pytest.param(("serve", *BUS, "--queue", "a b"), "--queue 'a b'", id="queue"),
        pytest.param(("serve", *BUS, "--prefix", ""), "--prefix ''", id="prefix"),
        pytest.param(("serve", *BUS, "--prefix", "*"), "--prefix '*'", id="wildcard"),
        pytest.param(
            ("request", "BeforeTool", *BUS, "--prefix", "a.>"), "--prefix 'a.>'", id=">"
        ),
        pytest.param(
            ("serve", *BUS, "--inbox-prefix", "*"), "--inbox-prefix '*'", id="inbox"
        ),
    ],
)
def test_a_usage_error_is_one_line(
    words: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "x.py").touch()
    (tmp_path / "x.hooktest.toml").write_text(CASE)
    done = hookline(*words, cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith(f"hookline: {message}")
    assert not (tmp_path / "nowhere").exists()
