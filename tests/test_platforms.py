"""Systems other than this one."""

from __future__ import annotations

import subprocess
import sys

import pytest

SENTENCE = "hookline runs hooks on Linux and macOS only: on Windows, use WSL"


@pytest.mark.parametrize("module", ["hookline", "hookline.script", "hookline.__main__"])
def test_windows_is_refused_at_import(module: str) -> None:
    code = f"import sys; sys.platform = 'win32'; import {module}"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.endswith(f"UnsupportedPlatformError: {SENTENCE}\n")


def test_on_macos_the_command_does_without_the_resident_helper() -> None:
    code = """
import sys
sys.platform = "darwin"
sys.argv[1:] = ["bridge", "--status"]
from hookline.__main__ import main
status = main()
assert not [name for name in sys.modules if "resident" in name], sys.modules
sys.exit(status)
"""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "the resident helper runs on Linux only\n"
