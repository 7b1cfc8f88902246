"""Issue 13.6: a program that is no worker fails early, and a slow worker does not."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from hookline.executors import worker
from hookline.executors.worker import NO_HANDSHAKE
from hookline.protocol.results import FailureCause

from .bench import TOOL, WorkerBench, lives, only_hook, until

HANDSHAKE_S = 6.0
"""The least that a program has for its first answer: 10 s, but for these tests."""
TIMEOUT_MS = 6 * 1000 * HANDSHAKE_S
"""A sixth of the timeout is what it has."""
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
def short_handshake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "HANDSHAKE_S", HANDSHAKE_S)


async def test_a_program_that_is_no_worker_fails_long_before_its_timeout(
    bench: WorkerBench,
) -> None:
    """With the cause of a timeout: policies that close on it still do."""
    made = {
        name: bench.hook(
            STARTED + body,
            name.replace(" ", "_"),
            env={"PYTHONUNBUFFERED": ""},
            timeout=TIMEOUT_MS,
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
    source = STARTED + SILENT["never reads"]
    hook = bench.hook(source, timeout=TIMEOUT_MS, **options)
    async with bench.system(hook) as hooks:
        fire = hooks.event_handler.fire_before_tool_event
        results = await asyncio.gather(fire("a", {}), fire("b", {}), fire("c", {}))
        assert all(result.blocked for result in results)
        assert all(NO_HANDSHAKE in str(result.reason) for result in results)
        bench.hook("from hookline.script import *\nrun(lambda e: block('mended'))")
        assert (await fire("d", {})).reason == "mended"


FRAMES = """
for frame in frames():
    if frame["input"]["hook_event_name"] != "BeforeTool":
        OTHERWISE
        break
    WAIT
    answer(frame, exit_code=2, stderr="slow")
"""
SCRIPT = """
from hookline.script import *
def hook(event):
    WAIT
    return block("slow")
run(hook)
"""
SLOW = {
    "answers the handshake": FRAMES.replace("OTHERWISE", "answer(frame)"),
    "raises at the handshake": FRAMES.replace("OTHERWISE", "raise KeyError"),
    "ends at the handshake": FRAMES.replace("OTHERWISE", "os._exit(0)"),
    "answers nonsense": FRAMES.replace("OTHERWISE", "print('?')"),
    "is a script of Hookline": SCRIPT,
}


@pytest.mark.parametrize("body", SLOW.values(), ids=SLOW)
async def test_a_slow_first_event_is_waited_for(bench: WorkerBench, body: str) -> None:
    """Workers that know no handshake answer it, or die, and keep their event."""
    source = STARTED + LOOP + body.replace("WAIT", WAIT)
    async with bench.system(bench.hook(source, timeout=TIMEOUT_MS)) as hooks:
        fired = asyncio.create_task(hooks.event_handler.fire("BeforeTool", TOOL))
        await until(lambda: len(bench.pids("started")) == 2)
        first, other = bench.pids("started")
        await until(lambda: not lives(other))
        (bench.folder / "go").touch()
        result = await fired
        assert (result.reason, only_hook(result).reran) == ("slow", False)
        assert (await hooks.event_handler.fire("BeforeTool", TOOL)).reason == "slow"
        assert bench.pids("started") == [first, other]


async def test_cancelling_the_caller_ends_the_other_process_too(
    bench: WorkerBench,
) -> None:
    hook = bench.hook(STARTED + SILENT["never reads"], timeout=TIMEOUT_MS)
    async with bench.system(hook) as hooks:
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
    async with bench.system(bench.hook(STARTED + body, timeout=1500)) as hooks:
        fire = hooks.event_handler.fire_before_tool_event
        assert only_hook(await fire("quick", {})).success
        for _ in range(2):  # the second time in a process that has not answered yet
            assert only_hook(await fire("slow", {})).error == "timed out after 1500 ms"


async def test_a_caller_cannot_pass_an_event_off_as_a_handshake(
    bench: WorkerBench,
) -> None:
    hook = bench.hook("from hookline.script import *\nrun(lambda e: block('no'))")
    given = {**TOOL, "hook_event_name": "Handshake"}
    async with bench.system(hook) as hooks:
        assert (await hooks.event_handler.fire("BeforeTool", given)).blocked
        fire = hooks.event_handler.fire_before_tool_event
        assert (await fire("Handshake", {"hook_event_name": "Handshake"})).blocked
