"""Skip hooks that keep timing out, for a while.

Timeouts in a row are counted per hook and tool name: what is slow for ``read`` says
nothing about ``write``. When its cooldown is over, one event tries the hook; the others
skip it until that has answered in time. ``hookline fire`` is a process for each event,
so the counts are in a small private file per project. If it cannot be used, they are
kept in this process alone. Processes do not wait for each other: a count may be lost,
and two processes may try a hook at once.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import msgspec
from msgspec import Struct

from hookline._internal.log import logger
from hookline._internal.state_files import (
    file_name,
    read_private,
    state_dir,
    write_private,
)
from hookline.errors import StateFileError
from hookline.plan import RegisteredHook
from hookline.protocol.results import FailureCause
from hookline.settings.model import HookSource
from hookline.settings.places import outermost_project

_MAX_ENTRIES, _MAX_NAME = 500, 64
"""Names come from a model, which must not be able to fill the file."""
_IN_CODE = "code "
"""How the keys of hooks begin that are registered in code: they stay in memory."""


class Timeouts(Struct, frozen=True):
    """How often a hook timed out in a row, and until when it is skipped."""

    count: int = 0
    until: float = 0.0
    """Seconds since the epoch; 0 if it is not skipped."""


class CircuitBreaker:
    """Skips the hooks of one project that keep timing out, for a while."""

    def __init__(
        self, project: str | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        self._clock = clock
        self._path = None if project is None else timeouts_file(project)
        self._prefixes: dict[RegisteredHook, str] = {}
        self.timeouts: dict[str, Timeouts] = {}
        """By hook and tool; empty where nothing has timed out: ask nothing then."""
        self._read()

    def skips(
        self, hook: RegisteredHook, tool: str = "", *, to_run: bool = True
    ) -> int:
        """How often a hook that is skipped now has timed out; 0 if it is to run.

        When the cooldown is over, the first event ``to_run`` tries the hook.
        """
        key, options = self._key(hook, tool), hook.options.breaker
        if options is None or key not in self.timeouts:
            return 0
        self._read()  # another process may have seen it answer in time
        timeouts = self.timeouts.get(key, Timeouts())
        if self._is_skipped(hook, timeouts):
            return timeouts.count
        if timeouts.until and to_run:
            until = self._clock() + options.cooldown_ms / 1000
            self._write(key, Timeouts(timeouts.count, until))
        return 0

    def skipped(self, hook: RegisteredHook) -> dict[str, Timeouts]:
        """The tools for which a hook is skipped now; "" for events without one."""
        if not self.timeouts or hook.config.managed:
            return {}
        prefix = self._key(hook, "")
        return {
            key.removeprefix(prefix): timeouts
            for key, timeouts in self.timeouts.items()
            if key.startswith(prefix) and self._is_skipped(hook, timeouts)
        }

    def note(
        self, hook: RegisteredHook, cause: FailureCause | None, tool: str = ""
    ) -> None:
        """Remember how a run ended."""
        key, options = self._key(hook, tool), hook.options.breaker
        if options is None or hook.config.managed:
            return
        if cause is not FailureCause.TIMEOUT:
            if key in self.timeouts:
                self._write(key, None)
            return
        self._read()  # other processes count the same hook's timeouts
        count, until = self.timeouts.get(key, Timeouts()).count + 1, 0.0
        if count >= options.timeouts:
            cooldown_s = options.cooldown_ms / 1000
            until = self._clock() + cooldown_s
            about = f" for {tool[:_MAX_NAME]!r}" if tool else ""
            text = "hook %r timed out %d times in a row%s: skipped for %g s"
            logger.warning(text, hook.name, count, about, cooldown_s)
        self._write(key, Timeouts(count, until))

    def _is_skipped(self, hook: RegisteredHook, timeouts: Timeouts) -> bool:
        options, left_s = hook.options.breaker, timeouts.until - self._clock()
        # More than a whole cooldown is left only if the clock was set back.
        return options is not None and 0 < left_s <= options.cooldown_ms / 1000

    def _key(self, hook: RegisteredHook, tool: str) -> str:
        if hook not in self._prefixes:
            is_in_code = hook.source is HookSource.RUNTIME
            serial = hook.serial if is_in_code else None
            identity = (hook.event, hook.source, hook.matcher, hook.config, serial)
            prefix = _IN_CODE if is_in_code else ""
            self._prefixes[hook] = f"{prefix}{_digest(repr(identity))} "
        # What is short fits into JSON, whatever a model calls its tool.
        is_short = len(tool) <= _MAX_NAME and tool.isascii()
        return self._prefixes[hook] + (tool if is_short else f"#{_digest(tool)}")

    def _read(self) -> None:
        if self._path is None:
            return
        stored: dict[str, Timeouts] = {}
        try:
            content = read_private(self._path) or b"{}"
            stored = msgspec.json.decode(content, type=dict[str, Timeouts])
        except StateFileError as error:
            self._keep_in_memory(error)
        except (msgspec.MsgspecError, ValueError):
            pass  # damaged: the next change replaces it
        in_code = {k: v for k, v in self.timeouts.items() if k.startswith(_IN_CODE)}
        self.timeouts = stored | in_code

    def _write(self, key: str, timeouts: Timeouts | None) -> None:
        self._read()  # other processes may have written since
        # Never changed in place: other threads may be going through it.
        counts = self.timeouts.copy()
        counts.pop(key, None)
        if timeouts is not None:
            counts[key] = timeouts
        while len(counts) > _MAX_ENTRIES:
            del counts[next(iter(counts))]  # the oldest
        self.timeouts = counts
        if self._path is not None and not key.startswith(_IN_CODE):
            stored = {k: v for k, v in counts.items() if not k.startswith(_IN_CODE)}
            try:
                write_private(self._path, msgspec.json.encode(stored), durable=False)
            except (StateFileError, OSError) as error:
                self._keep_in_memory(error)

    def _keep_in_memory(self, error: Exception) -> None:
        logger.warning("timeouts of hooks are not remembered: %s", error)
        self._path = None


def timeouts_file(project: str) -> str | None:
    """Where the timeouts of one project are remembered."""
    folder = state_dir()
    # A project must not say that a guard timed out.
    if folder is None or outermost_project(os.path.realpath(folder)):
        return None
    return f"{folder}/timeouts/{file_name(os.path.realpath(project))}.json"


def _digest(text: str) -> str:
    import hashlib  # only where a hook has timed out

    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
