"""protocol.md#logs: one thread writes all records and blocks nobody."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from pathlib import Path

import pytest

from hookline import Config, HookSystem, Settings
from tests.support.python import run_python


class SlowHandler(logging.Handler):
    """Writes nothing before it may."""

    def __init__(self) -> None:
        super().__init__()
        self.may_write = threading.Event()
        self.written: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.may_write.wait(30)
        self.written.append(record.getMessage())


def logger_with(handler: logging.Handler) -> logging.Logger:
    target = logging.Logger("test", logging.DEBUG)
    target.addHandler(handler)
    return target


async def test_writing_never_blocks_an_event(tmp_path: Path) -> None:
    handler = SlowHandler()
    config = Config("s", tmp_path, Settings.from_mapping({}))
    system = HookSystem(config, debug_logger=logger_with(handler))
    async with system:
        for _ in range(50):
            await system.event_handler.fire_before_agent_event("x")
        assert handler.written == []
        handler.may_write.set()
    assert len(handler.written) == 100
    assert handler.written[0].startswith("hook:batch_summary event='BeforeAgent'")


async def test_many_hook_systems_share_one_log_thread(tmp_path: Path) -> None:
    handler = SlowHandler()
    handler.may_write.set()
    before = threading.active_count()
    for _ in range(50):
        config = Config("s", tmp_path, Settings.from_mapping({}))
        system = HookSystem(config, debug_logger=logger_with(handler))
        async with system:
            await system.event_handler.fire_before_agent_event("x")
    assert len(handler.written) == 100
    assert threading.active_count() < before + 10  # and some that wait for it


async def test_dispose_lets_the_loop_run_while_records_are_written(
    tmp_path: Path,
) -> None:
    handler = SlowHandler()
    config = Config("s", tmp_path, Settings.from_mapping({}))
    system = HookSystem(config, debug_logger=logger_with(handler))
    await system.initialize()
    await system.event_handler.fire_before_agent_event("x")

    async def dispose() -> int:
        await system.dispose()
        return len(handler.written)

    disposing = asyncio.create_task(dispose())
    await asyncio.sleep(0)
    handler.may_write.set()
    assert await disposing == 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_child_writes_its_records() -> None:
    script = """
    import asyncio, logging, os, sys
    from hookline import Config, HookSystem, Settings

    log = logging.Logger("forked", logging.DEBUG)
    log.addHandler(logging.StreamHandler(sys.stdout))
    system = HookSystem(Config("s", ".", Settings.from_mapping({})), debug_logger=log)

    async def fire(end):
        await system.initialize()
        await system.event_handler.fire_before_agent_event("x")
        await system.dispose()
        print(end, flush=True)

    asyncio.run(fire("forking"))
    if os.fork() == 0:
        asyncio.run(fire("child disposed"))
        os._exit(0)
    os.wait()
    asyncio.run(fire("parent disposed"))
    """
    done = run_python(script)
    assert done.returncode == 0, done.stderr
    _, after = done.stdout.split("forking\n")
    child, parent = after.split("child disposed\n")
    for written in (child, parent):
        assert written.count("BeforeAgent fired") == 1
    assert parent.endswith("parent disposed\n")
