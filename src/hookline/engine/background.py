"""Hooks that nobody waits for: ``"async": true`` (protocol.md#rules)."""

from __future__ import annotations

import asyncio
from collections import deque
from copy import copy

from msgspec import Struct

from hookline.plan import HookCall, RegisteredHook
from hookline.protocol.results import FailureCause, HookExecutionResult

from .breaker import CircuitBreaker, refused
from .run_hook import Executors, run_hook

MAX_RUNNING = 64
"""In each event loop."""


class BackgroundHooks:
    """Starts hooks without waiting: so many at a time, the rest in order."""

    def __init__(self, executors: Executors, breaker: CircuitBreaker) -> None:
        self._executors = executors
        self._breaker = breaker
        self._queues: dict[asyncio.AbstractEventLoop, _Queue] = {}

    def start(self, hook: RegisteredHook, call: HookCall) -> HookExecutionResult:
        """Start a hook, now or when others have ended; its result is not known."""
        # The host may change its objects once the event has been answered.
        call = call.with_input(call.plain_input())
        self._queue().add(_LateHook(hook, call, self._executors, self._breaker))
        return _unknown_result(hook)

    async def run_until_async(
        self, hook: RegisteredHook, call: HookCall
    ) -> HookExecutionResult:
        """Run a hook that may say, in its first line, that nobody should wait for it.

        So do hooks for Claude Code (protocol.md#dialects).
        """
        from hookline.protocol.dialect_payloads import async_timeout  # rarely needed

        loop = asyncio.get_running_loop()
        is_left: asyncio.Future[None] = loop.create_future()

        def look(line: bytes) -> float | None:
            timeout_s = async_timeout(line, hook.config.timeout_ms / 1000)
            if timeout_s is not None and not is_left.done():
                is_left.set_result(None)
            return timeout_s

        own_call = copy(call)
        own_call.on_start = look
        run = run_hook(hook, own_call, self._executors, self._breaker)
        task = loop.create_task(run)
        try:
            await asyncio.wait((task, is_left), return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            raise
        if not is_left.done():
            return task.result()
        own = (self._executors, self._breaker, task)
        self._queue().add(_LateHook(hook, call, *own))
        return _unknown_result(hook)

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


class _LateHook(Struct, frozen=True):
    """A hook of one event that nobody waits for."""

    hook: RegisteredHook
    call: HookCall
    executors: Executors
    breaker: CircuitBreaker
    running: asyncio.Task[HookExecutionResult] | None = None
    """Set where it runs already, so that it cannot wait for its turn."""

    async def run(self) -> None:
        context = self.executors, self.breaker
        try:
            result = await (self.running or run_hook(self.hook, self.call, *context))
        except asyncio.CancelledError:
            self.fail(FailureCause.CRASH, "ended before it had finished: its host ends")
            raise
        self._tell(result)

    def fail(self, cause: FailureCause, error: str) -> None:
        """Tell why there is no result: else the event would look as if it had one."""
        self._tell(refused(self.hook, cause, error))

    def _tell(self, result: HookExecutionResult) -> None:
        if self.call.on_late is not None:
            self.call.on_late(self.call, result)


def _unknown_result(hook: RegisteredHook) -> HookExecutionResult:
    return HookExecutionResult(
        hook_name=hook.name,
        hook_type=hook.config.type,
        source=hook.source,
        event_name=hook.event,
        success=True,
        is_async=True,
    )


class _Queue:
    """The hooks of one event loop: those that run, and those that wait."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._running: set[asyncio.Task[None]] = set()
        self._waiting: deque[_LateHook] = deque()

    def add(self, hook: _LateHook) -> None:
        if hook.running is not None:
            self._start(hook)
        else:
            self._waiting.append(hook)
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
        while self._waiting:
            hook = self._waiting.popleft()
            hook.fail(FailureCause.SPAWN, "never started: its host ends")
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    def _start_more(self) -> None:
        while self._waiting and len(self._running) < MAX_RUNNING:
            self._start(self._waiting.popleft())

    def _start(self, hook: _LateHook) -> None:
        task = self._loop.create_task(hook.run())
        self._running.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if not task.cancelled():
            self._start_more()
