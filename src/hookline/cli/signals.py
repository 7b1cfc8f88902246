"""What signals do to a command: they end it with its hooks, or reload settings."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import TYPE_CHECKING

from hookline.execute.watchdog import watcher
from hookline.hosts.failsafe import failsafe

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

_STOPPING = (signal.SIGTERM, signal.SIGINT)


def end_hooks_on_signals(*numbers: signal.Signals) -> None:
    """From now on these signals kill the hooks that run, then end this process."""
    for number in numbers:
        if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
            signal.signal(number, _end_by_signal)


def _end_by_signal(number: int, _frame: object) -> None:
    if watcher.postpone(lambda: os.kill(os.getpid(), number)):
        return  # in the middle of starting a hook, which would outlive us
    watcher.kill_all()
    if failsafe.words:
        failsafe.end(f"ended by {signal.Signals(number).name}")
    # The status that shells and supervisors expect of a signal.
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    # The first process of a container is not ended by that.
    os._exit(128 + number)


def stop_on_signals(loop: AbstractEventLoop, stop: Callable[[], object]) -> None:
    """Call ``stop`` at the first SIGTERM or SIGINT; a second one ends the process."""

    def receive(_number: int, _frame: object) -> None:
        # Not in the loop, which may be late: the next signal is not lost then.
        end_hooks_on_signals(*_STOPPING)
        loop.call_soon_threadsafe(stop)

    for number in _STOPPING:
        signal.signal(number, receive)


def reload_on_hangup(loop: AbstractEventLoop, reload: Callable[[], object]) -> None:
    """Call ``reload`` at each SIGHUP; that of a closed window is like SIGTERM."""
    had_terminal = _has_terminal()

    def receive(_number: int, _frame: object) -> None:
        if had_terminal and not _has_terminal():
            os.kill(os.getpid(), signal.SIGTERM)
        else:
            loop.call_soon_threadsafe(reload)

    signal.signal(signal.SIGHUP, receive)


def _has_terminal() -> bool:
    """Whether this process is in a window that is still open."""
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY))
    except OSError:
        return False
    return True
