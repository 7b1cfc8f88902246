"""``hookline test --watch``: the cases run again at every change."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hookline.cli.main import main

READY = "Ctrl-C ends it"


class Watching:
    """A running ``hookline test --watch`` with a pipe for its output."""

    def __init__(self, project: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "hookline.cli.main", "test", "--watch"],
            cwd=project,
            env={**os.environ, "NO_COLOR": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def until(self, text: str) -> str:
        """Wait for a round that prints this; all that was printed until its end."""
        lines: list[str] = []
        assert self.process.stdout
        while not (READY in "".join(lines[-1:]) and text in "".join(lines)):
            lines.append(self.process.stdout.readline())
            assert lines[-1], f"it ended: {lines}"
        return "".join(lines)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    assert main(["init", "--cwd", str(folder)]) == 0
    return folder


@pytest.fixture
def watching(project: Path) -> Iterator[Watching]:
    running = Watching(project)
    yield running
    running.process.kill()
    running.process.communicate()


def test_watch_runs_the_cases_again_at_every_change(
    project: Path, watching: Watching
) -> None:
    """Broken files are survived, and Ctrl-C ends it without an error."""
    hooks = project / ".hookline/hooks"
    hook, cases = hooks / "no_env_files.py", hooks / "no_env_files.hooktest.toml"
    assert "3 passed" in watching.until("passed")
    source = hook.read_text()
    hook.write_text(source.replace(".env", ".other"))
    assert "changed: .hookline/hooks/no_env_files.py" in watching.until("failed")
    hook.write_text(source)
    watching.until("3 passed")
    valid = cases.read_text()
    cases.write_text("[[")
    assert "no_env_files.hooktest.toml" in watching.until("error: ")
    cases.write_text(valid)
    watching.until("3 passed")
    watching.process.send_signal(signal.SIGINT)
    assert watching.process.wait() == 0


def test_watch_takes_no_output_for_programs(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    assert main(["test", "--watch", "--json"]) == 1
    assert "--watch cannot be used with" in capsys.readouterr().err
