"""Workers that answer one event after the other, in turn or side by side.

What single answers come to is in ``tests/pins/fire/workers.json``.
"""

from __future__ import annotations

import asyncio
import json
import re

import pytest

from tests.support.hook_scripts import TOOL, HookScripts

HOOK = """
from hookline.script import *
import json, os, sys, time
def hook(event):
    {body}
run(hook)
"""


async def test_worker_answers_all_events_in_one_process(scripts: HookScripts) -> None:
    """What belongs to an event travels with its request, however big it is."""
    body = """names = "SESSION_ID EVENT DEPTH PROJECT_DIR".split()
    words = [os.environ[f"HOOKLINE_{name}"] for name in names]
    words += [os.environ["OWN"], str(len(event["tool_input"]["content"]))]
    open("pids", "a").write(f"{os.getpid()}\\n")
    return block(" ".join(words))"""
    hook = scripts.worker(HOOK.format(body=body), env={"OWN": "mine"})
    async with scripts.system(hook) as hooks:
        for session, size in (("one", 1), ("two", 3_000_000), ("one", 3_000_000)):
            content = {"content": "x" * size}
            event = {"tool_name": "a", "tool_input": content, "session_id": session}
            result = await hooks.event_handler.fire("BeforeTool", event)
            where = scripts.folder
            assert result.reason == f"{session} BeforeTool 1 {where} mine {size}"
    assert len(set(scripts.pids())) == 1


async def test_pool_lets_events_run_side_by_side(scripts: HookScripts) -> None:
    """Each waits for the other, so one process could never answer both."""
    body = """
    open(f"here-{event['tool_name']}", "w").close()
    while not all(os.path.exists(f"here-{n}") for n in "ab"):
        time.sleep(0.002)
    return block(str(os.getpid()))"""
    hook = scripts.worker(HOOK.format(body=body.strip()), pool=2)
    async with scripts.system(hook) as hooks:
        fire = hooks.event_handler.fire_before_tool_event
        results = await asyncio.gather(fire("a", {}), fire("b", {}))
    assert all(result.blocked for result in results)
    assert len({result.reason for result in results}) == 2


async def test_pool_of_one_answers_events_in_turn(scripts: HookScripts) -> None:
    body = "return block(json.dumps([os.getpid(), event['tool_name']]))"
    hook = scripts.worker(HOOK.format(body=body), timeout=60_000)
    async with scripts.system(hook) as hooks:
        fire = hooks.event_handler.fire_before_tool_event
        results = await asyncio.gather(*(fire(str(n), {}) for n in range(6)))
    reasons = [json.loads(str(result.reason)) for result in results]
    assert [name for _, name in reasons] == [str(n) for n in range(6)]
    assert len({pid for pid, _ in reasons}) == 1


ASKED = """
import json, os, sys
if os.environ.get("HOOKLINE_WORKER") != "1":
    print(json.dumps({{"decision": "block", "reason": "cold"}}))
    sys.exit(0)
def answer(id):
    frame = {{"id": id, "exit_code": 0, "stdout": "", "stderr": ""}}
    print(json.dumps(frame), flush=True)
def ask():
    with open("asked", "a") as asked:
        asked.write(f"{{os.getpid()}} {{(line := sys.stdin.readline())}}")
    return json.loads(line)["id"]
{body}
sys.stdin.read()
"""
"""Blocks when it is run cold, and lets pass whatever it answers when it is warm."""

LATER = {
    "replays an id": "old = ask(); answer(old); ask(); answer(old)",
    "counts on": "old = ask(); answer(old); ask(); answer(old + 1)",
    "answers twice": "old = ask(); answer(old); answer(old); ask(); answer(old)",
}


@pytest.mark.parametrize("body", LATER.values(), ids=LATER.keys())
async def test_answer_given_before_does_not_count_again(
    scripts: HookScripts, body: str
) -> None:
    """Only an answer to the question in flight counts."""
    async with scripts.system(scripts.worker(ASKED.format(body=body))) as hooks:
        first = await hooks.event_handler.fire("BeforeTool", TOOL)
        second = await hooks.event_handler.fire("BeforeTool", TOOL)
    assert first.reason in {None, "cold"}
    # A worker that was replaced in between has answered its own first question.
    workers = set(re.findall(r"(\d+) {", scripts.read("asked")))
    assert second.reason == "cold" or len(workers) == 2


async def test_ids_cannot_be_guessed_from_those_before(scripts: HookScripts) -> None:
    hook = scripts.worker(ASKED.format(body="while True: answer(ask())"))
    async with scripts.system(hook) as hooks:
        for _ in range(20):
            result = await hooks.event_handler.fire("BeforeTool", TOOL)
            assert not result.blocked
    ids = [int(number) for number in re.findall(r'{"id":(\d+),', scripts.read("asked"))]
    assert len(set(ids)) == 20
    assert 1 << 40 < max(ids) < 1 << 53
