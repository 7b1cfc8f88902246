"""May a planned hook run now? Trust, depth, and the breaker for repeated timeouts.

A refusal is a failure of the hook, so its policy decides what it means: where timeouts
block, the skip blocks. Managed hooks are refused for nothing but changed files.

The breaker counts per hook and tool name: what is slow for ``read`` says nothing about
``write``. When its cooldown is over, one event is let through as a probe; the others
are skipped until that has answered in time. It remembers across processes, because
``hookline fire`` is a process for each event: one small private file per project,
written only when a hook times out, is tried again or recovers. If it cannot be kept, it
counts for this process alone.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct

from hookline._internal.log import logger
from hookline._internal.state_files import (
    file_name,
    locked,
    read_private,
    state_dir,
    write_private,
)
from hookline.errors import StateFileError
from hookline.execute.answer import read_end
from hookline.plan import HookCall, RegisteredHook, RunEnd
from hookline.protocol.results import FailureCause, HookExecutionResult
from hookline.settings.model import Breaker, HookSource
from hookline.settings.places import outermost_project

# On Python 3.11 finding a member in its enum costs more than a call.
_RUNTIME, _TIMEOUT = HookSource.RUNTIME, FailureCause.TIMEOUT


def refusal(
    hook: RegisteredHook,
    call: HookCall,
    breaker: CircuitBreaker,
    *,
    to_run: bool = True,
) -> HookExecutionResult | None:
    """Why the hook must not run now, as its result; None if it may run.

    ``to_run``: it runs if it may, so that a probe is taken.
    """
    if hook.config.managed:
        return None
    if call.depth >= hook.options.max_depth:
        error = f"skipped: nested deeper than maxDepth {hook.options.max_depth}"
        return refused(hook, FailureCause.SPAWN, error)
    tool = tool_of(call)
    if count := breaker.skips(hook, tool) if to_run else breaker.open_for(hook, tool):
        error = f"skipped: it timed out {count} times in a row"
        return refused(hook, FailureCause.TIMEOUT, error)
    return None


def refused(
    hook: RegisteredHook, cause: FailureCause, error: str
) -> HookExecutionResult:
    """The result of a hook that did not run, or whose run does not count."""
    return read_end(hook, RunEnd(cause=cause, error=error))


class Timeouts(Struct, frozen=True):
    """How often a hook timed out in a row, and until when it is skipped."""

    count: int
    until: float = 0.0
    """Seconds since the epoch; 0 if it is not skipped."""


Counted = dict[str, dict[str, Timeouts]]
"""For each hook: its timeouts by tool."""

_MAX_HOOKS, _MAX_TOOLS = 256, 64
_MAX_NAME = 64
_PROBE_TRIES, _PROBE_WAIT_S = 20, 0.001


class CircuitBreaker:
    """Skips the hooks of one project that keep timing out, for a while."""

    def __init__(
        self, project: str | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        self._clock = clock
        self._folder, self._path = timeouts_file(project)
        self._stored: Counted | None = None
        self._own: Counted = {}
        """Counts of hooks registered in code, or of all if nothing can be stored."""

    def skips(self, hook: RegisteredHook, tool: str = "") -> int:
        """How often a hook that is skipped now has timed out; 0 if it is to run.

        When the cooldown is over, the first caller runs it, in whichever process.
        """
        if not self._find(hook, tool).until or hook.options.breaker is None:
            return 0
        if self._is_shared(hook):
            self._stored = self._load()  # another process may have closed it
        found = self._find(hook, tool)
        if not found.until or self._is_cooling(hook, found):
            return found.count if found.until else 0
        return 0 if self._take_probe(hook, tool) else found.count

    def open_for(self, hook: RegisteredHook, tool: str | None = None) -> int:
        """The same without an effect; without a tool, the most of all of them."""
        found = self.skipped_for(hook)
        if tool is not None:
            found = {key: found[key] for key in [_tool_id(tool)] if key in found}
        return max((one.count for one in found.values()), default=0)

    def skipped_for(self, hook: RegisteredHook) -> dict[str, Timeouts]:
        """The tools for which a hook is skipped now; "" for events without one."""
        known = self._counted(hook)
        if not known or hook.options.breaker is None or hook.config.managed:
            return {}
        by_tool = known.get(_hook_id(hook), {})
        return {k: one for k, one in by_tool.items() if self._is_cooling(hook, one)}

    def note(
        self, hook: RegisteredHook, cause: FailureCause | None, tool: str = ""
    ) -> None:
        """Remember how a run ended."""
        breaker = hook.options.breaker
        if breaker is None or hook.config.managed:
            return
        if cause is _TIMEOUT:
            self._count(hook, tool, breaker)
        elif self._find(hook, tool).count:
            self._change(hook, lambda known: _set(known, hook, tool, None))

    def _count(self, hook: RegisteredHook, tool: str, breaker: Breaker) -> None:
        def add(known: Counted) -> bool:
            count = _get(known, hook, tool).count + 1
            until = self._cooled_at(breaker) if count >= breaker.timeouts else 0.0
            return _set(known, hook, tool, Timeouts(count, until))

        self._change(hook, add)
        if count := self.open_for(hook, tool):
            logger.warning(
                "hook %r timed out %d times in a row%s: skipped for %g s",
                hook.name,
                count,
                f" for {tool[:_MAX_NAME]!r}" if tool else "",
                breaker.cooldown_ms / 1000,
            )

    def _take_probe(self, hook: RegisteredHook, tool: str) -> bool:
        """Whether this event is the one that tries the hook again."""
        breaker = hook.options.breaker
        assert breaker is not None  # else nothing is counted

        def take(known: Counted) -> bool:
            found = _get(known, hook, tool)
            if self._is_cooling(hook, found):
                return False  # another process was faster
            until = self._cooled_at(breaker)
            return not found.until or _set(
                known, hook, tool, Timeouts(found.count, until)
            )

        for _ in range(_PROBE_TRIES):
            taken = self._change(hook, take, only_locked=True)
            if taken is not None:
                return taken
            time.sleep(_PROBE_WAIT_S)  # others hold the lock for less than that
        return True  # better one run too many than a guard that is left out

    def _is_cooling(self, hook: RegisteredHook, found: Timeouts) -> bool:
        breaker = hook.options.breaker
        left = found.until - self._clock()
        # More than a whole cooldown is left only if the clock was set back.
        return breaker is not None and 0 < left <= breaker.cooldown_ms / 1000

    def _cooled_at(self, breaker: Breaker) -> float:
        return self._clock() + breaker.cooldown_ms / 1000

    def _find(self, hook: RegisteredHook, tool: str) -> Timeouts:
        known = self._counted(hook)
        return _get(known, hook, tool) if known else _NONE

    def _counted(self, hook: RegisteredHook) -> Counted:
        if not self._is_shared(hook):
            return self._own
        if self._stored is None:
            self._stored = self._load()
        return self._stored

    def _is_shared(self, hook: RegisteredHook) -> bool:
        return self._path is not None and hook.source is not _RUNTIME

    def _change(
        self,
        hook: RegisteredHook,
        change: Callable[[Counted], bool],
        *,
        only_locked: bool = False,
    ) -> bool | None:
        """Change what is counted, here or in the file; None if that is locked."""
        if not self._is_shared(hook):
            return change(self._own)
        try:
            # Never wait for the lock: an event loop must not be held up.
            with locked(self._folder, wait=False) as mine:
                if only_locked and not mine:
                    return None
                # Read again: other processes count the same hook's timeouts.
                self._stored = self._load()
                changed = change(self._counted(hook))
                self._store()
        except (StateFileError, OSError) as error:
            self._keep_in_memory(error)
            return change(self._own)
        return changed

    def _load(self) -> Counted:
        if self._path is None:
            return {}
        try:
            return msgspec.json.decode(read_private(self._path) or b"{}", type=Counted)
        except StateFileError as error:
            self._keep_in_memory(error)
        except (msgspec.MsgspecError, ValueError):
            pass  # damaged: the next change replaces it
        return {}

    def _store(self) -> None:
        if self._path is not None:  # else it became unreadable just now
            content = msgspec.json.encode(self._stored)
            write_private(self._path, content, durable=False)

    def _keep_in_memory(self, error: Exception) -> None:
        logger.warning("timeouts of hooks are not remembered: %s", error)
        self._path = None


def tool_of(call: HookCall) -> str:
    """The tool that an event is about; events without one share a count."""
    tool = call.input.get("tool_name")
    # By the real type: an object of the host's may raise whatever it is asked.
    return str.__str__(tool) if issubclass(type(tool), str) else ""


_NONE = Timeouts(0)


def _get(known: Counted, hook: RegisteredHook, tool: str) -> Timeouts:
    return known.get(_hook_id(hook), {}).get(_tool_id(tool), _NONE)


def _set(
    known: Counted, hook: RegisteredHook, tool: str, found: Timeouts | None
) -> bool:
    by_tool = known.setdefault(_hook_id(hook), {})
    if found is None:
        by_tool.pop(_tool_id(tool), None)
    else:
        by_tool[_tool_id(tool)] = found
    if not by_tool:
        del known[_hook_id(hook)]
    # Names come from a model, which must not be able to fill the file.
    _drop_oldest(by_tool, _MAX_TOOLS)
    _drop_oldest(known, _MAX_HOOKS)
    return True


def _drop_oldest(entries: dict[str, Any], limit: int) -> None:
    while len(entries) > limit:
        del entries[next(iter(entries))]


def timeouts_file(project: str | None) -> tuple[str, str | None]:
    """Where timeouts are remembered: the folder, and the file of one project."""
    if project is None or (base := state_dir()) is None:
        return "", None
    if outermost_project(os.path.realpath(base)):
        return "", None  # a project must not say that a guard timed out
    folder = f"{base}/timeouts"
    return folder, f"{folder}/{file_name(os.path.realpath(project))}.json"


def _hook_id(hook: RegisteredHook) -> str:
    own = hook.serial if hook.source is HookSource.RUNTIME else None
    return _digest(repr((hook.event, hook.source, hook.matcher, hook.config, own)))


def _tool_id(tool: str) -> str:
    """A name that is short and fits into JSON, whatever a model calls its tool."""
    short = len(tool) <= _MAX_NAME and tool.isascii()
    return tool if short else f"#{_digest(tool)}"


def _digest(text: str) -> str:
    import hashlib  # only where a hook has timed out

    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
