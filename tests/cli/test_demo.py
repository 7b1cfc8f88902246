"""``hookline demo``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize("style", [(), ("--plain",)], ids=["terminal", "plain"])
def test_demo_plays_on_quietly_when_its_reader_leaves(
    style: tuple[str, ...], tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "hookline.cli.main", "demo", *style]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as demo:
        assert demo.stdout is not None
        assert demo.stderr is not None
        demo.stdout.close()
        assert demo.stderr.read() == b""
    assert demo.returncode == 0
