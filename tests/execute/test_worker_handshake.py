"""A program that is no worker fails early, and a slow worker does not."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from hookline.execute import worker
from hookline.execute.worker import NO_HANDSHAKE
from hookline.protocol.results import FailureCause
from tests.support.hook_scripts import TOOL, HookScripts, only_hook
from tests.support.processes import is_alive, wait_until

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
    reply = {"id": frame["id"], "exit_code": 0, "stdout": "", "stderr": "", **more}
    print(json.dumps(reply), flush=True)
def frames():
    for line in sys.stdin:
        with open("requests", "a") as requests:
            requests.write(line)
        yield json.loads(line)
def wait():
    while not os.path.exists("go"):
        time.sleep(0.005)
"""


@pytest.fixture(autouse=True)
def short_handshake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "HANDSHAKE_S", HANDSHAKE_S)


async def test_program_that_is_no_worker_fails_long_before_its_timeout(
    scripts: HookScripts,
) -> None:
    """With the cause of a timeout: policies that close on it still do.

    Others let the event pass. It is not asked again until its script is mended.
    """
    env = {"PYTHONUNBUFFERED": ""}
    workers = [
        scripts.worker(
            STARTED + body, name.replace(" ", "_"), env=env, timeout=TIMEOUT_MS
        )
        for name, body in SILENT.items()
    ]
    options: dict[str, Any] = {"onError": {"timeout": "block"}, "pool": 2}
    strict = scripts.worker(
        "import time; " + SILENT["never reads"],
        "strict",
        timeout=TIMEOUT_MS,
        **options,
    )
    async with scripts.system(*workers, strict) as hooks:
        fire = hooks.event_handler.fire_before_tool_event
        results = await asyncio.gather(fire("a", {}), fire("b", {}), fire("c", {}))
        # Two of each: the one that is asked, and the one to shake hands with.
        assert len(scripts.pids("started")) == 2 * len(SILENT)
        for result in (*results, await fire("again", {})):
            ran = result.aggregated.hook_results
            assert [hook.error for hook in ran] == [TOLD] * len(ran)
            assert {hook.cause for hook in ran} == {FailureCause.TIMEOUT}
            assert all(hook.timed_out and not hook.reran for hook in ran)
            assert result.blocked
            assert (result.reason or "").endswith(TOLD)
        assert len(scripts.pids("started")) == 2 * len(SILENT)
        mended = "from hookline.script import *\nrun(lambda e: block('mended'))"
        scripts.worker(mended, "strict")
        assert (await fire("d", {})).reason == "mended"


FRAMES = """
for frame in frames():
    if frame["input"]["hook_event_name"] != "BeforeTool":
        OTHERWISE
        break
    wait()
    answer(frame, exit_code=2, stderr="slow")
"""
SCRIPT = """
from hookline.script import *
def hook(event):
    wait()
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


async def test_slow_first_event_of_a_worker_is_waited_for(scripts: HookScripts) -> None:
    """Workers that know no handshake answer it, or die, and keep their event.

    All of them at once: each handshake comes after some seconds.
    """
    files = {name: name.replace(" ", "_") for name in SLOW}
    workers = [
        scripts.worker(
            STARTED.replace('"started"', f'"pids-{files[name]}"') + LOOP + body,
            files[name],
            timeout=TIMEOUT_MS,
        )
        for name, body in SLOW.items()
    ]

    def pids() -> list[list[int]]:
        return [scripts.pids(f"pids-{file}") for file in files.values()]

    async with scripts.system(*workers) as hooks:
        firing = asyncio.create_task(hooks.event_handler.fire("BeforeTool", TOOL))
        await wait_until(lambda: all(len(both) == 2 for both in pids()))
        started = pids()
        await wait_until(lambda: not any(is_alive(other) for _, other in started))
        (scripts.folder / "go").touch()
        for result in (
            await firing,
            await hooks.event_handler.fire("BeforeTool", TOOL),
        ):
            ran = result.aggregated.hook_results
            assert [hook.output and hook.output.reason for hook in ran] == ["slow"] * 5
            assert not any(hook.reran for hook in ran)
        assert pids() == started


async def test_cancelling_the_caller_ends_the_other_process_too(
    scripts: HookScripts,
) -> None:
    hook = scripts.worker(STARTED + SILENT["never reads"], timeout=TIMEOUT_MS)
    async with scripts.system(hook) as hooks:
        fired = asyncio.create_task(hooks.event_handler.fire("BeforeTool", TOOL))
        await wait_until(lambda: len(scripts.pids("started")) == 2)
        fired.cancel()
        with pytest.raises(asyncio.CancelledError):
            await fired
        assert not any(map(is_alive, scripts.pids("started")))


async def test_worker_that_answers_sees_nothing_but_its_events(
    scripts: HookScripts,
) -> None:
    """Written by hand, without a thought of handshakes: the bytes of DESIGN."""
    body = "for frame in frames(): answer(frame)"
    hook = scripts.worker(STARTED + LOOP + body, env={"OWN": "1"})
    async with scripts.system(hook, start_workers=True) as hooks:
        for _ in range(3):
            await hooks.event_handler.fire("BeforeTool", TOOL)
    frames = [json.loads(line) for line in scripts.read("requests").splitlines()]
    assert [list(frame) for frame in frames] == [["id", "input", "env"]] * 3
    named = {frame["input"]["hook_event_name"] for frame in frames}
    assert named == {"BeforeTool"}
    assert len(scripts.pids("started")) == 1


async def test_worker_that_has_answered_once_just_times_out(
    scripts: HookScripts,
) -> None:
    body = """
from hookline.script import *
def hook(event):
    if event["tool_name"] == "slow":
        time.sleep(1000)
run(hook)
"""
    async with scripts.system(scripts.worker(STARTED + body, timeout=1500)) as hooks:
        fire = hooks.event_handler.fire_before_tool_event
        assert only_hook(await fire("quick", {})).success
        for _ in range(2):  # the second time in a process that has not answered yet
            assert only_hook(await fire("slow", {})).error == "timed out after 1500 ms"


async def test_caller_cannot_pass_an_event_off_as_a_handshake(
    scripts: HookScripts,
) -> None:
    hook = scripts.worker("from hookline.script import *\nrun(lambda e: block('no'))")
    event = {**TOOL, "hook_event_name": "Handshake"}
    async with scripts.system(hook) as hooks:
        assert (await hooks.event_handler.fire("BeforeTool", event)).blocked
        fire = hooks.event_handler.fire_before_tool_event
        assert (await fire("Handshake", {"hook_event_name": "Handshake"})).blocked
