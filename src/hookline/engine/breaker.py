"""May a hook run now? How deep events nest, and the breaker for repeated timeouts.

A refusal is a failure of the hook, so its policy decides what it means: where timeouts
block, the skip blocks. Managed hooks are never refused.

The breaker counts per hook and tool name: what is slow for ``read`` says nothing about
``write``. When its cooldown is over, one event tries the hook; the others are skipped
until that has answered in time. ``hookline fire`` is a process for each event, so the
counts are in a small private file per project. If it cannot be used, they are kept in
this process alone. Processes do not wait for each other: a count may be lost, and two
processes may try a hook at once.
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
from hookline.execute.answer import read_end
from hookline.plan import HookCall, RegisteredHook, RunEnd
from hookline.protocol.results import FailureCause, HookExecutionResult
from hookline.settings.model import HookSource
from hookline.settings.places import outermost_project

# On Python 3.11 finding a member in its enum costs more than a call.
_RUNTIME, _TIMEOUT = HookSource.RUNTIME, FailureCause.TIMEOUT

_MAX_ENTRIES, _MAX_NAME = 500, 64
"""Names come from a model, which must not be able to fill the file."""


def refusal(
    hook: RegisteredHook,
    call: HookCall,
    breaker: CircuitBreaker,
    *,
    to_run: bool = True,
) -> HookExecutionResult | None:
    """Why the hook must not run now, as its result; None if it may run.

    ``to_run``: it runs if it may, so that this event is the one that tries it again.
    """
    if hook.config.managed:
        return None
    if call.depth >= hook.options.max_depth:
        error = f"skipped: nested deeper than maxDepth {hook.options.max_depth}"
        return refused(hook, FailureCause.SPAWN, error)
    if count := breaker.skips(hook, tool_of(call), to_run=to_run):
        error = f"skipped: it timed out {count} times in a row"
        return refused(hook, FailureCause.TIMEOUT, error)
    return None


def refused(
    hook: RegisteredHook, cause: FailureCause, error: str
) -> HookExecutionResult:
    """The result of a hook that did not run, or whose run does not count."""
    return read_end(hook, RunEnd(cause=cause, error=error))


def tool_of(call: HookCall) -> str:
    """The tool that an event is about; events without one share a count."""
    tool = call.input.get("tool_name")
    # By the real type: an object of the host's may raise whatever it is asked.
    return str.__str__(tool) if issubclass(type(tool), str) else ""


class Timeouts(Struct, frozen=True):
    """How often a hook timed out in a row, and until when it is skipped."""

    count: int
    until: float = 0.0
    """Seconds since the epoch; 0 if it is not skipped."""


_NONE = Timeouts(0)
_Entries = dict[str, Timeouts]


class CircuitBreaker:
    """Skips the hooks of one project that keep timing out, for a while."""

    def __init__(
        self, project: str | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        self._clock = clock
        self._path = None if project is None else timeouts_file(project)
        self._stored: _Entries | None = None
        """As they were read last; None to read them again."""
        self._memory: _Entries = {}
        """Of hooks registered in code, or of all if no file can be used."""

    def skips(
        self, hook: RegisteredHook, tool: str = "", *, to_run: bool = True
    ) -> int:
        """How often a hook that is skipped now has timed out; 0 if it is to run.

        When the cooldown is over, the first event ``to_run`` tries the hook.
        """
        breaker = hook.options.breaker
        if breaker is None or not self._entries(hook):
            return 0
        key = _key(hook, tool)
        if not self._entries(hook).get(key, _NONE).until:
            return 0
        self._stored = None  # another process may have seen it answer in time
        entry = self._entries(hook).get(key, _NONE)
        if self._is_skipped(hook, entry):
            return entry.count
        if entry.until and to_run:
            until = self._clock() + breaker.cooldown_ms / 1000
            self._put(hook, key, Timeouts(entry.count, until))
        return 0

    def skipped(self, hook: RegisteredHook) -> dict[str, Timeouts]:
        """The tools for which a hook is skipped now; "" for events without one."""
        entries = list(self._entries(hook).items())
        if not entries or hook.config.managed:
            return {}
        prefix = _key(hook, "")
        return {
            key.removeprefix(prefix): entry
            for key, entry in entries
            if key.startswith(prefix) and self._is_skipped(hook, entry)
        }

    def note(
        self, hook: RegisteredHook, cause: FailureCause | None, tool: str = ""
    ) -> None:
        """Remember how a run ended."""
        breaker, entries = hook.options.breaker, self._entries(hook)
        if breaker is None or hook.config.managed:
            return
        if cause is not _TIMEOUT:
            if entries and (key := _key(hook, tool)) in entries:
                self._put(hook, key, None)
            return
        key = _key(hook, tool)
        self._stored = None  # other processes count the same hook's timeouts
        count, until = self._entries(hook).get(key, _NONE).count + 1, 0.0
        if count >= breaker.timeouts:
            until = self._clock() + breaker.cooldown_ms / 1000
            logger.warning(
                "hook %r timed out %d times in a row%s: skipped for %g s",
                hook.name,
                count,
                f" for {tool[:_MAX_NAME]!r}" if tool else "",
                breaker.cooldown_ms / 1000,
            )
        self._put(hook, key, Timeouts(count, until))

    def _is_skipped(self, hook: RegisteredHook, entry: Timeouts) -> bool:
        breaker, left = hook.options.breaker, entry.until - self._clock()
        # More than a whole cooldown is left only if the clock was set back.
        return breaker is not None and 0 < left <= breaker.cooldown_ms / 1000

    def _entries(self, hook: RegisteredHook) -> _Entries:
        if self._path is None or hook.source is _RUNTIME:
            return self._memory
        entries = self._stored
        if entries is None:
            entries = self._stored = self._load(self._path)
        return entries

    def _load(self, path: str) -> _Entries:
        try:
            return msgspec.json.decode(read_private(path) or b"{}", type=_Entries)
        except StateFileError as error:
            self._keep_in_memory(error)
        except (msgspec.MsgspecError, ValueError):
            pass  # damaged: the next change replaces it
        return {}

    def _put(self, hook: RegisteredHook, key: str, entry: Timeouts | None) -> None:
        self._stored = None  # other processes may have written since
        entries = self._entries(hook)
        entries.pop(key, None)
        if entry is not None:
            entries[key] = entry
        while len(entries) > _MAX_ENTRIES:
            del entries[next(iter(entries))]  # the oldest
        if self._path is not None and entries is not self._memory:
            try:
                content = msgspec.json.encode(entries)
                write_private(self._path, content, durable=False)
            except (StateFileError, OSError) as error:
                self._keep_in_memory(error)
                self._memory |= entries

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


def _key(hook: RegisteredHook, tool: str) -> str:
    serial = hook.serial if hook.source is _RUNTIME else None
    what = repr((hook.event, hook.source, hook.matcher, hook.config, serial))
    # What is short fits into JSON, whatever a model calls its tool.
    is_short = len(tool) <= _MAX_NAME and tool.isascii()
    return f"{_digest(what)} {tool if is_short else f'#{_digest(tool)}'}"


def _digest(text: str) -> str:
    import hashlib  # only where a hook has timed out

    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
