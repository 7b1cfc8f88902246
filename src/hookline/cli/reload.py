"""Follow changed settings in a command that runs long."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from signal import SIGHUP

from hookline.engine.system import HookSystem

from .common import has_terminal

LOOK_S = 1.0
"""How often the settings are looked at."""

_log = logging.getLogger("hookline.reload")


@asynccontextmanager
async def following_settings(system: HookSystem) -> AsyncIterator[None]:
    """Reload settings that have changed, and whenever SIGHUP arrives.

    SIGHUP of a window that was closed ends the command as SIGTERM does.
    """
    loop, asked = asyncio.get_running_loop(), asyncio.Event()
    had_terminal = has_terminal()

    def receive() -> None:
        if had_terminal and not has_terminal():
            os.kill(os.getpid(), signal.SIGTERM)
        else:
            asked.set()

    loop.add_signal_handler(SIGHUP, receive)
    _log.setLevel(logging.INFO)  # also without --verbose: it is rare, and matters
    following = loop.create_task(_follow(system, asked))
    try:
        yield
    finally:
        following.cancel()
        await asyncio.wait({following})
        # It must not kill hooks that finish, either.
        loop.remove_signal_handler(SIGHUP)
        signal.signal(SIGHUP, signal.SIG_IGN)


async def _follow(system: HookSystem, asked: asyncio.Event) -> None:
    while True:
        with suppress(TimeoutError):
            await asyncio.wait_for(asked.wait(), LOOK_S)
        was_asked = asked.is_set()
        if not was_asked and not system.settings_changed():
            continue
        asked.clear()
        outcome = await system.reload()
        if was_asked and not outcome.changed and not outcome.problems:
            _log.info("settings have not changed")
