"""Functions as hooked tools, with and without an event loop of their own."""

from __future__ import annotations

import asyncio
import inspect
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from hookline import Config, Settings
from hookline.agent import hooked_tool
from hookline.engine.background_loop import run_sync

from .scenes import BROKEN, config_of, events, names, runs, says, specific, told

_others: set[threading.Thread] = set()


@pytest.fixture(autouse=True)
def _know_others() -> None:
    """Configs of other tests that nobody has collected yet have loops too."""
    _others.clear()
    _others.update(background_threads())


def background_threads() -> list[threading.Thread]:
    """Those that were started since the test began."""
    found = [t for t in threading.enumerate() if t.name == "hookline-hooks"]
    return [thread for thread in found if thread not in _others]


def test_a_plain_function_passes_its_hooks_without_a_loop(tmp_path: Path) -> None:
    hooks = {
        "BeforeTool": specific(tool_input={"path": "src/a"}),
        "AfterTool": specific(additionalContext="noted"),
    }
    config = config_of(tmp_path, hooks)
    threads: list[threading.Thread] = []

    @hooked_tool(config)
    def write(path: str, size: int = 1) -> str:
        threads.append(threading.current_thread())
        return f"wrote {path} {size}"

    assert write("a", size=3) == told("wrote src/a 3\n\nnoted", "path")
    assert threads == [threading.current_thread()]
    assert events(tmp_path)[0]["tool_input"] == {"path": "a", "size": 3}
    assert events(tmp_path)[0]["tool_name"] == "write"
    asyncio.run(config.dispose())


async def test_a_plain_function_passes_its_hooks_inside_a_running_loop(
    tmp_path: Path,
) -> None:
    config = config_of(tmp_path, {"BeforeTool": runs("echo no >&2; exit 2")})

    @hooked_tool(config)
    def write(path: str) -> str:
        raise AssertionError(path)

    async with config:
        assert write("a") == "no"
        assert write("b") == "no"


async def test_an_async_function_passes_its_hooks_on_the_callers_loop(
    tmp_path: Path,
) -> None:
    config = config_of(tmp_path, {"BeforeTool": specific(tool_input={"path": "b"})})

    @hooked_tool(config, name="my_write")
    async def write(path: str) -> str:
        return f"wrote {path}"

    async with config:
        assert inspect.iscoroutinefunction(write)
        assert await write("a") == told("wrote b", "path")
    assert events(tmp_path)[0]["tool_name"] == "my_write"
    assert background_threads() == []


async def test_an_unchanged_value_comes_back_as_the_same_object(
    tmp_path: Path,
) -> None:
    config = config_of(tmp_path, {"AfterTool": runs("true")})
    value = {"rows": [1, 2]}

    @hooked_tool(config)
    def fetch() -> dict[str, Any]:
        return value

    async with config:
        assert fetch() is value


@pytest.mark.parametrize("kind", ["plain", "async"])
async def test_what_a_function_raises_is_raised_and_hooks_see_it(
    tmp_path: Path, kind: str
) -> None:
    config = config_of(tmp_path, {"AfterTool": runs("true")})
    tool = hooked_tool(config)

    @tool
    def broken() -> None:
        raise ValueError("disk full")

    @tool
    async def broken_async() -> None:
        raise ValueError("disk full")

    async with config:
        with pytest.raises(ValueError, match="disk full"):
            broken() if kind == "plain" else await broken_async()
    [event] = events(tmp_path)
    assert event["tool_response"]["error"] == {"message": "ValueError: disk full"}


async def test_a_stop_calls_on_stop_with_the_reason(tmp_path: Path) -> None:
    stops: list[str] = []
    hook = says({"continue": False, "stopReason": "enough"})
    config = config_of(tmp_path, {"BeforeTool": hook})

    @hooked_tool(config, on_stop=stops.append)
    def write() -> str:
        return "wrote"

    async with config:
        assert write() == "enough"
    assert stops == ["enough"]


@pytest.mark.parametrize("failure", list(BROKEN))
def test_a_function_runs_as_without_hooks_when_one_fails(
    tmp_path: Path, failure: str
) -> None:
    config = config_of(tmp_path, {"BeforeTool": BROKEN[failure]}, seen=False)

    @hooked_tool(config)
    def write(path: str) -> str:
        return f"wrote {path}"

    assert write("a").startswith("wrote a")
    asyncio.run(config.dispose())


def test_a_hooked_tool_may_call_another(tmp_path: Path) -> None:
    config = config_of(tmp_path, {"BeforeTool": runs("true")})
    tool = hooked_tool(config)

    @tool
    def inner() -> str:
        return "in"

    @tool
    def outer() -> str:
        return f"out {inner()}"

    assert outer() == "out in"
    assert names(tmp_path) == ["BeforeTool"] * 2
    asyncio.run(config.dispose())


def test_a_hook_in_this_process_may_call_a_hooked_tool(tmp_path: Path) -> None:
    """It runs on the background loop, which must not wait for itself."""
    config = Config("s-1", tmp_path, Settings())
    system = config.get_hook_system()
    assert system is not None
    tool = hooked_tool(config)

    @tool
    def note() -> str:
        return "noted"

    @system.on("BeforeTool", "^work$")
    def hook(_: dict[str, Any]) -> dict[str, Any]:
        return {"systemMessage": note()}

    @tool
    def work() -> str:
        return "worked"

    assert work() == "worked\n\n[System] noted"
    asyncio.run(config.dispose())


def test_hooks_that_call_hooked_tools_are_cut_off_at_their_depth(
    tmp_path: Path,
) -> None:
    config = Config("s-1", tmp_path, Settings())
    system = config.get_hook_system()
    assert system is not None
    count = 0

    @hooked_tool(config)
    def work() -> str:
        return "worked"

    @system.on("BeforeTool")
    def again(_: dict[str, Any]) -> None:
        nonlocal count
        count += 1
        work()

    assert work().startswith("worked")
    assert count == 4
    asyncio.run(config.dispose())


async def test_two_loops_share_the_limit_on_processes(tmp_path: Path) -> None:
    """A slot freed on one loop wakes a waiter on the other."""
    hook = runs("sleep 0.02")
    config = config_of(
        tmp_path, {"BeforeTool": hook}, hooks_config={"maxProcesses": 1}, seen=False
    )
    tool = hooked_tool(config)

    @tool
    def plain(n: int) -> int:
        return n

    @tool
    async def asynchronous(n: int) -> int:
        return n

    async with config, asyncio.timeout(60), asyncio.TaskGroup() as group:
        there = [group.create_task(asyncio.to_thread(plain, n)) for n in range(8)]
        here = [group.create_task(asynchronous(n)) for n in range(8)]
    assert [task.result() for task in there + here] == [*range(8), *range(8)]


def test_a_config_has_one_background_loop_which_ends_with_it(tmp_path: Path) -> None:
    config = config_of(tmp_path, {"BeforeTool": runs("true")})

    @hooked_tool(config)
    def write() -> str:
        return "wrote"

    write()
    write()
    [thread] = background_threads()
    asyncio.run(config.dispose())
    assert not thread.is_alive()
    assert write() == "wrote"
    asyncio.run(config.dispose())
    assert background_threads() == []


def test_a_background_loop_ends_with_a_config_that_is_forgotten(
    tmp_path: Path,
) -> None:
    config = config_of(tmp_path, {})
    run_sync(config, asyncio.sleep(0))
    [thread] = background_threads()
    del config
    thread.join(10)
    assert not thread.is_alive()


def test_a_program_that_never_disposes_still_ends(tmp_path: Path) -> None:
    program = """
from hookline import Config, Settings
from hookline.agent import hooked_tool
hooks = {"hooks": {"BeforeTool": [{"hooks": [{"type": "command", "command": "true"}]}]}}
config = Config(settings=Settings.from_mapping(hooks))
print(hooked_tool(config)(lambda: "done")())
"""
    ended = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "done\n", "")
