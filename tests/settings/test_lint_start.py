"""``hookline check`` on what takes long to start, and on standby (issue 13.5)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hookline.cli.main import main

FREQUENT = [
    *("BeforeTool", "AfterTool", "BeforeModel", "AfterModel", "BeforeToolSelection")
]
SLOW = {
    "python3 -c pass": "Python",
    '"$HOOKLINE_PYTHON" -c pass': "Python",
    "${HOOKLINE_PYTHON} -c pass": "Python",
    "env A=b python3.12 -I -c pass": "Python",
    "/usr/bin/python3 -c pass": "Python",
    "if true; then python3 -c pass; fi": "Python",
    "bash -c 'exec python3 -c pass'": "Python",
    "$TOOLS/hook.py": "Python",
    "uv run hook.py": "Python",
    "node -e 0": "Node",
    "jq . | node -e 0": "Node",
    "npx tsx": "Node",
    "$TOOLS/hook.mjs": "Node",
}


class Checked:
    """Runs ``hookline check`` on one hook."""

    def __init__(self, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._file, self._capsys = file, capsys

    def __call__(
        self, *options: str, event: str = "BeforeTool", **hook: Any
    ) -> tuple[int, str]:
        entry = {"type": "command", "command": "true", **hook}
        settings = {"hooks": {event: [{"hooks": [entry]}]}}
        self._file.write_text(json.dumps(settings))
        status = main(["check", str(self._file), *options])
        return status, self._capsys.readouterr().out


@pytest.fixture
def check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Checked:
    return Checked(tmp_path / "hooks.json", capsys)


@pytest.mark.parametrize(("command", "language"), SLOW.items(), ids=SLOW)
def test_a_slow_start_on_a_frequent_event_gets_a_hint(
    check: Checked, command: str, language: str
) -> None:
    status, out = check(command=command)
    assert f"hint: hooks.BeforeTool[0].hooks[0].command: starts {language} for " in out
    assert '"standby": 1' in out
    assert '"type": "worker"' in out
    assert out.endswith(", 1 hint\n")
    assert status == 0


def test_a_hint_is_no_problem_in_strict_mode_either(check: Checked) -> None:
    status, out = check("--strict", command="python3 -c pass")
    assert out.endswith("1 file checked: 0 errors, 0 warnings, 1 hint\n")
    assert status == 0


@pytest.mark.parametrize("event", FREQUENT)
def test_every_frequent_event_counts(check: Checked, event: str) -> None:
    assert " hint: " in check(event=event, command="python3 -c pass")[1]


QUIET: dict[str, dict[str, Any]] = {
    "a shell": {"command": "grep -q x"},
    "the word alone": {"command": "echo python3"},
    "a rare event": {"command": "python3 -c pass", "event": "SessionStart"},
    "has standby": {"command": "python3 -c pass", "standby": 1},
    "is a worker": {"command": "python3 -c pass", "type": "worker"},
    "is async": {"command": "python3 -c pass", "async": True},
}


@pytest.mark.parametrize("hook", QUIET.values(), ids=QUIET)
def test_there_is_no_hint_where_it_would_not_help(
    check: Checked, hook: dict[str, Any]
) -> None:
    assert check(**hook) == (0, "1 file checked: 0 errors, 0 warnings\n")


def test_hints_are_findings_for_programs_too(check: Checked) -> None:
    _, out = check("--json", command="python3 -c pass")
    (finding,) = json.loads(out)
    assert (finding["severity"], finding["line"]) == ("hint", 1)


WITHOUT_EFFECT: dict[str, dict[str, Any]] = {
    "worker": {"type": "worker"},
    "http": {"type": "http", "url": "http://localhost/"},
    "rule": {"type": "rule", "when": "true"},
    "async": {"async": True},
}


@pytest.mark.parametrize("hook", WITHOUT_EFFECT.values(), ids=WITHOUT_EFFECT)
def test_standby_without_effect_is_a_warning(
    check: Checked, hook: dict[str, Any]
) -> None:
    _, out = check(standby=2, **hook)
    assert "warning: hooks.BeforeTool[0].hooks[0].standby: no effect" in out


@pytest.mark.parametrize("value", [-1, 1.5, "1", True, None], ids=repr)
def test_a_wrong_number_is_an_error_and_the_hook_stays(
    check: Checked, value: object
) -> None:
    status, out = check(standby=value)
    assert status == 1
    assert "standby" in out
