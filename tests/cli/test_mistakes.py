"""What people mistype: a sentence and exit status 1, never a traceback or a hang."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.commandline import hookline

CASE = 'event = "BeforeAgent"\nhook = "x.py"\n[[case]]\nname = "one"\n'
BUS = ("--bus", "nats://127.0.0.1:1")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        pytest.param(("demo", "--keep", "file/x"), "--keep file/x: Not a", id="keep"),
        pytest.param(("test", "--jobs", "-3"), "--jobs must be 1", id="jobs"),
        pytest.param(("test", "-k", "two"), "no case named like 'two'", id="case"),
        pytest.param(
            ("migrate", "--from", "claude", ".", "--cwd", "nowhere"),
            "--cwd 'nowhere' is no directory",
            id="cwd",
        ),
        pytest.param(("request", "X", "--bus", " ,"), "--bus is needed", id="bus"),
        pytest.param(
            ("request", "X", *BUS, "--timeout", "nan"), "--timeout must", id="nan"
        ),
        pytest.param(
            ("request", "X", *BUS, "--timeout", "-1"), "--timeout must", id="negative"
        ),
        pytest.param(
            ("request", "X", *BUS, "--retries", "-1"), "--retries must", id="retries"
        ),
        pytest.param(("serve", *BUS, "--queue", "a b"), "--queue 'a b'", id="queue"),
        pytest.param(("serve", *BUS, "--prefix", ""), "--prefix ''", id="prefix"),
    ],
)
def test_mistake_is_told_in_a_sentence(
    words: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "x.py").touch()
    (tmp_path / "x.hooktest.toml").write_text(CASE)
    done = hookline(*words, cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith(f"hookline: {message}")
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("style", [(), ("--plain",)], ids=["rich", "plain"])
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


def project_with(folder: Path, text: str) -> dict[str, str]:
    (folder / ".hookline").mkdir()
    (folder / ".hookline" / "settings.json").write_text(text)
    return {"XDG_CONFIG_HOME": str(folder / "x"), "XDG_STATE_HOME": str(folder / "x")}


def test_list_tells_what_is_wrong_with_the_settings(tmp_path: Path) -> None:
    places = project_with(tmp_path, "{")
    done = hookline("list", cwd=tmp_path, env=places)
    assert "settings.json:1:2: is not valid JSON" in done.stderr


def test_list_says_when_hooks_are_switched_off(tmp_path: Path) -> None:
    group = {"hooks": [{"type": "command", "command": "true"}]}
    off = {"enableHooks": False, "hooks": {"BeforeTool": [group]}}
    (tmp_path / "off.json").write_text(json.dumps(off))
    done = hookline("list", "--settings", "off.json", cwd=tmp_path)
    assert done.stdout == "hooks are switched off here (enableHooks is false)\n"


def test_migrate_has_no_next_step_when_there_is_none(tmp_path: Path) -> None:
    (tmp_path / ".gemini").mkdir()
    (tmp_path / ".gemini" / "settings.json").write_text("{}")
    done = hookline("migrate", "--from", "gemini", cwd=tmp_path)
    assert done.stdout == "wrote  .hookline/settings.json (0 hooks)\n"
