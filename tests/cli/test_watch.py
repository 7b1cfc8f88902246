"""``hookline watch``: rounds on every change, without approving anything (issue 17)."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hookline.cli.main import main
from tests.support.processes import marked, none_left

EVENT = ("BeforeTool", "--tool", "write_file", "--tool-input")
ENV_FILE = (*EVENT, '{"file_path": ".env"}')
READY = "Ctrl-C ends it"


class Watching:
    """A running ``hookline watch`` with a pipe for its output."""

    def __init__(self, project: Path, *words: str, mark: str = "") -> None:
        state = project.parent / "state"
        self.env = {"XDG_STATE_HOME": str(state), "NO_COLOR": "", "WATCH_MARK": mark}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "hookline.cli.main", "watch", *words],
            cwd=project,
            env={**os.environ, **self.env},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def round(self) -> str:
        """Wait for the end of a round; what it printed."""
        lines: list[str] = []
        assert self.process.stdout
        while not lines or READY not in lines[-1]:
            lines.append(self.process.stdout.readline())
            assert lines[-1], f"it ended: {lines}"
        return "".join(lines)

    def interrupt(self) -> int:
        self.process.send_signal(signal.SIGINT)
        return self.process.wait()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    assert main(["init", "--cwd", str(folder)]) == 0
    return folder


@pytest.fixture
def watching(project: Path) -> Iterator[Watching]:
    found = Watching(project, *ENV_FILE)
    yield found
    found.process.kill()
    found.process.communicate()


def test_each_change_is_tested_and_fired_and_compared(
    project: Path, watching: Watching
) -> None:
    """Broken and deleted files are survived, and what is new is found."""
    hooks = project / ".hookline/hooks"
    hook, settings = hooks / "no_env_files.py", project / ".hookline/settings.json"
    first = watching.round()
    assert "BeforeTool: blocked: keep secrets out of .env files\n" in first
    assert "3 passed\n" in first
    assert "\x1b" not in first
    source, valid = hook.read_text(), settings.read_text()
    moved = hook.with_suffix(".tmp")  # as editors do
    moved.write_text(source.replace('== ".env"', '== "other"'))
    moved.replace(hook)
    found = watching.round()
    assert "changed: .hookline/hooks/no_env_files.py\n" in found
    assert "BeforeTool: allowed\n" in found
    assert "was: BeforeTool: blocked: keep secrets out of .env files\n" in found
    assert "1 passed, 2 failed\n" in found
    hook.unlink()
    settings.write_text('{"hooks": ')
    found = watching.round()
    assert "no no_env_files.py in this folder" in found
    assert "settings.json:1" in found
    settings.write_text(valid)
    hook.write_text("from words import check\n" + source.replace("check", "_", 1))
    assert "No module named 'words'" in watching.round()
    (hooks / "words.py").write_text("def check(event): ...\n")
    assert "changed: .hookline/hooks/words.py\n" in watching.round()
    hook.write_text(source)
    case = '[[case]]\nevent = "BeforeTool"\ntool_input = { path = "a" }\n'
    (project / "more.hooktest.toml").write_text(f'hook = "{hook}"\n{case}')
    found = watching.round()
    assert "BeforeTool: blocked: keep secrets" in found
    assert "4 passed\nfixed: " in found
    assert watching.interrupt() == 0


def test_no_edit_is_approved_by_watching(
    project: Path,
    watching: Watching,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The author's hooks run here; for agents they are as untrusted as before."""
    monkeypatch.chdir(project)
    monkeypatch.setenv("XDG_STATE_HOME", watching.env["XDG_STATE_HOME"])
    case = 'tool = "edit"\ntool_input = { path = ".env" }\nexpect = "block"\n'
    whole = f'settings = "project"\nevent = "BeforeTool"\n[[case]]\n{case}'
    assert "run here without approval" in watching.round()
    (project / ".hookline/whole.hooktest.toml").write_text(whole)
    first = watching.round()
    assert "4 passed" in first
    assert main(["test"]) == 1
    assert "1 failed" in capsys.readouterr().out
    assert "blocked: keep secrets" in first
    assert main(["fire", *ENV_FILE]) == 0
    assert "allowed, no hook ran" in capsys.readouterr().out
    assert main(["trust", "--yes"]) == 0
    assert main(["fire", *ENV_FILE]) == 2
    hook = project / ".hookline/hooks/no_env_files.py"
    hook.write_text(hook.read_text().replace("keep secrets", "keep them"))
    assert "blocked: keep them out" in watching.round()
    capsys.readouterr()
    main(["fire", *ENV_FILE])
    assert "changed since it was approved" in capsys.readouterr().out


async def test_a_change_ends_the_round_in_progress(tmp_path: Path) -> None:
    """And nothing of it is left; a project around this one still needs approval."""
    mark = f"watch-{os.getpid()}"
    project = tmp_path / "project"
    (tmp_path / ".git").mkdir()
    (project / ".hookline").mkdir(parents=True)
    (tmp_path / ".hookline").mkdir()
    script = project / ".hookline/slow.sh"
    script.write_text("echo $$ > started; mkfifo pipe; read < pipe\n")
    for folder, command in ((project, "sh .hookline/slow.sh"), (tmp_path, "touch ran")):
        hook = {"type": "command", "command": command, "timeout": 600_000}
        settings = {"hooks": {"SessionStart": [{"hooks": [hook]}]}}
        (folder / ".hookline/settings.json").write_text(json.dumps(settings))
    event = project / "event.json"
    event.write_text('{"source": "startup"}')
    watching = Watching(project, "SessionStart", "--input", "event.json", mark=mark)
    try:
        while not (project / "started").exists():
            assert watching.process.poll() is None
        script.write_text("exit 0\n")
        found = watching.round()
        assert "changed: .hookline/slow.sh\n" in found
        assert "SessionStart: allowed" in found
        assert not (project / "ran").exists()
        assert not (tmp_path / "ran").exists()
        event.write_text('{"source": "clear"}')
        assert "changed: event.json\n" in watching.round()
        assert marked(mark) == [watching.process.pid]
        watching.process.terminate()
        assert watching.process.wait() == -signal.SIGTERM
        assert await none_left(mark)
    finally:
        watching.process.kill()
        watching.process.communicate()


def test_a_file_that_every_round_writes_starts_no_rounds_for_ever(
    tmp_path: Path,
) -> None:
    write = "date +%N > made.py"  # in the folder of the hook
    (tmp_path / "hook.sh").write_text(f"cd {tmp_path}; {write}\n")
    # Files without an end, or that make a reader wait, are not read.
    (tmp_path / "endless.py").symlink_to("/dev/zero")
    os.mkfifo(tmp_path / "waits.sh")
    cases = tmp_path / "hook.hooktest.toml"
    cases.write_text('event = "SessionStart"\n[[case]]\nname = "x"\n')
    watching = Watching(tmp_path)
    try:
        seen = ""
        assert watching.process.stdout
        while "made.py changes in every round: it is no longer" not in seen:
            seen += watching.process.stdout.readline()
        assert "1 passed" in watching.round()
        cases.write_text(cases.read_text().replace("x", "y"))
        assert "changed: hook.hooktest.toml\n" in watching.round()
    finally:
        watching.process.kill()
        watching.process.communicate()


def test_it_ends_with_control_c_on_a_terminal(project: Path) -> None:
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(project)
        words = [sys.executable, "-m", "hookline.cli.main", "watch", *ENV_FILE]
        os.execve(sys.executable, words, {**os.environ, "TERM": "xterm"})
    seen = b""
    while READY.encode() not in seen:
        seen += os.read(terminal, 4096)
    assert b"\x1b[31mblocked\x1b[0m" in seen
    os.write(terminal, b"\x03")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    os.close(terminal)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("BeforTool",), "did you mean 'BeforeTool'?"),
        (("./nowhere",), "nowhere: no such file or folder"),
        (("BeforeTool", "--tool", "x", "AfterTool"), "only one event at a time"),
        (("--tool", "x", ".", "./nowhere", "BeforeTool"), "nowhere: no such file"),
        (("--tool", "x"), "name the event to fire"),
        (("BeforeTool",), "BeforeTool needs a tool name"),
        ((*EVENT, "{"), "--tool-input is not valid JSON"),
    ],
)
def test_usage_errors_are_explained(
    tmp_path: Path,
    words: tuple[str, ...],
    problem: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["watch", *words]) == 1
    assert problem in capsys.readouterr().err
