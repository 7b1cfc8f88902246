"""Our own command line as a child: its output is bounded, and it can be ended."""

from __future__ import annotations

import asyncio
import os
import sys

import pytest

from hookline.inspector import own_command
from hookline.inspector.own_command import OwnCommand
from tests.support.processes import descriptors, marked

PYTHON = (sys.executable, "-c")
ECHO = "import sys; sys.stdout.write(sys.stdin.read().upper()); sys.exit(3)"


async def test_a_command_gets_its_input_and_says_how_it_ended() -> None:
    end = await OwnCommand((*PYTHON, ECHO), b"x" * 300_000).wait()
    assert (end.status, end.stdout, end.messages) == (3, b"X" * 300_000, [])
    assert end.message == "the command ended with status 3"
    assert not end.cancelled


async def test_messages_come_without_our_name() -> None:
    text = "import sys; print('hookline: no\\n\\nmore', file=sys.stderr); sys.exit(1)"
    end = await OwnCommand((*PYTHON, text)).wait()
    assert end.messages == ["no", "more"]
    assert end.message == "no\nmore"


async def test_lines_are_handed_over_while_it_runs() -> None:
    seen: list[bytes] = []
    first = asyncio.Event()

    def take(line: bytes) -> None:
        seen.append(line)
        first.set()

    text = "print('one', flush=True); input(); print('two'); print('three', end='')"
    read, write = os.pipe()
    command = OwnCommand((*PYTHON, text.replace("input()", wait_for(read))), b"", take)
    await first.wait()
    assert seen == [b"one"]
    os.write(write, b"\n")
    end = await command.wait()
    os.close(read)
    os.close(write)
    # A line without an end was not finished.
    assert (seen, end.stdout) == ([b"one", b"two"], b"")


def wait_for(fd: int) -> str:
    return f"open('/proc/{os.getpid()}/fd/{fd}').readline()"


async def test_what_is_too_long_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_command, "MAX_OUTPUT_BYTES", 100_000)
    text = "print('a'); print('b' * 300_000); print('c')"
    seen: list[bytes] = []
    end = await OwnCommand((*PYTHON, text), on_line=seen.append).wait()
    assert (seen, end.truncated) == ([b"a", b"c"], True)
    end = await OwnCommand((*PYTHON, text)).wait()
    assert (len(end.stdout), end.truncated) == (100_000, True)


async def test_a_command_that_ignores_the_end_is_killed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(own_command, "GRACE_S", 0.2)
    before = descriptors()
    deaf = (
        "import signal, time; signal.signal(15, signal.SIG_IGN); print(1, flush=True)"
    )
    started = asyncio.Event()
    command = OwnCommand(
        (*PYTHON, f"{deaf}; time.sleep(300)"), on_line=lambda _: started.set()
    )
    await started.wait()
    await command.end()
    end = await command.wait()
    assert (end.status, end.cancelled) == (-9, True)
    assert len(descriptors()) <= len(before) + 4  # of the shell that watches


async def test_who_stops_waiting_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    mark = f"OWN_COMMAND_TEST={os.getpid()}"
    monkeypatch.setenv("OWN_COMMAND_TEST", str(os.getpid()))
    started = asyncio.Event()
    text = "import time; print(1, flush=True); time.sleep(300)"
    command = OwnCommand((*PYTHON, text), on_line=lambda _: started.set())
    waiting = asyncio.create_task(command.wait())
    await started.wait()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert command.pid not in marked(mark)
