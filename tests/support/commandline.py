"""The command line as a user runs it: a process, its output and its exit status."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def hookline(
    *words: str, cwd: Path | None = None, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run one command to its end."""
    return subprocess.run(
        [sys.executable, "-m", "hookline.cli.main", *words],
        cwd=cwd,
        env={**os.environ, "NO_COLOR": "1", **(env or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
