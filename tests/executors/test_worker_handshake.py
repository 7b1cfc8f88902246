"""Issue 13.6: a program that is no worker fails early, and a slow worker does not."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest

from hookline import ProcessedHookResult
from hookline.executors.worker import HANDSHAKE_S, NO_HANDSHAKE
from hookline.protocol.results import FailureCause, HookExecutionResult

from .bench import TOOL, WorkerBench, lives, until

TOLD = f"timed out after {HANDSHAKE_S * 1000:g} ms: {NO_HANDSHAKE}"
STARTED = """
import json, os, sys, time
with open("started", "a") as started:
    started.write(f"{os.getpid()}\\n")
"""
SILENT = {
    "never reads": "time.sleep(1000)",
    "reads to the end": "sys.stdin.read(); print('{}')",
    "reads lines and says nothing": "for line in sys.stdin: pass",
    "does not flush": "for line in sys.stdin: print(json.dumps("
    "{'id': json.loads(line)['id'], 'exit_code': 0, 'stdout': '', 'stderr': ''}))",
}
LOOP = """
def answer(frame, **more):
    said = {"id": frame["id"], "exit_code": 0, "stdout": "", "stderr": "", **more}
    print(json.dumps(said), flush=True)
def frames():
    for line in sys.stdin:
        with open("requests", "a") as requests:
            requests.write(line)
        yield json.loads(line)
"""
WAIT = """
    while not os.path.exists("go"):
        time.sleep(0.005)
"""


@pytest.fixture(autouse=True)
async def nothing_is_left(bench: WorkerBench) -> AsyncIterator[None]:
    yield
    await until(lambda: not any(map(lives, bench.pids("started"))))


def _ran(result: ProcessedHookResult) -> HookExecutionResult:
    (ran,) = result.aggregated.hook_results
    return ran


async def test_a_program_that_is_no_worker_fails_long_before_its_timeout(
    bench: WorkerBench,
) -> None:
    """With the cause of a timeout: policies that close on it still do."""
    made = {
        name: bench.hook(
            STARTED + body, name.replace(" ", "_"), env={"PYTHONUNBUFFERED": ""}
        )
        for name, body in SILENT.items()
    }
    async with bench.system(*made.values()) as hooks:
        result = await hooks.event_handler.fire("BeforeTool", TOOL)
        ran = result.aggregated.hook_results
        assert [one.error for one in ran] == [TOLD] * len(SILENT)
        assert {one.cause for one in ran} == {FailureCause.TIMEOUT}
        assert all(one.timed_out and not one.reran for one in ran)
        assert not result.blocked
        # Two of each: the one that is asked, and the one to shake hands with.
        assert len(bench.pids("started")) == 2 * len(SILENT)
        again = await hooks.event_handler.fire("BeforeTool", TOOL)
        assert [one.error for one in again.aggregated.hook_results] == [TOLD] * 4
        assert len(bench.pids("started")) == 2 * len(SILENT)


async def test_it_closes_where_timeouts_do_and_works_when_it_is_mended(
    bench: WorkerBench,
) -> None:
    options: dict[str, Any] = {"onError": {"timeout": "block"}, "pool": 2}
    hook = bench.hook(STARTED + SILENT["never reads"], **options)
    async with bench.system(hook) as hooks:
        fire = hooks.event_handler.fire_before_tool_event
        results = await asyncio.gather(fire("a", {}), fire("b", {}), fire("c", {}))
        assert all(result.blocked for result in results)
        assert all(NO_HANDSHAKE in str(result.reason) for result in results)
        bench.hook("from hookline.script import *\nrun(lambda e: block('mended'))")
        assert (await fire("d", {})).reason == "mended"


@pytest.mark.parametrize(
    "otherwise", ["answer(frame)", "raise KeyError", "os._exit(0)", "print('?')"]
)
async def test_a_slow_first_event_is_waited_for(
    bench: WorkerBench, otherwise: str
) -> None:
    """Workers that know no handshake answer it, or die, and keep their event."""
    body = f"""
for frame in frames():
    if frame["input"]["hook_event_name"] != "BeforeTool":
        {otherwise}
        break
    {WAIT}
    answer(frame, exit_code=2, stderr="slow")
"""
    async with bench.system(bench.hook(STARTED + LOOP + body)) as hooks:
        fired = asyncio.create_task(hooks.event_handler.fire("BeforeTool", TOOL))
        await until(lambda: len(bench.pids("started")) == 2)
        first, other = bench.pids("started")
        await until(lambda: not lives(other))
        (bench.folder / "go").touch()
        result = await fired
        assert (result.reason, _ran(result).reran) == ("slow", False)
        assert (await hooks.event_handler.fire("BeforeTool", TOOL)).reason == "slow"
        assert bench.pids("started") == [first, other]


async def test_a_hook_in_python_is_not_called_for_the_handshake(
    bench: WorkerBench,
) -> None:
    body = f"""
from hookline.script import *
def hook(event):
    with open("requests", "a") as requests:
        requests.write(event["hook_event_name"] + "\\n")
    {WAIT}
    return block("slow")
run(hook)
"""
    async with bench.system(bench.hook(STARTED + body)) as hooks:
        fired = asyncio.create_task(hooks.event_handler.fire("BeforeTool", TOOL))
        await until(lambda: len(bench.pids("started")) == 2)
        await until(lambda: not lives(bench.pids("started")[1]))
        (bench.folder / "go").touch()
        assert (await fired).reason == "slow"
    assert bench.read("requests") == "BeforeTool\n"


async def test_cancelling_the_caller_ends_the_other_process_too(
    bench: WorkerBench,
) -> None:
    async with bench.system(bench.hook(STARTED + SILENT["never reads"])) as hooks:
        fired = asyncio.create_task(hooks.event_handler.fire("BeforeTool", TOOL))
        await until(lambda: len(bench.pids("started")) == 2)
        fired.cancel()
        with pytest.raises(asyncio.CancelledError):
            await fired
        assert not any(map(lives, bench.pids("started")))


async def test_a_worker_that_answers_sees_nothing_but_its_events(
    bench: WorkerBench,
) -> None:
    """Written by hand, without a thought of handshakes: the bytes of DESIGN."""
    body = "for frame in frames(): answer(frame)"
    hook = bench.hook(STARTED + LOOP + body, env={"OWN": "1"})
    async with bench.system(hook, start_workers=True) as hooks:
        for _ in range(3):
            await hooks.event_handler.fire("BeforeTool", TOOL)
    frames = [json.loads(line) for line in bench.read("requests").splitlines()]
    assert [list(frame) for frame in frames] == [["id", "input", "env"]] * 3
    named = {frame["input"]["hook_event_name"] for frame in frames}
    assert named == {"BeforeTool"}
    assert len(bench.pids("started")) == 1


async def test_a_short_timeout_before_the_first_answer_names_the_handshake(
    bench: WorkerBench,
) -> None:
    hook = bench.hook(STARTED + SILENT["reads to the end"], timeout=300)
    async with bench.system(hook) as hooks:
        ran = _ran(await hooks.event_handler.fire("BeforeTool", TOOL))
    assert ran.error == f"timed out after 300 ms: {NO_HANDSHAKE}"
    assert ran.cause is FailureCause.TIMEOUT


async def test_a_worker_that_has_answered_once_just_times_out(
    bench: WorkerBench,
) -> None:
    body = """
from hookline.script import *
def hook(event):
    if event["tool_name"] == "slow":
        time.sleep(1000)
run(hook)
"""
    async with bench.system(bench.hook(STARTED + body, timeout=3000)) as hooks:
        fire = hooks.event_handler.fire_before_tool_event
        assert _ran(await fire("quick", {})).success
        for _ in range(2):  # the second time in a process that has not answered yet
            assert _ran(await fire("slow", {})).error == "timed out after 3000 ms"


@pytest.mark.parametrize("command", ["true", "echo hi", "cat", "exit 3"])
async def test_a_program_that_ends_is_run_cold_and_the_log_names_the_page(
    bench: WorkerBench, command: str, caplog: pytest.LogCaptureFixture
) -> None:
    hook = {"type": "worker", "command": command, "name": "guard"}
    with caplog.at_level(logging.WARNING, "hookline"):
        async with bench.system(hook) as hooks:
            assert _ran(await hooks.event_handler.fire("BeforeTool", TOOL)).reran
    assert f"; it {NO_HANDSHAKE}" in caplog.text


async def test_a_caller_cannot_pass_an_event_off_as_a_handshake(
    bench: WorkerBench,
) -> None:
    hook = bench.hook("from hookline.script import *\nrun(lambda e: block('no'))")
    given = {**TOOL, "hook_event_name": "Handshake"}
    async with bench.system(hook) as hooks:
        assert (await hooks.event_handler.fire("BeforeTool", given)).blocked
        fire = hooks.event_handler.fire_before_tool_event
        assert (await fire("Handshake", {"hook_event_name": "Handshake"})).blocked


@pytest.mark.parametrize("character", ["\u2028", "\u2029", "\x85"])
async def test_no_character_ends_a_request_early(
    bench: WorkerBench, character: str
) -> None:
    """The readers of lines of some languages end one at these, Node's for example."""
    body = """
for line in iter(sys.stdin.readline, ""):
    (one,) = line.splitlines()
    answer(json.loads(one), exit_code=2, stderr=repr(
        [json.loads(one)["input"]["tool_input"], json.loads(one)["env"]["OWN"]]))
"""
    env = {"OWN": f"a{character}b"}
    given = {"tool_name": "t", "tool_input": {"text": character, character: "ä"}}
    async with bench.system(bench.hook(STARTED + LOOP + body, env=env)) as hooks:
        result = await hooks.event_handler.fire("BeforeTool", given)
    assert (result.reason, _ran(result).reran) == (
        repr([given["tool_input"], env["OWN"]]),
        False,
    )
