"""``async``: started and not waited for (protocol.md#rules).

What such a hook counts for is in ``tests/pins/engine/failures.json``.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from hookline import HookSystem
from hookline.journal.query import EventFilter, read_journal
from tests.support.commandline import hookline
from tests.support.processes import until
from tests.support.workspace import TOOL, Workspace

MAX_RUNNING = 64
"""In each event loop."""
WAIT = "while [ ! -e go ]; do sleep 0.02; done"


def later(command: str, **more: Any) -> dict[str, Any]:
    hook = {"type": "command", "command": command, "name": "later", "async": True}
    return {**hook, **more}


def claude(command: str, **more: Any) -> dict[str, Any]:
    hook = {"type": "command", "name": "later", "command": command}
    return {**hook, "dialect": "claude", **more}


def recorded_hooks(journal: Path) -> list[dict[str, Any]]:
    """The first hook of each event, the newest event first; all were allowed."""
    with read_journal(str(journal)) as reader:
        entries = list(reader.newest(EventFilter(), None))
        events = [reader.find(entry.id) for entry in entries]
    assert {entry.verdict for entry in entries} == {"allowed"}
    return [event.hooks[0] for event in events if event is not None]


FIRST_LINES = [
    '{"async": true}',
    ' {"asyncTimeout":9000,"async":true} ',
    '\n{"async": true}',
]
ENDINGS = {
    "in the settings": later(f"cat > seen; {WAIT}; echo no >&2; touch done; exit 2"),
    **{
        f"by its first line {line!r}": claude(
            f"cat > seen; echo '{line}'; {WAIT}; echo no >&2; touch done; exit 2",
            timeout=5000,
        )
        for line in FIRST_LINES
    },
}


@pytest.mark.parametrize("sequential", [False, True])
@pytest.mark.parametrize("hook", ENDINGS.values(), ids=ENDINGS)
async def test_hook_is_started_and_not_waited_for(
    workspace: Workspace, hook: dict[str, Any], sequential: bool
) -> None:
    """The event is answered while the hook still waits for a file.

    protocol.md#dialects: what follows counts for nothing, and is recorded. The host
    may change its objects at once.
    """
    event = {"tool_name": "t", "tool_input": {"path": "before"}}
    settings = workspace.settings("BeforeTool", hook, sequential=sequential)
    journal = workspace.folder / "journal.sqlite"
    system = HookSystem(workspace.config(settings))
    system.record_to(str(journal))
    async with system:
        result = await system.event_handler.fire("BeforeTool", event)
        event["tool_input"] = {"path": "after"}
        assert not (workspace.folder / "done").exists()
        (workspace.folder / "go").touch()
        await until(str(workspace.folder / "done"))
    (left,) = result.aggregated.hook_results
    assert (left.is_async, left.output, result.blocked) == (True, None, False)
    seen = json.loads((workspace.folder / "seen").read_text())
    assert seen["tool_input"] == {"path": "before"}
    (recorded,) = recorded_hooks(journal)
    assert (recorded["async"], recorded["ended"]) == (True, True)
    assert (recorded["exit_code"], recorded["blocked"]) == (2, False)


async def test_hook_that_ends_before_its_event_is_written_is_recorded(
    workspace: Workspace,
) -> None:
    first = later('touch go; echo \'{"decision": "deny"}\'')
    config = workspace.config(
        workspace.settings(
            "BeforeTool", first, workspace.runs(f"cat >/dev/null; {WAIT}")
        )
    )
    system = HookSystem(config)
    system.record_to(str(workspace.folder / "journal.sqlite"))
    async with system:
        await system.event_handler.fire("BeforeTool", TOOL)
    (recorded,) = recorded_hooks(workspace.folder / "journal.sqlite")
    assert (recorded["async"], recorded["ended"]) == (True, True)
    assert recorded["output"]["decision"] == "deny"


LONGER = """echo '{"async": true, "asyncTimeout": 5000}'; sleep 0.5; touch done"""
TIMES: dict[str, tuple[dict[str, Any], bool]] = {
    "it may finish": (later("sleep 0.3; touch done"), True),
    "its timeout": (later("sleep 60; touch done", timeout=200), False),
    "less than its timeout": (
        claude("""echo '{"async": true, "asyncTimeout": 200}'; sleep 60; touch done"""),
        False,
    ),
    "more than its timeout": (claude(LONGER, timeout=200), True),
    "no newline after its word": (
        claude("printf '{\"async\": true}'; sleep 60; touch done", timeout=300),
        False,
    ),
}


@pytest.mark.parametrize(("hook", "ends"), TIMES.values(), ids=TIMES)
async def test_dispose_gives_a_hook_the_time_that_it_has(
    workspace: Workspace, hook: dict[str, Any], ends: bool
) -> None:
    result = await workspace.fire("BeforeTool", hook)
    (left,) = result.aggregated.hook_results
    assert (left.is_async, result.blocked) == (True, False)
    assert (workspace.folder / "done").exists() is ends


async def test_only_so_many_hooks_run_at_a_time_in_order(workspace: Workspace) -> None:
    """Another event loop takes nothing away: several threads may each have one."""
    running = most = 0
    order: list[int] = []
    gate, full = asyncio.Event(), asyncio.Event()
    async with HookSystem(workspace.config({})) as hooks:

        async def busy(event: dict[str, Any]) -> None:
            nonlocal running, most
            order.append(event["tool_input"]["n"])
            if event["tool_name"] == "elsewhere":
                return
            running += 1
            most = max(most, running)
            if running == MAX_RUNNING:
                full.set()
            await gate.wait()
            running -= 1

        async def start(tool: str, number: int) -> None:
            event = {"tool_name": tool, "tool_input": {"n": number}}
            await hooks.event_handler.fire("BeforeTool", event)

        async def elsewhere() -> None:
            await start("elsewhere", -1)
            others = asyncio.all_tasks() - {asyncio.current_task()}
            await asyncio.gather(*others)

        hooks.on("BeforeTool", asynchronous=True)(busy)
        for number in range(MAX_RUNNING + 10):
            await start("here", number)
        await full.wait()
        assert (running, most) == (MAX_RUNNING, MAX_RUNNING)
        await asyncio.to_thread(lambda: asyncio.run(elsewhere()))
        gate.set()
    assert most == MAX_RUNNING
    assert order.index(-1) <= MAX_RUNNING
    order.remove(-1)
    assert order == list(range(MAX_RUNNING + 10))


@pytest.mark.parametrize("end", ["dispose", "loop"])
async def test_hook_that_is_ended_with_its_host_is_recorded_as_a_failure(
    workspace: Workspace, end: str
) -> None:
    """Neither one that ran nor one that waited looks like a success.

    protocol.md#rules
    """
    system = HookSystem(workspace.config({}))
    system.record_to(str(workspace.folder / "journal.sqlite"))

    @system.on("BeforeTool", asynchronous=True)
    async def endless(_: object) -> None:
        await asyncio.sleep(300)

    async def fire() -> None:
        await system.initialize()
        for _ in range(MAX_RUNNING + 1):
            await system.event_handler.fire("BeforeTool", TOOL)
        await asyncio.sleep(0.01)
        if end == "dispose":
            await system.dispose(background_s=0)

    await asyncio.to_thread(lambda: asyncio.run(fire()))
    await system.dispose()
    hooks = recorded_hooks(workspace.folder / "journal.sqlite")
    assert len(hooks) == MAX_RUNNING + 1
    ended = [hook for hook in hooks if hook["ended"]]
    assert len(ended) >= MAX_RUNNING
    assert not any(hook["success"] for hook in hooks)
    assert all(hook["failed"] and hook["error"] for hook in ended)


def test_command_ends_what_takes_longer_than_two_seconds(tmp_path: Path) -> None:
    """It prints its answer first; nothing is left behind. Results are null in JSON."""

    def fire(hook: dict[str, Any], *words: str) -> Any:
        settings = {"hooks": {"BeforeTool": [{"hooks": [hook]}]}}
        (tmp_path / "s.json").write_text(json.dumps(settings))
        arguments = ("--tool", "t", "--settings", "s.json", *words)
        return hookline("fire", "BeforeTool", *arguments, cwd=tmp_path)

    (hook,) = json.loads(fire(later("touch done"), "--json").stdout)["hooks"]
    assert hook["async"] is True
    for name in ("success", "exit_code", "output", "stdout", "error", "duration_ms"):
        assert hook[name] is None
    assert (tmp_path / "done").exists()
    done = fire(later("echo $$ > pid; exec sleep 300"))
    assert "started later (explicit, not waited for)" in done.stdout
    pid = (tmp_path / "pid").read_text().strip()
    assert not Path(f"/proc/{pid}").exists()


async def test_cancelling_an_event_ends_a_claude_hook(workspace: Workspace) -> None:
    settings = workspace.settings("BeforeTool", claude("touch began; sleep 60"))
    async with HookSystem(workspace.config(settings)) as hooks:
        task = asyncio.ensure_future(hooks.event_handler.fire("BeforeTool", TOOL))
        await until(str(workspace.folder / "began"))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
