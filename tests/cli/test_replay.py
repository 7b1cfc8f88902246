"""``hookline replay`` as a child process, and how it ends.

Which verdicts it finds changed is in ``tests/pins/commands/replay.json``.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from hookline import Config, HookSystem, Settings
from tests.support.command_project import (
    ALLOW,
    GUARD,
    PATIENCE_S,
    CommandProject,
    command_hook,
    settings_of,
)
from tests.support.processes import STUBBORN, marked, until

NEW = ("--settings", "new.json")


@pytest.fixture
def three_events(command_project: CommandProject) -> CommandProject:
    """Three events that were allowed; the second one is forbidden by GUARD."""
    command_project.write("old.json", settings_of(ALLOW))
    for path in ("a", "forbidden", "c"):
        command_project.fire("old.json", "write_file", path=path)
    return command_project


def start(project: CommandProject, *words: str, **more: Any) -> subprocess.Popen[bytes]:
    """A replay that marks what it starts."""
    env = {**os.environ, **project.env, "REPLAY_TEST": str(project.project)}
    return project.start("replay", *NEW, "--json", *words, env=env, **more)


def test_progress_is_shown_on_a_terminal_after_a_second(
    command_project: CommandProject,
) -> None:
    command_project.write("old.json", settings_of(ALLOW))
    for tool in ("a", "b"):
        command_project.fire("old.json", tool)
    command_project.write("new.json", settings_of(command_hook("sleep 0.8", "slow")))
    words = ("replay", *NEW, "--jobs", "1")
    shown = command_project.on_terminal(*words)
    assert "replaying" in shown
    assert "2/2" in shown
    assert shown.endswith("\x1b[2K")
    assert command_project.run(*words).stderr == ""


def test_replay_takes_the_events_until_a_time(three_events: CommandProject) -> None:
    three_events.write("new.json", settings_of(GUARD))
    times = [entry["at"] for entry in three_events.json("log")]
    seconds = [0.0, *(datetime.fromisoformat(at).timestamp() for at in times)]
    for count, moment in enumerate(seconds):
        until_then = ("--until", f"@{moment + 0.0011:.4f}")
        report = three_events.json("replay", *NEW, *until_then)
        assert report["events"] == count
    both = ("--since", f"@{seconds[2]:.3f}", "--until", f"@{seconds[2] + 0.0011:.4f}")
    assert three_events.json("replay", *NEW, *both)["events"] == 1


def test_replay_does_not_count_truncated_events(
    command_project: CommandProject,
) -> None:
    command_project.write("old.json", settings_of(ALLOW))
    tool_call = {"tool_name": "t", "tool_input": {"content": "x" * 300_000}}
    file = str(command_project.write("in.json", tool_call))
    words = ("fire", "BeforeTool", "--settings", "old.json", "--record")
    command_project.run(*words, "--input", file)
    command_project.write("new.json", settings_of(command_hook("exit 2", "all")))
    ended = command_project.run("replay", *NEW)
    assert ended.returncode == 0
    assert "allowed → blocked (input truncated)" in ended.stdout
    report = command_project.json("replay", *NEW)
    assert (report["changed"], len(report["apart"])) == ([], 1)


def test_replay_does_not_count_events_of_hooks_in_code(
    command_project: CommandProject,
) -> None:
    journal = str(command_project.root / "code.sqlite")

    async def record() -> None:
        settings = Settings.from_mapping({"hooksConfig": {"journal": journal}})
        config = Config("s", command_project.project, settings)
        async with HookSystem(config) as system:
            system.on("BeforeTool")(lambda event: {"decision": "block"})
            await system.event_handler.fire_before_tool_event("t", {})

    asyncio.run(record())
    ended = command_project.run("replay", "--journal", journal)
    assert ended.returncode == 0
    assert "blocked → allowed (a hook in code took part)" in ended.stdout


needs_proc = pytest.mark.skipif(
    not Path("/proc/self/fd").exists(), reason="looks into /proc"
)


@needs_proc
@pytest.mark.parametrize("text", STUBBORN.values(), ids=list(STUBBORN))
async def test_sigterm_ends_a_replay_and_its_hooks(tmp_path: Path, text: str) -> None:
    """The child ends with the job, and no hook stays."""
    project = await asyncio.to_thread(recorded, tmp_path, text, events=1)
    with start(project) as running:
        await until(str(project.project / "started"))
        running.terminate()
        out, problems = running.communicate(timeout=PATIENCE_S)
    assert running.returncode == -signal.SIGTERM
    assert (out, problems) == (b"", b"")
    assert marked(f"REPLAY_TEST={project.project}") == []


def recorded(root: Path, text: str, *, events: int) -> CommandProject:
    """Events to replay with a hook of this text, each in a session of its own."""
    project = CommandProject(root)
    project.write("old.json", settings_of(ALLOW))
    project.write("new.json", settings_of(command_hook(text)))
    for _ in range(events):
        project.fire("old.json", "t")
    return project


@needs_proc
async def test_sigterm_ends_a_hook_that_is_just_being_started(tmp_path: Path) -> None:
    """Its number is not known yet, and it closes the pipe it could be found by."""
    text = STUBBORN["never reads stdin"]
    project = await asyncio.to_thread(recorded, tmp_path, text, events=3)
    for _ in range(5):
        with start(project, "--jobs", "3") as running:
            await until(str(project.project / "started"))
            running.terminate()
            running.communicate(timeout=PATIENCE_S)
        assert marked(f"REPLAY_TEST={project.project}") == []
        (project.project / "started").unlink()


@needs_proc
def test_replay_ends_when_nobody_reads_its_report(
    three_events: CommandProject,
) -> None:
    three_events.write("new.json", settings_of(command_hook("exit 2", "all")))
    read, write = os.pipe()
    os.close(read)
    with start(three_events, stdout=write) as running:
        os.close(write)
        _, problems = running.communicate(timeout=PATIENCE_S)
    assert (running.returncode, problems) == (141, b"")
    assert marked(f"REPLAY_TEST={three_events.project}") == []
