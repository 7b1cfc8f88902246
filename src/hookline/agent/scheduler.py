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
from .tool_calls import Confirm, ToolResult, call_tool, refused_result
from .triggers import ConfigOrEvents, events_of
from .turn import HookedRun

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
        tasks: list[asyncio.Task[None]] = []
        results: dict[int, ToolResult] = {}
        answers: list[ToolAnswer] = []
        slots = asyncio.Semaphore(self.max_parallel)

        def cancel_others(_: str) -> None:
            if self.on_stop is OnStop.CANCEL:
                for task in tasks:
                    if task is not asyncio.current_task():
                        task.cancel()

        hooked_run = HookedRun(self.session, cancel_others)
        if allowed_names is not None:
            hooked_run.allowed_names = frozenset(allowed_names)

        def complete(index: int, result: ToolResult) -> None:
            results[index] = result
            self._notify(calls[index], CallStatus.DONE)
            while (following := len(answers)) in results:
                answer = ToolAnswer(calls[following], results[following])
                answers.append(answer)
                _call_host(self.publish, answer)
                self._notify(answer.call, CallStatus.IDLE)

        async def run_call(index: int) -> None:
            try:
                async with slots:
                    result = await self._result(calls[index], hooked_run)
            except asyncio.CancelledError:
                if hooked_run.ended is None:
                    raise
                result = refused_result(f"Cancelled: {hooked_run.ended}")
            if result.stop_reason is not None:
                hooked_run.stop(result.stop_reason)
            complete(index, result)

        for call in calls:
            self._notify(call, CallStatus.IDLE)
        async with asyncio.TaskGroup() as group:
            tasks += [group.create_task(run_call(index)) for index in range(len(calls))]
        for index in range(len(calls)):
            if index not in results:  # cancelled before it started
                reason = hooked_run.ended or "cancelled"
                complete(index, refused_result(f"Not run: {reason}"))
        return ToolBatch(
            answers=tuple(answers),
            should_stop=hooked_run.ended is not None,
            stop_reason=hooked_run.ended,
        )

    async def _result(self, call: ToolCall, hooked_run: HookedRun) -> ToolResult:
        """Run one call, unless something forbids it."""
        if hooked_run.ended is None:
            self._notify(call, CallStatus.VALIDATING)
        problem = hooked_run.problem(call.name)
        tool = self.tools.get(call.name)
        if tool is None:
            problem = problem or f"Unknown tool {call.name!r}"
        problem = problem or call.problem
        if tool is None or problem is not None:
            return refused_result(problem or "")
        hooked_call = await hooked_run.begin_tool(
            call.name,
            tool.complete(call.input),
            confirm=self.confirm,
            on_ask=lambda: self._notify(call, CallStatus.AWAITING_CONFIRMATION),
        )
        if (refusal := hooked_call.refusal) is not None:
            return refusal
        if hooked_run.ended is not None:  # meanwhile, by another call
            return refused_result(f"Not run: {hooked_run.ended}")
        self._notify(call, CallStatus.EXECUTING)
        result = await call_tool(tool.execute, hooked_call.tool_input)
        return (await hooked_call.finish(result)).result

    def _notify(self, call: ToolCall, status: CallStatus) -> None:
        _call_host(self.on_status, call, status)


def _call_host(listener: Callable[..., None], *args: Any) -> None:
    try:
        listener(*args)
    # The host's own code: a display that fails must not fail the tool calls.
    except Exception as error:  # noqa: BLE001
        logger.warning("a listener of the scheduler raised %r", error)
