"""Sessions: many conversations share one hook system, and none sees another's id."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys
import threading
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from hookline import Config, HookSystem, InMemoryMessageBus, Settings
from hookline.agent import Session, execute_tool_with_hooks, hooked_tool, session_of
from hookline.bus import HookBusClient, RemoteHooks
from tests.support.processes import children, descriptors, wait_until
from tests.support.recorded_events import RecordedHooks

WORKER = """
import json, os
from hookline.script import run

def main(event):
    with open({file!r}, "a") as log:
        variable = os.environ["HOOKLINE_SESSION_ID"]
        print(json.dumps([os.getpid(), event["session_id"], variable]), file=log)

run(main)
"""
TOOL: dict[str, Any] = {"tool_name": "write", "tool_input": {"path": "a"}}


def worker_config(folder: Path) -> Config:
    """A config with one warm worker that notes pid and session."""
    script = folder / "worker.py"
    script.write_text(WORKER.format(file=str(folder / "log")))
    hook = {"type": "worker", "command": f"{sys.executable} {script}", "pool": 1}
    settings = {"hooks": {"BeforeTool": [{"hooks": [hook]}]}}
    return Config("own", folder, Settings.from_mapping(settings))


def noted(folder: Path) -> list[tuple[int, str, str]]:
    lines = (folder / "log").read_text().splitlines()
    return [tuple(json.loads(line)) for line in lines]


def counting_config() -> tuple[Config, list[dict[str, Any]]]:
    """A config whose hook in this process lists the events that it saw."""

    def deny(event: dict[str, Any]) -> dict[str, Any]:
        return {"decision": "deny", "reason": f"no, {event['session_id']}"}

    hooks = RecordedHooks({"BeforeTool": deny}, session_id="own")
    return hooks.config, hooks.events


async def test_events_carry_the_session_in_input_and_environment(
    tmp_path: Path,
) -> None:
    echo = {"$process": {"command": 'echo "$HOOKLINE_SESSION_ID" >> ids; exit 0'}}
    hooks = RecordedHooks({"BeforeTool": [echo, None]}, tmp_path)
    async with hooks.config as config:
        for session in (config.session("a", transcript_path="t.jsonl"), config):
            await execute_tool_with_hooks(session, "write", {}, lambda _: "ok")
    first, second = hooks.events
    assert (first["session_id"], first["transcript_path"]) == ("a", "t.jsonl")
    assert (second["session_id"], second["transcript_path"]) == ("s-1", "")
    assert (tmp_path / "ids").read_text().split() == ["a", "s-1"]


async def test_a_session_does_not_inherit_the_transcript_of_its_config() -> None:
    config = Config("own", ".", Settings(), transcript_path="mine.jsonl")
    assert session_of(config).transcript_path == "mine.jsonl"
    assert session_of(config).session_id == "own"
    for session in (config.session("other"), Session(config, "other")):
        assert session.transcript_path == ""
        assert session.view("b", transcript_path="b.jsonl").transcript_path == "b.jsonl"


def test_a_session_without_an_id_gets_a_new_one() -> None:
    config = Config("own", ".", Settings())
    first, second = config.session(), config.session()
    assert len({first.session_id, second.session_id, "own"}) == 3


@pytest.mark.parametrize("session_id", [17, b"17", "17"], ids=repr)
async def test_hooks_see_the_id_of_the_session_as_text(session_id: object) -> None:
    """Whatever its type, and whatever id the input claims."""
    config, events = counting_config()
    async with config:
        forged = {**TOOL, "session_id": "forged"}
        await config.session(session_id).fire("BeforeTool", forged)
    assert events[0]["session_id"] == "17"


async def test_without_hooks_an_event_is_an_empty_success() -> None:
    config = Config("own", ".", Settings.from_mapping({"enableHooks": False}))
    result = await config.session("a").fire("BeforeTool", TOOL)
    assert result.aggregated.success
    assert not result.blocked
    assert not await config.session("a").has_hooks("BeforeTool")


async def test_a_thousand_sessions_at_once_share_one_warm_worker(
    tmp_path: Path,
) -> None:
    """Workers get session and environment with each request."""
    config = worker_config(tmp_path)
    async with config:
        await config.session("first").fire("BeforeTool", TOOL)
        gc.collect()  # what other tests left open is not counted here
        before = (len(children()), threading.active_count(), len(descriptors()))
        sessions = [config.session(str(at)) for at in range(1000)]
        await asyncio.gather(
            *(session.fire("BeforeTool", TOOL) for session in sessions)
        )
        after = (len(children()), threading.active_count(), len(descriptors()))
    assert all(now <= then for now, then in zip(after, before, strict=True))
    requests = noted(tmp_path)
    assert len({pid for pid, *_ in requests}) == 1
    assert sorted(names for _, *names in requests) == sorted(
        [name, name] for name in ("first", *map(str, range(1000)))
    )


async def test_a_session_with_a_turn_takes_less_than_5_kib() -> None:
    config, _ = counting_config()
    async with config:
        await config.session("warm").begin_turn("go")
        gc.collect()
        tracemalloc.start()
        conversations = []
        for at in range(1000):
            session = config.session(f"conversation-{at}")
            call = await session.begin_tool("write", {"path": "a"})
            conversations.append((session, await session.begin_turn("go"), call))
        size, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert size / len(conversations) < 5 * 1024


def test_fire_sync_without_a_running_loop() -> None:
    config, events = counting_config()
    assert config.session("a").fire_sync("BeforeTool", TOOL).reason == "no, a"
    system = config.get_hook_system()
    assert system is not None
    assert system.fire_sync("BeforeTool", TOOL).reason == "no, own"
    assert [event["session_id"] for event in events] == ["a", "own"]
    asyncio.run(config.dispose())


async def test_fire_sync_inside_a_running_loop_and_from_threads() -> None:
    config, events = counting_config()
    async with config:
        assert config.session("here").fire_sync("BeforeTool", TOOL).blocked
        calls = [
            asyncio.to_thread(config.session(str(at)).fire_sync, "BeforeTool", TOOL)
            for at in range(8)
        ]
        results = await asyncio.gather(*calls)
        assert all(result.blocked for result in results)
    assert {event["session_id"] for event in events} == {"here", *map(str, range(8))}


async def test_fire_sync_with_a_worker_that_another_loop_uses(tmp_path: Path) -> None:
    before = set(children())
    config = worker_config(tmp_path)
    async with config:
        await config.session("a").fire("BeforeTool", TOOL)
        assert config.session("b").fire_sync("BeforeTool", TOOL).aggregated.success
        await config.session("c").fire("BeforeTool", TOOL)
    assert [session for _, session, _ in noted(tmp_path)] == ["a", "b", "c"]
    assert set(children()) <= before


@pytest.mark.parametrize("kind", ["worker", "command"])
async def test_fire_sync_does_not_wait_for_the_loop_that_it_blocks(
    tmp_path: Path, kind: str
) -> None:
    """A hook of this loop holds the only place, and cannot end while it is blocked."""
    before = set(children())
    script = tmp_path / "slow.py"
    script.write_text(
        "import pathlib, time\nfrom hookline.script import run\n\n"
        "def main(event):\n"
        "    pathlib.Path(event['session_id']).touch()\n"
        "    while not pathlib.Path('sync').exists():\n        time.sleep(0.01)\n\n"
        "run(main)\n"
    )
    hook = {"type": kind, "command": f"{sys.executable} {script}"}
    settings = {
        "hooks": {"BeforeTool": [{"hooks": [hook]}]},
        "hooksConfig": {"maxProcesses": 1},
    }
    config = Config("own", tmp_path, Settings.from_mapping(settings))
    async with config:
        running = asyncio.create_task(config.session("async").fire("BeforeTool", TOOL))
        await wait_until((tmp_path / "async").exists)
        result = config.session("sync").fire_sync("BeforeTool", TOOL)
        assert result.aggregated.success
        assert (await running).aggregated.success
    assert set(children()) <= before


async def test_fire_sync_over_a_bus_in_this_process() -> None:
    config, events = counting_config()
    bus = InMemoryMessageBus()
    there = Config("there", ".", Settings())
    async with HookSystem(there, message_bus=bus) as hooks:

        @hooks.on("BeforeTool")
        def deny(event: dict[str, Any]) -> dict[str, Any]:
            events.append(event)
            return {"decision": "deny", "reason": "far away"}

        config.use_hooks(RemoteHooks(HookBusClient(bus, "block")))
        session = config.session("a", transcript_path="t")
        both = "far away\nno, a"  # the config's own hook is asked as well
        # Nobody here knows what listens there: answers of models are held back.
        assert await session.has_hooks("AfterModel")
        assert session.fire_sync("BeforeTool", TOOL).reason == both
        assert (await session.fire("BeforeTool", TOOL)).reason == both
        result = await asyncio.to_thread(session.fire_sync, "BeforeTool", TOOL)
        assert result.reason == both
        await config.dispose()
    ids = {(event["session_id"], event["transcript_path"]) for event in events}
    assert ids == {("a", "t")}


async def test_fire_sync_inside_a_hook_does_not_wait_for_itself() -> None:
    config, _ = counting_config()
    system = config.get_hook_system()
    assert system is not None

    @system.on("BeforeAgent")
    def nested(_: dict[str, Any]) -> dict[str, Any]:
        result = config.session("inner").fire_sync("BeforeTool", TOOL)
        return {"decision": "deny", "reason": result.reason}

    async with config:
        result = config.session("a").fire_sync("BeforeAgent", {"prompt": "x"})
        assert result.reason == "no, inner"


async def test_sessions_are_views_that_the_callers_take() -> None:
    config, events = counting_config()
    session = config.session("a")
    assert session_of(session) is session
    assert isinstance(session.view("b"), Session)
    async with config:

        @hooked_tool(session.view("b"))
        async def write(path: str) -> str:
            raise AssertionError(path)

        assert await write("x") == "no, b"
    assert [event["session_id"] for event in events] == ["b"]


async def test_hooks_without_effect_are_warned_about_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    config, _ = counting_config()
    reasons = {"BeforeTool": "it has no tools", "AfterTool": "neither"}
    async with config:
        for name in ("a", "b"):
            await config.session(name).warn_ineffective("nothing", reasons)
    messages = [record.getMessage() for record in caplog.records]
    assert messages == ["BeforeTool hooks have no effect in nothing: it has no tools"]


def test_a_session_starts_nothing(tmp_path: Path) -> None:
    config = worker_config(tmp_path)
    before = (children(), threading.active_count())
    config.session("a").view("b")
    assert (children(), threading.active_count()) == before
    assert os.listdir(tmp_path) == ["worker.py"]


def test_threads_that_use_a_config_first_at_once_all_get_its_hooks() -> None:
    """None goes on without its guards while another one builds the system."""
    hook = {"type": "python", "function": "hookline.testing.adapters:before_agent"}
    settings = Settings.from_mapping({"hooks": {"BeforeAgent": [{"hooks": [hook]}]}})
    for _ in range(20):
        config, ready = Config("own", ".", settings), threading.Barrier(8)

        def fire(config: Config = config, ready: threading.Barrier = ready) -> bool:
            ready.wait()
            event = config.session("a").fire("BeforeAgent", {"prompt": "forbidden"})
            return asyncio.run(event).blocked

        with ThreadPoolExecutor(8) as threads:
            fired = [threads.submit(fire) for _ in range(8)]
        asyncio.run(config.dispose())
        assert all(verdict.result() for verdict in fired)
