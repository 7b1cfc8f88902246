"""Python scripts as processes of their own."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from typing import Any

PATIENCE_S = 60.0
"""A guard against hanging, not a claim about speed."""


def start_python(script: str, *arguments: str, **more: Any) -> subprocess.Popen[bytes]:
    """Start a script with its arguments."""
    argv = [sys.executable, "-c", textwrap.dedent(script), *arguments]
    return subprocess.Popen(
        argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more
    )


def run_python(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a script to its end."""
    argv = [sys.executable, "-c", textwrap.dedent(script), *arguments]
    return subprocess.run(
        argv, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
