"""Issue 12.19: only an answer to the question in flight counts."""

from __future__ import annotations

import re

import pytest

from .bench import TOOL, WorkerBench

WORKER = """
import json, os, sys
if os.environ.get("HOOKLINE_WORKER") != "1":
    print(json.dumps({{"decision": "block", "reason": "cold"}}))
    sys.exit(0)
def answer(id, **more):
    said = {{"id": id, "exit_code": 0, "stdout": "", "stderr": "", **more}}
    sys.stdout.write(json.dumps(said) + "\\n")
    sys.stdout.flush()
def ask():
    with open("asked", "a") as asked:
        asked.write(f"{{os.getpid()}} {{(line := sys.stdin.readline())}}")
    return json.loads(line)["id"]
{body}
"""
"""Blocks when it is run cold, and lets pass whatever it answers when it is warm."""

FIRST = {
    "before its question": "answer(1); ask()",
    "to the first ids in turn": "[answer(n) for n in range(5)]; ask()",
    "half before its question": "sys.stdout.write('{\"id\": 1, '); ask(); answer(1)",
    "to another id": "answer(ask() + 1)",
    "to the id as text": "answer(str(ask()))",
    "to the id as a fraction": "answer(ask() + 0.5)",
    "without an id": "ask(); print('{\"exit_code\": 0}', flush=True)",
    "to no id": "ask(); answer(None)",
    "twice at once": "id = ask(); print(json.dumps({'id': id}) * 2, flush=True)",
    "with an id in front": "id = ask(); print(id, flush=True); answer(id)",
}


@pytest.mark.parametrize("body", FIRST.values(), ids=FIRST.keys())
async def test_an_answer_that_is_not_to_the_question_does_not_count(
    bench: WorkerBench, body: str
) -> None:
    hook = bench.hook(WORKER.format(body=f"{body}\nsys.stdin.read()"))
    async with bench.system(hook) as hooks:
        result = await hooks.event_handler.fire("BeforeTool", TOOL)
    (ran,) = result.aggregated.hook_results
    assert (result.reason, ran.reran) == ("cold", True)


LATER = {
    "replays an id": "old = ask(); answer(old); ask(); answer(old)",
    "counts on": "old = ask(); answer(old); ask(); answer(old + 1)",
    "answers twice": "old = ask(); answer(old); answer(old); ask(); answer(old)",
}


@pytest.mark.parametrize("body", LATER.values(), ids=LATER.keys())
async def test_an_answer_given_before_does_not_count_again(
    bench: WorkerBench, body: str
) -> None:
    hook = bench.hook(WORKER.format(body=f"{body}\nsys.stdin.read()"))
    async with bench.system(hook) as hooks:
        first = await hooks.event_handler.fire("BeforeTool", TOOL)
        second = await hooks.event_handler.fire("BeforeTool", TOOL)
    assert first.reason in {None, "cold"}
    # A worker that was replaced in between has answered its own first question.
    workers = set(re.findall(r"(\d+) {", bench.read("asked")))
    assert second.reason == "cold" or len(workers) == 2


async def test_ids_cannot_be_guessed_from_those_before(bench: WorkerBench) -> None:
    hook = bench.hook(WORKER.format(body="while True: answer(ask())"))
    async with bench.system(hook) as hooks:
        for _ in range(20):
            result = await hooks.event_handler.fire("BeforeTool", TOOL)
            assert not result.blocked
    ids = [int(one) for one in re.findall(r'{"id":(\d+),', bench.read("asked"))]
    assert len(set(ids)) == 20
    assert max(ids) > 1 << 40
    assert max(ids) < 1 << 53
