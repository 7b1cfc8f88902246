"""What a worker answers is read by the table that commands are read by."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from hookline.protocol.results import FailureCause

from .bench import TOOL, WorkerBench

HOOK = """
from hookline.script import *
import os, sys
def hook(event):
    {body}
run(hook)
"""

ENDINGS = {
    "nothing": "return None",
    "block": "return block('no')",
    "context": "return add_context('a < b')",
    "exit 0": "sys.exit(0)",
    "exit 2": "sys.stderr.write('not this one'); sys.exit(2)",
    "exit 2 without a word": "sys.exit(2)",
    "exit 1": "sys.stderr.write('oh'); sys.exit(1)",
    "exit 127": "sys.exit(127)",
    "crash": "raise KeyError('key')",
    "prints": "print('chatter'); return allow()",
    "text exit": "sys.exit('a text')",
    "surrogate": "return block('\\ud800')",
}


@pytest.mark.parametrize("body", ENDINGS.values(), ids=ENDINGS.keys())
async def test_worker_and_command_give_the_same_result(
    bench: WorkerBench, body: str
) -> None:
    """DESIGN, hook types: each with the same meaning of output and failure."""
    warm = bench.hook(HOOK.format(body=body))
    cold = warm | {"type": "command"}
    async with bench.system(warm) as hooks:
        first = await hooks.event_handler.fire("BeforeTool", TOOL)
        second = await hooks.event_handler.fire("BeforeTool", TOOL)
    async with bench.system(cold) as hooks:
        once = await hooks.event_handler.fire("BeforeTool", TOOL)
    for result in (first, second):
        assert _told(result) == _told(once)
        assert not result.aggregated.hook_results[0].reran


def _told(result: Any) -> dict[str, Any]:
    (hook,) = result.aggregated.hook_results
    wire: dict[str, Any] = hook.to_wire()
    # A traceback names the frames of run() itself, which differ.
    trace = "Traceback" in wire["stderr"]
    unequal = {"duration_ms", "type"} | ({"stderr", "output"} if trace else set())
    told = {key: value for key, value in wire.items() if key not in unequal}
    return told | {"blocked": result.blocked, "reason": result.reason}


async def test_worker_answers_all_events_in_one_process(bench: WorkerBench) -> None:
    hook = bench.hook(HOOK.format(body="return block(str(os.getpid()))"))
    async with bench.system(hook) as hooks:
        reasons = [
            (await hooks.event_handler.fire("BeforeTool", TOOL)).reason
            for _ in range(5)
        ]
    assert len(set(reasons)) == 1


async def test_session_event_and_depth_travel_with_the_request(
    bench: WorkerBench,
) -> None:
    body = "return block(' '.join(os.environ.get(n, '-') for n in NAMES.split()))"
    names = "HOOKLINE_SESSION_ID HOOKLINE_EVENT HOOKLINE_DEPTH OWN HOOKLINE_PROJECT_DIR"
    source = f"NAMES = '{names}'\n" + HOOK.format(body=body)
    hook = bench.hook(source, env={"OWN": "mine"})
    async with bench.system(hook) as hooks:
        for session in ("one", "two"):
            given = {**TOOL, "session_id": session}
            result = await hooks.event_handler.fire("BeforeTool", given)
            wanted = f"{session} BeforeTool 1 mine {bench.folder}"
            assert result.reason == wanted


async def test_worker_gets_big_inputs_whole(bench: WorkerBench) -> None:
    body = "return block(str(len(event['tool_input']['content'])))"
    size = 3_000_000
    given = {"tool_name": "write_file", "tool_input": {"content": "x" * size}}
    async with bench.system(bench.hook(HOOK.format(body=body))) as hooks:
        for _ in range(2):
            result = await hooks.event_handler.fire("BeforeTool", given)
            assert result.reason == str(size)


async def test_output_over_the_limit_is_a_failure_and_not_half_an_answer(
    bench: WorkerBench,
) -> None:
    """protocol.md#process: exit 0, stdout over the limit."""
    hook = bench.hook(HOOK.format(body="return block('x' * 5000)"))
    async with bench.system(hook, config={"maxOutputBytes": 4096}) as hooks:
        result = await hooks.event_handler.fire("BeforeTool", TOOL)
    (ran,) = result.aggregated.hook_results
    assert (ran.cause, ran.truncated, ran.reran) == (FailureCause.OUTPUT, True, False)
    assert not result.blocked


async def test_endless_answer_is_limited_and_its_worker_replaced(
    bench: WorkerBench,
) -> None:
    hook = bench.faulty("while True: sys.stdout.write('x' * 65536)")
    async with bench.system(hook, config={"maxOutputBytes": 4096}) as hooks:
        result = await hooks.event_handler.fire("BeforeTool", TOOL)
        (ran,) = result.aggregated.hook_results
        assert (ran.cause, ran.truncated) == (FailureCause.OUTPUT, True)
        await hooks.event_handler.fire("BeforeTool", TOOL)
    assert len(set(bench.pids("warm-pid"))) == 2


async def test_failure_of_a_worker_blocks_where_settings_say_so(
    bench: WorkerBench,
) -> None:
    hook = bench.hook(HOOK.format(body="raise KeyError"), onError="block")
    async with bench.system(hook) as hooks:
        result = await hooks.event_handler.fire("BeforeTool", TOOL)
    assert result.blocked
    assert "onError" in str(result.reason)


async def test_missing_program_is_reported_as_for_a_command(bench: WorkerBench) -> None:
    """HOOK-069: a missing program is output, not an exception."""
    warm = {"type": "worker", "command": "no-such-program-anywhere", "name": "gone"}
    results = []
    for hook in (warm, warm | {"type": "command"}):
        async with bench.system(hook) as hooks:
            results.append(await hooks.event_handler.fire("BeforeTool", TOOL))
    ran, wanted = (result.aggregated.hook_results[0] for result in results)
    assert (ran.exit_code, ran.cause, ran.stderr) == (127, wanted.cause, wanted.stderr)


async def test_pool_lets_events_run_side_by_side(bench: WorkerBench) -> None:
    """Each waits for the other, so one process could never answer both."""
    body = """
    import time
    open(f"here-{event['tool_name']}", "w").close()
    while not all(os.path.exists(f"here-{n}") for n in "ab"):
        time.sleep(0.002)
    return block(str(os.getpid()))"""
    hook = bench.hook(HOOK.format(body=body.strip()), pool=2)
    async with bench.system(hook) as hooks:
        fire = hooks.event_handler.fire_before_tool_event
        results = await asyncio.gather(fire("a", {}), fire("b", {}))
    assert all(result.blocked for result in results)
    assert len({result.reason for result in results}) == 2


async def test_pool_of_one_answers_events_in_turn(bench: WorkerBench) -> None:
    body = "return block(json.dumps([os.getpid(), event['tool_name']]))"
    hook = bench.hook("import json\n" + HOOK.format(body=body), timeout=60_000)
    async with bench.system(hook) as hooks:
        fire = hooks.event_handler.fire_before_tool_event
        results = await asyncio.gather(*(fire(str(n), {}) for n in range(6)))
    said = [json.loads(str(result.reason)) for result in results]
    assert [name for _, name in said] == [str(n) for n in range(6)]
    assert len({pid for pid, _ in said}) == 1
