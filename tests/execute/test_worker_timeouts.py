"""A program that is no worker is named as such at its timeout; a worker just hangs."""

from __future__ import annotations

from typing import Any

import pytest

from hookline.execute.worker import NO_ANSWER
from hookline.protocol.results import FailureCause
from tests.support.hook_scripts import HookScripts, only_hook

SILENT = {
    "never reads": "time.sleep(1000)",
    "reads to the end": "sys.stdin.read(); print('{}')",
    "reads lines and says nothing": "for line in sys.stdin: pass",
    "does not flush": "for line in sys.stdin: print(json.dumps("
    "{'id': json.loads(line)['id'], 'exit_code': 0, 'stdout': '', 'stderr': ''}))",
}


@pytest.mark.parametrize("body", SILENT.values(), ids=SILENT)
async def test_program_that_is_no_worker_is_named_at_the_timeout(
    scripts: HookScripts, body: str
) -> None:
    """With the cause of a timeout: policies that close on it do."""
    more: dict[str, Any] = {"onError": {"timeout": "block"}}
    env = {"PYTHONUNBUFFERED": ""}
    source = f"import json, sys, time\n{body}"
    hook = scripts.worker(source, env=env, timeout=700, **more)
    async with scripts.system(hook) as hooks:
        result = await hooks.event_handler.fire_before_tool_event("a", {})
    ran = only_hook(result)
    assert ran.error == f"timed out after 700 ms: {NO_ANSWER}"
    assert (ran.cause, ran.reran) == (FailureCause.TIMEOUT, False)
    assert result.blocked


async def test_worker_that_has_answered_once_just_times_out(
    scripts: HookScripts,
) -> None:
    source = """
    import time
    from hookline.script import *
    def hook(event):
        if event["tool_name"] == "slow":
            time.sleep(1000)
    run(hook)
    """
    async with scripts.system(scripts.worker(source, timeout=1500)) as hooks:
        fire = hooks.event_handler.fire_before_tool_event
        assert only_hook(await fire("quick", {})).success
        for _ in range(2):  # the second time in a process that has not answered yet
            assert only_hook(await fire("slow", {})).error == "timed out after 1500 ms"
