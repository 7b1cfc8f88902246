"""Hooks that nobody waits for: ``"async": true`` (PROTOCOL section 13)."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Protocol

from hookline.executors.contract import HookCall, RegisteredHook
from hookline.protocol.results import HookExecutionResult

from .admission import CircuitBreaker
from .run_hook import Executors, run_hook

MAX_RUNNING = 64


class LateResults(Protocol):
    """Takes what such hooks said in the end."""

    def late(self, call: HookCall, result: HookExecutionResult) -> None:
        """Log and record the result of one hook."""


class BackgroundHooks:
    """Starts hooks without waiting: so many at a time, the rest in order."""

    def __init__(self, executors: Executors, breaker: CircuitBreaker) -> None:
        self._executors = executors
        self._breaker = breaker
        self._loop: asyncio.AbstractEventLoop | None = None
        self._running: set[asyncio.Task[None]] = set()
        self._waiting: deque[tuple[RegisteredHook, HookCall]] = deque()
        self.results: LateResults | None = None

    def start(self, hook: RegisteredHook, call: HookCall) -> HookExecutionResult:
        """Start a hook, now or when others have ended; its result is not known."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            # What was started in another event loop has ended with it.
            self._loop, self._running, self._waiting = loop, set(), deque()
        # The host may change its objects once the event has been answered.
        self._waiting.append((hook, call.with_input(call.plain_input())))
        self._start_more()
        return HookExecutionResult(
            hook_name=hook.name,
            hook_type=hook.config.type,
            source=hook.source,
            event_name=hook.event,
            success=True,
            is_async=True,
        )

    async def finish(self, limit_s: float | None = None) -> None:
        """Let all hooks of this event loop end; cancel what is left after the limit."""
        if self._loop is not asyncio.get_running_loop():
            return
        deadline = None if limit_s is None else self._loop.time() + limit_s
        while self._running:
            left = None if deadline is None else max(0, deadline - self._loop.time())
            await asyncio.wait(
                self._running, timeout=left, return_when=asyncio.FIRST_COMPLETED
            )
            if left == 0:
                break
        self._waiting.clear()
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    def _start_more(self) -> None:
        while self._waiting and len(self._running) < MAX_RUNNING:
            assert self._loop is not None  # set before anything waits
            task = self._loop.create_task(self._run(*self._waiting.popleft()))
            self._running.add(task)
            task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if not task.cancelled():
            self._start_more()

    async def _run(self, hook: RegisteredHook, call: HookCall) -> None:
        result = await run_hook(hook, call, self._executors, self._breaker)
        if self.results is not None:
            self.results.late(call, result)
