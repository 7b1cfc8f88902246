"""Run the tool calls of one model turn in parallel, each through its hooks.

Results are buffered and published in call order. A blocked call is completed: its
content is the reason, and it is never retried. A call outside the allowed names is
refused and fires no hooks. Once a hook stops the agent no further call starts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Sequence
from enum import StrEnum
from typing import Any

from msgspec import Struct

from hookline._internal.log import logger

from .conversation import Tool, ToolAnswer, ToolCall, by_name
from .firing import ConfigOrEvents, events_of
from .tool_calls import (
    Confirm,
    HookedToolCall,
    ToolResult,
    call_tool,
    not_allowed,
    not_run,
    refused_result,
)

DEFAULT_MAX_PARALLEL = 8


class CallStatus(StrEnum):
    """The state of a call; its slot is idle again once the result is published."""

    IDLE = "idle"
    VALIDATING = "validating"
    AWAITING_CONFIRMATION = "awaiting confirmation"
    EXECUTING = "executing"
    DONE = "done"


class OnStop(StrEnum):
    """What happens to running calls when a hook stops the agent."""

    FINISH = "finish"
    CANCEL = "cancel"


class ToolBatch(Struct, frozen=True, kw_only=True):
    """The answers to all calls of a turn, in call order."""

    answers: tuple[ToolAnswer, ...] = ()
    should_stop: bool = False
    stop_reason: str | None = None


class ToolScheduler:
    """Runs tool calls for one agent; ``publish`` gets the answers in call order.

    At most ``max_parallel`` run at a time. ``confirm`` asks a person where a hook wants
    one. When a hook stops the agent, running calls finish, or are cancelled with
    ``on_stop="cancel"``. ``on_status`` is told each change of a call's state.
    """

    def __init__(
        self,
        config: ConfigOrEvents,
        tools: Iterable[Tool | Callable[..., Any]],
        *,
        confirm: Confirm | None = None,
        max_parallel: int = DEFAULT_MAX_PARALLEL,
        on_stop: OnStop | str = OnStop.FINISH,
        on_status: Callable[[ToolCall, CallStatus], None] = lambda *_: None,
        publish: Callable[[ToolAnswer], None] = lambda *_: None,
    ) -> None:
        self.session = events_of(config)
        self.tools = by_name(tools)
        self.confirm = confirm
        self.max_parallel = max(1, max_parallel)
        self.on_stop = OnStop(on_stop)
        self.on_status = on_status
        self.publish = publish

    async def run(
        self, calls: Sequence[ToolCall], allowed_names: Collection[str] | None = None
    ) -> ToolBatch:
        """Run all calls of a turn; without names every tool is allowed."""
        slots = asyncio.Semaphore(self.max_parallel)
        return await _Batch(self, calls, allowed_names, slots).run()


class _Batch(Struct):
    """The calls of one turn, with the buffer of their results."""

    scheduler: ToolScheduler
    calls: Sequence[ToolCall]
    allowed: Collection[str] | None
    slots: asyncio.Semaphore
    buffer: dict[int, ToolResult] = {}
    answers: list[ToolAnswer] = []
    stop_reason: str | None = None
    tasks: list[asyncio.Task[None]] = []

    async def run(self) -> ToolBatch:
        for call in self.calls:
            self._notify(call, CallStatus.IDLE)
        async with asyncio.TaskGroup() as group:
            self.tasks = [
                group.create_task(self._run_call(at)) for at in range(len(self.calls))
            ]
        self._answer_cancelled()
        return ToolBatch(
            answers=tuple(self.answers),
            should_stop=self.stop_reason is not None,
            stop_reason=self.stop_reason,
        )

    async def _run_call(self, at: int) -> None:
        try:
            async with self.slots:
                result = await self._result(self.calls[at])
        except asyncio.CancelledError:
            if self.stop_reason is None:
                raise
            result = refused_result(f"Cancelled: {self.stop_reason}")
        self._note_stop(result)
        self.buffer[at] = result
        self._notify(self.calls[at], CallStatus.DONE)
        self._publish_ready()

    def _answer_cancelled(self) -> None:
        """Answer calls that were cancelled before they started."""
        for at, call in enumerate(self.calls):
            if at not in self.buffer:
                self.buffer[at] = not_run(self.stop_reason or "cancelled")
                self._notify(call, CallStatus.DONE)
        self._publish_ready()

    async def _result(self, call: ToolCall) -> ToolResult:
        if self.stop_reason is not None:
            return not_run(self.stop_reason)
        self._notify(call, CallStatus.VALIDATING)
        problem = self._problem(call)
        return await self._perform(call) if problem is None else refused_result(problem)

    def _problem(self, call: ToolCall) -> str | None:
        if self.allowed is not None and call.name not in self.allowed:
            return not_allowed(call.name, self.allowed)
        if call.name not in self.scheduler.tools:
            return f"Unknown tool {call.name!r}"
        return call.problem

    async def _perform(self, call: ToolCall) -> ToolResult:
        tool = self.scheduler.tools[call.name]
        hooked = HookedToolCall(
            self.scheduler.session, call.name, tool.complete(call.input)
        )
        await hooked.begin(
            self.scheduler.confirm,
            on_ask=lambda: self._notify(call, CallStatus.AWAITING_CONFIRMATION),
        )
        if hooked.refusal is not None:
            return hooked.refusal
        if self.stop_reason is not None:
            return not_run(self.stop_reason)
        self._notify(call, CallStatus.EXECUTING)
        made = await call_tool(tool.execute, hooked.tool_input)
        return (await hooked.finish(made)).result

    def _note_stop(self, result: ToolResult) -> None:
        if result.stop_reason is None or self.stop_reason is not None:
            return
        self.stop_reason = result.stop_reason
        if self.scheduler.on_stop is OnStop.CANCEL:
            for task in self.tasks:
                if task is not asyncio.current_task():
                    task.cancel()

    def _publish_ready(self) -> None:
        while (at := len(self.answers)) in self.buffer:
            answer = ToolAnswer(self.calls[at], self.buffer[at])
            self.answers.append(answer)
            _call_host(self.scheduler.publish, answer)
            self._notify(self.calls[at], CallStatus.IDLE)

    def _notify(self, call: ToolCall, status: CallStatus) -> None:
        _call_host(self.scheduler.on_status, call, status)


def _call_host(listener: Callable[..., None], *args: Any) -> None:
    try:
        listener(*args)
    # The host's own code: a display that fails must not fail the tool calls.
    except Exception as error:  # noqa: BLE001
        logger.warning("a listener of the scheduler raised %r", error)
