"""Hooktest files of any text, and what a run leaves behind.

What they say and how mistakes are named is in ``tests/pins/commands/test_cases.json``.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hookline.testing.cases import HookTestError, read_file
from tests.support.commandline import run_command


def test_nothing_is_left_in_the_temporary_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    (tmp_path / "guard.sh").write_text("echo 1 > out.txt")
    case = 'event = "BeforeTool"\n[[case]]\nwrote = { "out.txt" = "1" }'
    (tmp_path / "guard.hooktest.toml").write_text(case)
    assert run_command("test", cwd=tmp_path).stdout == "1 passed\n"
    assert list(scratch.iterdir()) == []


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
