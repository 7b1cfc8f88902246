"""Hooks that nobody waits for: ``"async": true`` (PROTOCOL section 13)."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Protocol

from hookline.executors.contract import HookCall, RegisteredHook
from hookline.protocol.results import HookExecutionResult

from .admission import CircuitBreaker
from .run_hook import Executors, run_hook

MAX_RUNNING = 64
"""In each event loop."""

Run = Callable[[], Coroutine[Any, Any, None]]


class LateResults(Protocol):
    """Takes what such hooks said in the end."""

    def late(self, call: HookCall, result: HookExecutionResult) -> None:
        """Log and record the result of one hook."""


class BackgroundHooks:
    """Starts hooks without waiting: so many at a time, the rest in order."""

    def __init__(self, executors: Executors, breaker: CircuitBreaker) -> None:
        self._executors = executors
        self._breaker = breaker
        self._queues: dict[asyncio.AbstractEventLoop, _Queue] = {}

    def start(
        self, hook: RegisteredHook, call: HookCall, late: LateResults | None = None
    ) -> HookExecutionResult:
        """Start a hook, now or when others have ended; its result is not known."""
        # The host may change its objects once the event has been answered.
        call = call.with_input(call.plain_input())
        self._queue().add(partial(self._run, hook, call, late))
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
        queue = self._queues.get(asyncio.get_running_loop())
        if queue is not None:
            await queue.finish(limit_s)

    def _queue(self) -> _Queue:
        """The hooks of this event loop: several threads may each have one."""
        loop = asyncio.get_running_loop()
        queue = self._queues.get(loop)
        if queue is None:
            # What was started in a loop that is closed has ended with it.
            left = {one: q for one, q in self._queues.items() if not one.is_closed()}
            self._queues = left | {loop: (queue := _Queue(loop))}
        return queue

    async def _run(
        self, hook: RegisteredHook, call: HookCall, late: LateResults | None
    ) -> None:
        result = await run_hook(hook, call, self._executors, self._breaker)
        if late is not None:
            late.late(call, result)


class _Queue:
    """The hooks of one event loop: those that run, and those that wait."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._running: set[asyncio.Task[None]] = set()
        self._waiting: deque[Run] = deque()

    def add(self, run: Run) -> None:
        self._waiting.append(run)
        self._start_more()

    async def finish(self, limit_s: float | None) -> None:
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
            task = self._loop.create_task(self._waiting.popleft()())
            self._running.add(task)
            task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if not task.cancelled():
            self._start_more()
