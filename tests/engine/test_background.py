"""``async``: started and not waited for (protocol.md#rules, issue 13.4)."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from hookline import HookBusClient, HookSystem, InMemoryMessageBus, RemoteHooks
from hookline.engine.background import MAX_RUNNING
from hookline.journal.query import EventFilter, read_journal
from tests.support.commandline import hookline
from tests.support.processes import until
from tests.support.workshop import TOOL, Workshop


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    return Workshop(tmp_path)


def later(command: str, name: str = "later", **more: Any) -> dict[str, Any]:
    return {"type": "command", "command": command, "name": name, "async": True, **more}


@pytest.mark.parametrize("sequential", [False, True])
async def test_it_is_started_and_not_waited_for(
    workshop: Workshop, sequential: bool
) -> None:
    """The event is answered while the hook still waits for a file."""
    hook = later("cat > seen; while [ ! -e go ]; do sleep 0.02; done; touch done")
    settings = workshop.settings("BeforeTool", hook, sequential=sequential)
    async with HookSystem(workshop.config(settings)) as hooks:
        result = await hooks.event_handler.fire("BeforeTool", TOOL)
        assert not (workshop.folder / "done").exists()
        (workshop.folder / "go").touch()
        await until(str(workshop.folder / "done"))
    (found,) = result.aggregated.hook_results
    assert found.is_async
    assert found.output is None
    seen = json.loads((workshop.folder / "seen").read_text())
    assert seen["tool_input"] == TOOL["tool_input"]


async def test_its_output_counts_for_nothing(workshop: Workshop) -> None:
    hooks = [
        later("echo no >&2; exit 2", "blocks"),
        later("echo '{\"continue\": false}'", "stops"),
        later("exit 7", "fails", onError="block"),
        {"type": "rule", "when": "true", "name": "rule", "async": True},
        workshop.says({"systemMessage": "hello"}),
    ]
    result = await workshop.fire("BeforeTool", *hooks)
    assert not result.blocked
    assert not result.should_stop
    assert result.aggregated.success
    assert result.system_message == "hello"
    assert [hook.is_async for hook in result.aggregated.hook_results] == [
        *[True] * 4,
        False,
    ]


async def test_it_is_not_asked_again(workshop: Workshop) -> None:
    """Async hooks are not re-checked, nor do they change the input.

    protocol.md#several-hooks
    """
    change = {"hookSpecificOutput": {"tool_input": {"path": "other"}}}
    hooks = [later("echo x >> runs"), workshop.says(change)]
    result = await workshop.fire("BeforeTool", *hooks)
    assert not any(hook.recheck for hook in result.aggregated.hook_results)
    assert (workshop.folder / "runs").read_text() == "x\n"


async def test_dispose_lets_it_finish(workshop: Workshop) -> None:
    await workshop.fire("BeforeTool", later("sleep 0.3; touch done"))
    assert (workshop.folder / "done").exists()


async def test_dispose_gives_it_its_timeout_and_no_more(workshop: Workshop) -> None:
    await workshop.fire("BeforeTool", later("sleep 60; touch done", timeout=200))
    assert not (workshop.folder / "done").exists()


async def test_the_host_may_change_its_objects_at_once(workshop: Workshop) -> None:
    hook = later("while [ ! -e go ]; do sleep 0.02; done; cat > seen")
    function = {"type": "rule", "when": "true", "async": True}
    settings = workshop.settings("BeforeTool", hook, function)
    given = {"tool_name": "t", "tool_input": {"path": "before"}}
    async with HookSystem(workshop.config(settings)) as hooks:
        await hooks.event_handler.fire("BeforeTool", given)
        given["tool_input"] = {"path": "after"}
        (workshop.folder / "go").touch()
    seen = json.loads((workshop.folder / "seen").read_text())
    assert seen["tool_input"] == {"path": "before"}


async def test_only_so_many_run_at_a_time_in_order(workshop: Workshop) -> None:
    running = most = 0
    order: list[int] = []
    gate, full = asyncio.Event(), asyncio.Event()
    settings = {
        **workshop.settings("BeforeTool"),
        "hooksConfig": {"maxProcesses": 1000},
    }
    config = workshop.config(settings)
    async with HookSystem(config) as hooks:

        async def busy(event: dict[str, Any]) -> None:
            nonlocal running, most
            running += 1
            most = max(most, running)
            order.append(event["tool_input"]["n"])
            if running == MAX_RUNNING:
                full.set()
            await gate.wait()
            running -= 1

        hooks.on("BeforeTool", asynchronous=True)(busy)
        for number in range(MAX_RUNNING + 10):
            given = {"tool_name": "t", "tool_input": {"n": number}}
            await hooks.event_handler.fire("BeforeTool", given)
        await full.wait()
        assert (running, most) == (MAX_RUNNING, MAX_RUNNING)
        gate.set()
    assert order == list(range(MAX_RUNNING + 10))
    assert most == MAX_RUNNING


async def test_another_event_loop_takes_nothing_away(workshop: Workshop) -> None:
    """Several threads may each have a loop, as plain functions of an agent have."""
    ran: list[int] = []
    gate = asyncio.Event()
    async with HookSystem(workshop.config(workshop.settings("BeforeTool"))) as hooks:

        async def busy(event: dict[str, Any]) -> None:
            if event["tool_name"] == "here":
                await gate.wait()
            ran.append(event["tool_input"]["n"])

        async def start(tool: str, number: int) -> None:
            given = {"tool_name": tool, "tool_input": {"n": number}}
            await hooks.event_handler.fire("BeforeTool", given)

        async def elsewhere() -> None:
            await start("elsewhere", -1)
            others = asyncio.all_tasks() - {asyncio.current_task()}
            await asyncio.gather(*others)

        hooks.on("BeforeTool", asynchronous=True)(busy)
        for number in range(MAX_RUNNING + 10):
            await start("here", number)
        await asyncio.to_thread(lambda: asyncio.run(elsewhere()))
        gate.set()
    assert ran == [-1, *range(MAX_RUNNING + 10)]


@pytest.mark.parametrize("slow", [False, True], ids=["late", "early"])
async def test_what_it_said_is_recorded(
    workshop: Workshop, tmp_path: Path, slow: bool
) -> None:
    """Filled in when it ends, before or after the event itself is written."""
    hooks = [later('echo \'{"decision": "deny", "reason": "late"}\'')]
    if slow:
        wait = "cat >/dev/null; while [ ! -e go ]; do sleep 0.02; done"
        hooks = [later('touch go; echo \'{"decision": "deny"}\''), workshop.runs(wait)]
    journal = tmp_path / "journal.sqlite"
    settings = workshop.settings("BeforeTool", *hooks)
    system = HookSystem(workshop.config(settings))
    system.record_to(str(journal))
    async with system:
        result = await system.event_handler.fire("BeforeTool", TOOL)
        assert not result.blocked
    with read_journal(str(journal)) as reader:
        (entry,) = reader.newest(EventFilter(), None)
        full = reader.find(entry.id)
    assert full is not None
    assert entry.verdict == "allowed"
    hook = full.hooks[0]
    assert (hook["async"], hook["ended"], hook["blocked"]) == (True, True, False)
    assert hook["output"]["decision"] == "deny"


@pytest.mark.parametrize("end", ["dispose", "loop"])
async def test_what_is_ended_with_its_host_is_recorded_as_a_failure(
    workshop: Workshop, tmp_path: Path, end: str
) -> None:
    """Neither one that ran nor one that waited looks like a success.

    protocol.md#rules
    """
    journal = tmp_path / "journal.sqlite"
    system = HookSystem(workshop.config(workshop.settings("BeforeTool")))
    system.record_to(str(journal))

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
    with read_journal(str(journal)) as reader:
        entries = list(reader.newest(EventFilter(), None))
        found = [reader.find(entry.id) for entry in entries]
    hooks = [one.hooks[0] for one in found if one is not None]
    assert len(hooks) == MAX_RUNNING + 1
    ended = [hook for hook in hooks if hook["ended"]]
    assert len(ended) >= MAX_RUNNING
    assert not any(hook["success"] for hook in hooks)
    assert all(hook["failed"] and hook["error"] for hook in ended)


async def test_it_is_shown_over_a_bus(workshop: Workshop) -> None:
    """protocol.md#bus: a verdict means the same on both paths."""
    hooks = (later("true"), workshop.says({"decision": "deny", "reason": "no"}))
    bus = InMemoryMessageBus()
    config = workshop.config(workshop.settings("BeforeTool", *hooks))
    async with HookSystem(config, message_bus=bus):
        remote = RemoteHooks(HookBusClient(bus))
        result = await remote.fire("BeforeTool", TOOL)
    assert (result.blocked, result.reason) == (True, "no")
    assert [h.is_async for h in result.aggregated.hook_results] == [True, False]
    assert result.aggregated.success


def fire(folder: Path, hook: dict[str, Any], *words: str) -> Any:
    settings = folder / "s.json"
    settings.write_text(json.dumps({"hooks": {"BeforeTool": [{"hooks": [hook]}]}}))
    return hookline(
        *("fire", "BeforeTool", "--tool", "t", "--settings", str(settings), *words),
        cwd=folder,
    )


def test_json_of_fire_has_null_results(tmp_path: Path) -> None:
    done = fire(tmp_path, later("touch done"), "--json")
    (hook,) = json.loads(done.stdout)["hooks"]
    assert hook["async"] is True
    for name in ("success", "exit_code", "output", "stdout", "error", "duration_ms"):
        assert hook[name] is None
    assert (tmp_path / "done").exists()


def test_a_command_ends_what_takes_longer_than_two_seconds(tmp_path: Path) -> None:
    """It prints its answer first; nothing is left behind."""
    done = fire(tmp_path, later("echo $$ > pid; exec sleep 300"))
    assert "started later (explicit, not waited for)" in done.stdout
    pid = (tmp_path / "pid").read_text().strip()
    assert not Path(f"/proc/{pid}").exists()


def claude(command: str, **more: Any) -> dict[str, Any]:
    hook = {"type": "command", "name": "later", "command": command}
    return {**hook, "dialect": "claude", **more}


@pytest.mark.parametrize("sequential", [False, True])
@pytest.mark.parametrize(
    "first_line",
    ['{"async": true}', ' {"asyncTimeout":60000,"async":true} ', '\n{"async": true}'],
)
async def test_a_claude_hook_whose_first_line_says_so_is_not_waited_for(
    workshop: Workshop, first_line: str, sequential: bool
) -> None:
    """protocol.md#dialects: what follows counts for nothing, and is recorded."""
    wait = "while [ ! -e go ]; do sleep 0.02; done"
    command = f"cat > seen; echo '{first_line}'; {wait}; echo no >&2; touch done"
    hook = claude(f"{command}; exit 2", timeout=5000)
    settings = workshop.settings("BeforeTool", hook, sequential=sequential)
    journal = str(workshop.folder / "journal.sqlite")
    system = HookSystem(workshop.config(settings))
    system.record_to(journal)
    async with system:
        result = await system.event_handler.fire("BeforeTool", TOOL)
        assert not (workshop.folder / "done").exists()
        (workshop.folder / "go").touch()
        await until(str(workshop.folder / "done"))
    (found,) = result.aggregated.hook_results
    assert found.is_async
    assert not result.blocked
    with read_journal(journal) as reader:
        (entry,) = reader.newest(EventFilter(), None)
        full = reader.find(entry.id)
    assert full is not None
    assert entry.verdict == "allowed"
    recorded = full.hooks[0]
    assert (recorded["async"], recorded["ended"]) == (True, True)
    assert (recorded["exit_code"], recorded["output"]) == (2, None)


async def test_a_claude_hook_without_a_newline_after_its_word_is_not_waited_for(
    workshop: Workshop,
) -> None:
    hook = claude("printf '{\"async\": true}'; sleep 60", timeout=300, onError="block")
    result = await workshop.fire("BeforeTool", hook)
    (left,) = result.aggregated.hook_results
    assert (left.is_async, result.blocked) == (True, False)


async def test_a_claude_hook_that_goes_on_has_the_time_that_it_asked_for(
    workshop: Workshop,
) -> None:
    said = '{"async": true, "asyncTimeout": 200}'
    await workshop.fire("BeforeTool", claude(f"echo '{said}'; sleep 60; touch done"))
    assert not (workshop.folder / "done").exists()
    said = '{"async": true, "asyncTimeout": 5000}'
    command = f"echo '{said}'; sleep 0.5; touch done"
    await workshop.fire("BeforeTool", claude(command, timeout=200))
    assert (workshop.folder / "done").exists()


@pytest.mark.parametrize(
    "said",
    [
        '{"async": false}',
        '{"async": "true"}',
        'x {"async": true}',
        '{"decision": null}',
    ],
)
async def test_a_claude_hook_that_says_something_else_first_is_waited_for(
    workshop: Workshop, said: str
) -> None:
    hook = claude(f"echo '{said}'; sleep 0.1; echo no >&2; exit 2")
    assert (await workshop.fire("BeforeTool", hook)).blocked


async def test_only_claude_hooks_are_left_alone_by_their_first_line(
    workshop: Workshop,
) -> None:
    hook = claude("echo '{\"async\": true}'; exit 2", dialect="hookline")
    assert (await workshop.fire("BeforeTool", hook)).blocked


async def test_cancelling_an_event_ends_a_claude_hook(workshop: Workshop) -> None:
    settings = workshop.settings("BeforeTool", claude("touch began; sleep 60"))
    async with HookSystem(workshop.config(settings)) as hooks:
        task = asyncio.ensure_future(hooks.event_handler.fire("BeforeTool", TOOL))
        await until(str(workshop.folder / "began"))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
