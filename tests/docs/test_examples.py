"""The examples, each as a reader would start it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(name: str) -> str:
    ended = subprocess.run(
        [sys.executable, EXAMPLES / name, "--offline"],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.mark.parametrize(
    "name", ["genai_agent.py", "openai_agent.py", "anthropic_agent.py"]
)
def test_an_example_keeps_the_secret_out_and_redacts_the_answer(name: str) -> None:
    assert run(name).splitlines() == [
        "answer: Written. Ask [e-mail] about it.",
        "db.txt: vault: db/main",
    ]


def test_the_example_of_an_own_loop_hooks_a_plain_function() -> None:
    output = run("own_loop.py")
    assert "keep passwords out of files" in output
    assert "db.txt: vault: db/main" in output
