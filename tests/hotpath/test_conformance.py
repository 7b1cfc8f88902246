"""The conformance cases with every command through bash; ``core`` runs them without."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

RUNNER = Path(__file__).parents[2].parent / "shared" / "conformance" / "run.py"


@pytest.mark.skipif(not RUNNER.exists(), reason="no conformance cases beside us")
@pytest.mark.timeout(600)
def test_every_conformance_case_passes_when_bash_runs_every_command() -> None:
    """A start-up file for bash, though empty, keeps plain words from going alone."""
    done = subprocess.run(
        [
            *(sys.executable, str(RUNNER), "--jobs", "3"),
            *("--hookline", f"{sys.executable} -m hookline.cli.main"),
        ],
        env={**os.environ, "BASH_ENV": os.devnull},
        capture_output=True,
        text=True,
        check=False,
    )
    last = done.stdout.splitlines()[-1]
    assert re.fullmatch(r"\d+ passed, 0 failed", last), done.stdout
