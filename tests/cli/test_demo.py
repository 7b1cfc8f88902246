"""``hookline demo``."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from hookline.cli.main import main
from hookline.journal.query import EventFilter, read_journal
from hookline.journal.store import journal_path


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


def test_demo_is_recorded_for_the_inspector(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Issue 16: demo, then inspect, then look."""
    assert main(["demo", "--plain"]) == 0
    assert "hookline inspect" in capsys.readouterr().out
    with read_journal(journal_path(True, str(tmp_path))) as journal:
        found = Counter(entry.verdict for entry in journal.newest(EventFilter(), None))
    assert (found["blocked"], found["stopped"]) == (3, 1)
    assert found["changed"] >= 3
