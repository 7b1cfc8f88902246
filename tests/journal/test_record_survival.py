"""A process that is killed, interrupted or forked loses nothing that is written."""

from __future__ import annotations

import os
import signal
import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from tests.support.journals import count, is_intact, targets, wait_until
from tests.support.python import PATIENCE_S, run_python, start_python

FIRES = """
    import asyncio, os, sys
    from pathlib import Path
    from hookline import Config, HookSystem, Settings

    journal, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])

    async def fire(system, number):
        await system.event_handler.fire_before_tool_event(f"{name}-{number}", {})

    async def main(end):
        settings = Settings.from_mapping({"hooksConfig": {"journal": journal}})
        system = HookSystem(Config("s-" + name, ".", settings))
        await system.initialize()
        for number in range(count):
            await fire(system, number)
        await end(system)
"""
DISPOSES = f"""{FIRES}
    async def end(system):
        print("fired", flush=True)
        await system.dispose()

    asyncio.run(main(end))
"""
FIRES_ON = f"""{FIRES}
    async def end(system):
        import time
        number = count
        while True:
            await fire(system, number)
            number += 1
            print(number, time.monotonic(), flush=True)
            await asyncio.sleep(0.001)

    asyncio.run(main(end))
"""


def test_what_is_older_than_a_second_survives_a_kill(journal: Path) -> None:
    """Killed with SIGKILL while it fires: all but the last second is there."""
    process = start_python(FIRES_ON, str(journal), "t", "5")
    assert process.stdout is not None
    told: list[tuple[int, float]] = []
    for line in process.stdout:
        number, at = line.split()
        told.append((int(number), float(at)))
        if at and told[-1][1] - told[0][1] > 2.5:
            break
    process.kill()
    process.communicate(timeout=PATIENCE_S)
    safe = max(number for number, at in told if at <= told[-1][1] - 1.0)
    found = targets(journal)
    assert found == [f"t-{number}" for number in range(len(found))]
    assert len(found) >= safe
    assert is_intact(journal)


def test_a_kill_at_any_moment_leaves_an_intact_file(journal: Path) -> None:
    def grows_from(before: int) -> bool:
        return journal.exists() and count(journal) > before

    for number in range(5):
        before = count(journal) if journal.exists() else 0
        process = start_python(FIRES_ON, str(journal), f"r{number}", "1")
        wait_until(partial(grows_from, before))
        process.kill()
        process.communicate(timeout=PATIENCE_S)
        assert is_intact(journal)


def test_a_host_that_ends_without_dispose_loses_nothing(journal: Path) -> None:
    script = """
    async def end(system):
        pass

    asyncio.run(main(end))
    """
    done = run_python(FIRES + script, str(journal), "t", "20")
    assert done.returncode == 0, done.stderr
    assert targets(journal) == [f"t-{number}" for number in range(20)]


def test_many_processes_write_to_one_journal(journal: Path) -> None:
    running = [
        start_python(DISPOSES, str(journal), f"p{number}", "200") for number in range(4)
    ]
    for process in running:
        _, problems = process.communicate(timeout=PATIENCE_S)
        assert (process.returncode, problems) == (0, b"")
    found = targets(journal)
    for number in range(4):
        own = [f"p{number}-{place}" for place in range(200)]
        assert [n for n in found if n and n.startswith(f"p{number}-")] == own
    assert is_intact(journal)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_child_records_on_its_own(journal: Path) -> None:
    script = """
    kept = []

    async def end(system):
        kept.append(system)

    async def finish(name):
        await fire(kept[0], name)
        await kept[0].dispose()

    asyncio.run(main(end))
    child = os.fork()
    asyncio.run(finish("parent" if child else "child"))
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    """
    done = run_python(FIRES + script, str(journal), "t", "1")
    assert done.returncode == 0, done.stderr
    found = targets(journal)
    assert sorted(str(name) for name in found) == ["t-0", "t-child", "t-parent"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_forks_while_other_threads_record_neither_hang_nor_corrupt(
    journal: Path,
) -> None:
    """SQLite's locks and ours must not be held in a child by threads it lacks."""
    script = """
    import threading, warnings
    warnings.simplefilter("ignore")
    kept, counts = [], []

    async def end(system):
        kept.append(system)

    async def finish(name):
        await fire(kept[0], name)
        await kept[0].dispose()

    def fire_all():
        async def forever():
            number = 0
            while not done.is_set():
                await fire(kept[0], f"thread-{number}")
                number += 1
            counts.append(number)
        asyncio.run(forever())

    asyncio.run(main(end))
    done = threading.Event()
    threads = [threading.Thread(target=fire_all) for _ in range(2)]
    for thread in threads:
        thread.start()
    for number in range(10):
        if os.fork() == 0:
            asyncio.run(finish(f"child-{number}"))
            os._exit(0)
        assert os.wait()[1] == 0
    done.set()
    for thread in threads:
        thread.join()
    asyncio.run(finish("parent"))
    print(sum(counts))
    """
    done = run_python(FIRES + script, str(journal), "t", "1")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    found = targets(journal)
    assert {f"t-child-{number}" for number in range(10)} <= set(found)
    assert len(found) == int(done.stdout) + 12
    assert is_intact(journal)


def test_no_event_is_lost_while_another_process_locks_the_file(
    journal: Path,
) -> None:
    assert run_python(DISPOSES, str(journal), "a", "1").returncode == 0
    with closing(sqlite3.connect(journal, isolation_level=None)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        process = start_python(DISPOSES, str(journal), "b", "1")
        assert process.stdout is not None
        assert process.stdout.readline() == b"fired\n"
        holder.execute("COMMIT")
    assert process.communicate(timeout=PATIENCE_S)[1] == b""
    assert targets(journal) == ["a-0", "b-0"]


def test_an_interrupted_host_loses_nothing(journal: Path) -> None:
    script = """
    async def end(system):
        print("fired", flush=True)
        await asyncio.sleep(60)

    asyncio.run(main(end))
    """
    process = start_python(FIRES + script, str(journal), "t", "3")
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=PATIENCE_S)
    assert targets(journal) == ["t-0", "t-1", "t-2"]
