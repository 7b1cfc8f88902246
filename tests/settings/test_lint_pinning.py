"""What ``check`` says about code that trust cannot pin (issue 12.10 and 12.11)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hookline.settings.fields import Report, Severity
from hookline.settings.lint import lint


def warnings(project: Path | None, command: str, **more: Any) -> list[str]:
    hook = {"type": "command", "name": "h", "command": command, **more}
    report = Report()
    lint({"hooks": {"BeforeTool": [{"hooks": [hook]}]}}, project, report)
    found = [one for one in report.problems if one.severity is Severity.WARNING]
    # Variables that nothing sets have a test of their own.
    return [one.message for one in found if "nothing sets" not in one.message]


@pytest.mark.parametrize(
    "command",
    [
        "bash $OTHER/x.sh",
        'eval "$(cat x)"',
        "cd $X && ./guard.sh",
        "npm run lint",
        "make check",
        "python3 -m $MODULE",
    ],
)
def test_code_that_cannot_be_pinned_is_warned_about(
    tmp_path: Path, command: str
) -> None:
    (tmp_path / "guard.sh").touch()
    found = warnings(tmp_path, command)
    assert any("cannot be pinned by trust" in one for one in found)
    assert all("trustFiles" in one for one in found)
    assert warnings(tmp_path, command, trustFiles=["tools"]) == []
    assert warnings(None, command) == []


@pytest.mark.parametrize(
    "command",
    ["true", "jq -r .x | grep $Y", "bash .hookline/x.sh > $LOG", 'test -f "$X"'],
)
def test_what_is_pinned_or_data_needs_no_warning(tmp_path: Path, command: str) -> None:
    assert warnings(tmp_path, command) == []


def test_modules_beside_a_script_outside_the_folder_are_warned_about(
    tmp_path: Path,
) -> None:
    for folder in ("tools", ".hookline"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "guard.py").touch()
        (tmp_path / folder / "helper.py").touch()
    (found,) = warnings(tmp_path, "python3 tools/guard.py")
    assert "tools/helper.py" in found
    assert "move them into .hookline" in found
    assert warnings(tmp_path, "python3 .hookline/guard.py") == []


def test_leaving_out_a_file_of_the_folder_is_warned_about(tmp_path: Path) -> None:
    (found,) = warnings(tmp_path, "true", trustFiles=["!.hookline/x"])
    assert "has no effect" in found
    assert warnings(tmp_path, "true", trustFiles=["!data.json"]) == []
