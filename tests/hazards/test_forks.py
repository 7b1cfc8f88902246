"""Hooks made before a fork, as preloading servers and task queues do it.

No hangs, no lost verdicts, whatever the parent was doing.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.processes import marked

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

GUARD = """
from hookline.script import block, run

def guard(event):
    number = event["tool_input"]["number"]
    if number % 2:
        return block(f"{number} of {event['session_id']}")

run(guard)
"""

HOST = """
import asyncio, json, os, sys, threading
from hookline import Config, HookSystem, Settings, config as made
from hookline.engine import sync

config = Config("s", ".", Settings.from_file("settings.json"))
hooks, lazy = HookSystem(config), Config(settings=config.loaded)
in_process = []
hooks.on("BeforeTool")(lambda event: in_process.append(os.getpid()))

def judge(fired):
    shown = [one.error for one in fired.aggregated.hook_results]
    return [fired.reason, shown]

def fire(name):
    given = [{"tool_name": "t", "tool_input": {"number": n}} for n in range(2)]
    session = config.session(name)
    async def both():
        return [judge(await session.fire("BeforeTool", one)) for one in given]
    told = [judge(session.fire_sync("BeforeTool", one)) for one in given]
    told += asyncio.run(both())
    fine = [None] * 3
    assert told == 2 * [[None, fine], [f"1 of {name}", fine]], told
    assert set(in_process[-4:]) == {os.getpid()}

def hold(held, over):
    # A fork must not wait for a thread that it does not have.
    with made._building.held, sync._starting.held, hooks._changing.held:
        held.set()
        over.wait()

def child(name):
    try:
        fire(name)
        assert lazy.get_hook_system() is not None
        asyncio.run(config.dispose())
        fire(name)
    except BaseException as error:
        print(repr(error), flush=True)
        os._exit(1)
    os._exit(0)

if "used" in sys.argv:
    fire("parent")
held, over = threading.Event(), threading.Event()
threading.Thread(target=hold, args=(held, over)).start()
held.wait()
forks = [os.fork() or child(f"child-{n}") for n in range(2)]
over.set()
fire("parent")
print([os.waitpid(one, 0)[1] for one in forks])
fire("parent")
asyncio.run(config.dispose())
"""


@pytest.mark.parametrize("state", ["used", "unused"])
def test_hooks_answer_in_the_parent_and_in_every_fork(
    tmp_path: Path, state: str
) -> None:
    tmp_path.joinpath("guard.py").write_text(GUARD)
    command = '"$HOOKLINE_PYTHON" guard.py'
    worker = {"type": "worker", "command": command, "onError": "block"}
    cold = {"type": "command", "command": "cat >/dev/null", "onError": "block"}
    mark = {"FORKS": str(tmp_path)}
    both = [{**worker, "env": mark}, {**cold, "standby": 1, "env": mark}]
    settings = {
        "hooksConfig": {"journal": str(tmp_path / "journal.sqlite")},
        "hooks": {"BeforeTool": [{"hooks": both}]},
    }
    tmp_path.joinpath("settings.json").write_text(json.dumps(settings))
    done = subprocess.run(
        [sys.executable, "-c", HOST, state],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "[0, 0]\n"), done.stderr
    assert marked(f"FORKS={tmp_path}") == []
