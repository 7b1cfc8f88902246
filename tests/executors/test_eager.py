"""Async hooks take their first step at once, in a task of their own (issue 13.8).

These hold on every version of Python, whoever takes the first step.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextvars import ContextVar
from typing import Any

import pytest

from hookline import Config, HookSystem, ProcessedHookResult
from hookline.protocol.results import FailureCause

Hook = Callable[[dict[str, Any]], Awaitable[Any]]
BLOCK = {"decision": "block", "reason": "seen"}


async def fire_with(function: Any, **options: Any) -> ProcessedHookResult:
    async with HookSystem(Config()) as hooks:
        hooks.on("BeforeTool", **options)(function)
        return await fire(hooks)


async def fire(hooks: HookSystem) -> ProcessedHookResult:
    return await hooks.event_handler.fire_before_tool_event("write_file", {"a": 1})


def own_task() -> asyncio.Task[Any]:
    task = asyncio.current_task()
    assert task is not None
    return task


async def test_a_hook_that_does_not_wait_needs_no_turn_of_the_loop() -> None:
    async def guard(event: dict[str, Any]) -> dict[str, str]:
        return BLOCK

    turns: list[int] = []
    async with HookSystem(Config()) as hooks:
        hooks.on("BeforeTool")(guard)
        asyncio.get_running_loop().call_soon(turns.append, 1)
        result = await fire(hooks)
    assert (result.reason, turns) == ("seen", [])


async def test_a_hook_finds_its_own_task_from_its_first_step_on() -> None:
    seen: list[asyncio.Task[Any]] = []

    async def guard(event: dict[str, Any]) -> None:
        seen.append(own_task())
        await asyncio.sleep(0)
        seen.append(own_task())
        await asyncio.Event().wait()

    caller = own_task()
    result = await fire_with(guard, timeout_ms=20)
    assert result.aggregated.hook_results[0].timed_out
    assert seen[0] is seen[1]
    assert seen[0] is not caller
    assert own_task() is caller
    assert seen[0].done()


async def sleeps_until_its_timeout(seconds: float) -> dict[str, str] | None:
    try:
        async with asyncio.timeout(seconds):
            await asyncio.Event().wait()
    except TimeoutError:
        return BLOCK
    return None


async def waits_until_its_timeout(seconds: float) -> dict[str, str] | None:
    try:
        await asyncio.wait_for(asyncio.Event().wait(), seconds)
    except TimeoutError:
        return BLOCK
    return None


@pytest.mark.parametrize("seconds", [0, 0.01])
@pytest.mark.parametrize("wait", [sleeps_until_its_timeout, waits_until_its_timeout])
async def test_a_timeout_of_the_first_step_cancels_the_hook_and_not_its_caller(
    wait: Callable[[float], Awaitable[dict[str, str] | None]], seconds: float
) -> None:
    result = await fire_with(lambda _: wait(seconds))
    assert result.reason == "seen"
    assert own_task().cancelling() == 0
    await asyncio.sleep(0)


async def test_a_task_group_of_the_first_step_belongs_to_the_hook() -> None:
    async def fails() -> None:
        raise ValueError("child")

    async def guard(event: dict[str, Any]) -> dict[str, str]:
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(fails())
                await asyncio.Event().wait()
        except* ValueError:
            pass
        return BLOCK

    assert (await fire_with(guard)).reason == "seen"
    assert own_task().cancelling() == 0


variable: ContextVar[str] = ContextVar("variable", default="unset")


async def test_variables_set_in_the_first_step_stay_with_the_hook() -> None:
    seen: list[str] = []

    async def guard(event: dict[str, Any]) -> None:
        seen.append(variable.get())
        variable.set("hook")
        await asyncio.sleep(0)
        seen.append(variable.get())

    variable.set("caller")
    await fire_with(guard)
    assert (seen, variable.get()) == (["caller", "hook"], "caller")


async def test_a_hook_that_cancels_itself_before_it_waits_has_failed() -> None:
    waited: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def guard(event: dict[str, Any]) -> None:
        own_task().cancel("mine")
        await waited

    hook = (await fire_with(guard)).aggregated.hook_results[0]
    assert hook.cause is FailureCause.CRASH
    assert "cancelled itself" in (hook.error or "")
    assert waited.cancelled()


async def test_the_answer_of_a_hook_that_cancels_itself_and_returns_counts() -> None:
    async def guard(event: dict[str, Any]) -> dict[str, str]:
        own_task().cancel()
        return BLOCK

    assert (await fire_with(guard)).reason == "seen"
    assert own_task().cancelling() == 0


async def test_a_cancellation_may_be_caught_before_the_hook_waits() -> None:
    async def guard(event: dict[str, Any]) -> dict[str, str]:
        own_task().cancel()
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            own_task().uncancel()
        await asyncio.sleep(0)
        return BLOCK

    assert (await fire_with(guard)).reason == "seen"


async def test_cancelling_the_caller_cancels_what_the_first_step_waits_for() -> None:
    waited: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    ended = asyncio.Event()

    async def guard(event: dict[str, Any]) -> None:
        asyncio.get_running_loop().call_soon(caller.cancel)
        try:
            await waited
        finally:
            ended.set()

    caller = asyncio.create_task(fire_with(guard))
    with pytest.raises(asyncio.CancelledError):
        await caller
    await asyncio.wait_for(ended.wait(), 30)
    assert waited.cancelled()


class Awaits:
    """An awaitable that is no coroutine."""

    def __init__(self, work: Coroutine[Any, Any, Any]) -> None:
        self._work = work

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._work.__await__()


async def done_future() -> Any:
    future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    future.set_result(BLOCK)
    return await future


async def later_future() -> Any:
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()
    loop.call_soon(future.set_result, BLOCK)
    return await future


async def another_task() -> Any:
    return await asyncio.create_task(later_future())


async def several_waits() -> Any:
    await asyncio.sleep(0)
    await asyncio.sleep(0.001)
    return await asyncio.shield(another_task())


async def a_thread() -> Any:
    return await asyncio.to_thread(lambda: BLOCK)


@pytest.mark.parametrize(
    "wait", [done_future, later_future, another_task, several_waits, a_thread]
)
@pytest.mark.parametrize("wrap", [lambda work: work, Awaits, asyncio.ensure_future])
async def test_whatever_a_hook_waits_for_its_answer_is_the_same(
    wait: Callable[[], Coroutine[Any, Any, Any]],
    wrap: Callable[[Any], Awaitable[Any]],
) -> None:
    assert (await fire_with(lambda _: wrap(wait()))).reason == "seen"


async def test_a_hook_that_yields_nonsense_has_failed() -> None:
    class Nonsense:
        def __await__(self) -> Generator[Any, Any, None]:
            yield 42

    hook = (await fire_with(lambda _: Nonsense())).aggregated.hook_results[0]
    assert (hook.cause, "bad yield" in (hook.error or "")) == (FailureCause.CRASH, True)


async def test_the_own_task_is_a_task_like_any_other() -> None:
    seen: dict[str, Any] = {}
    ended = asyncio.Event()

    async def guard(event: dict[str, Any]) -> dict[str, str]:
        task = own_task()
        seen["listed"] = task in asyncio.all_tasks()
        seen["is a task"] = isinstance(task, asyncio.Task)
        seen["loop"] = task.get_loop() is asyncio.get_running_loop()
        seen["pending"] = not task.done() and "pending" in repr(task)
        task.set_name("named")
        task.add_done_callback(lambda _: ended.set())
        seen["task"] = task
        return BLOCK

    assert (await fire_with(guard)).reason == "seen"
    await asyncio.wait_for(ended.wait(), 30)
    task = seen.pop("task")
    assert (task.get_name(), await task) == ("named", None)
    assert all(seen.values()), seen


@pytest.mark.parametrize("look", [repr, lambda t: t.done(), asyncio.ensure_future])
async def test_a_task_that_was_kept_can_be_looked_at_later(
    look: Callable[[Any], object],
) -> None:
    kept: list[asyncio.Task[Any]] = []

    async def guard(event: dict[str, Any]) -> None:
        kept.append(own_task())

    await fire_with(guard)
    look(kept[0])
    assert await asyncio.wait_for(asyncio.shield(kept[0]), 30) is None
    assert kept[0].done()


async def test_hooks_that_look_at_their_task_leave_none_behind() -> None:
    async def guard(event: dict[str, Any]) -> None:
        own_task().get_name()

    before = len(asyncio.all_tasks())
    async with HookSystem(Config()) as hooks:
        hooks.on("BeforeTool")(guard)
        for _ in range(50):
            await fire(hooks)
            assert len(asyncio.all_tasks()) <= before + 1


async def test_an_event_that_a_hook_fires_returns_to_the_hooks_own_task() -> None:
    seen: list[asyncio.Task[Any]] = []
    async with HookSystem(Config()) as hooks:

        @hooks.on("BeforeAgent")
        async def inner(event: dict[str, Any]) -> None:
            seen.append(own_task())
            raise KeyError("inner")

        @hooks.on("BeforeTool")
        async def outer(event: dict[str, Any]) -> dict[str, str]:
            seen.append(own_task())
            await hooks.event_handler.fire_before_agent_event("again")
            seen.append(own_task())
            return BLOCK

        assert (await fire(hooks)).reason == "seen"
    assert seen[0] is seen[2]
    assert len({*seen, own_task()}) == 3


async def test_an_event_may_be_fired_outside_of_any_task() -> None:
    async def guard(event: dict[str, Any]) -> dict[str, str]:
        assert asyncio.current_task() is not None
        return BLOCK

    loop = asyncio.get_running_loop()
    answer: asyncio.Future[ProcessedHookResult] = loop.create_future()

    def drive(hooks: HookSystem) -> None:
        assert asyncio.current_task() is None
        try:
            fire(hooks).send(None)
        except StopIteration as end:
            assert asyncio.current_task() is None
            answer.set_result(end.value)

    async with HookSystem(Config()) as hooks:
        hooks.on("BeforeTool")(guard)
        loop.call_soon(drive, hooks)
        assert (await asyncio.wait_for(answer, 30)).reason == "seen"


def test_a_task_factory_of_the_host_makes_the_tasks_of_hooks() -> None:
    made: list[Any] = []

    def factory(
        loop: asyncio.AbstractEventLoop, work: Any, **options: Any
    ) -> asyncio.Task[Any]:
        made.append(work)
        return asyncio.Task(work, loop=loop, **options)

    async def guard(event: dict[str, Any]) -> dict[str, str]:
        return BLOCK

    async def main() -> tuple[str | None, int]:
        asyncio.get_running_loop().set_task_factory(factory)
        return (await fire_with(guard)).reason, len(made)

    assert asyncio.run(main()) == ("seen", 1)


@pytest.mark.parametrize("wait", [done_future, several_waits])
def test_hooks_run_in_debug_mode(
    wait: Callable[[], Coroutine[Any, Any, Any]],
) -> None:
    async def main() -> str | None:
        return (await fire_with(lambda _: wait())).reason

    assert asyncio.run(main(), debug=True) == "seen"


@pytest.mark.parametrize("debug", [False, True], ids=["", "debug"])
def test_another_thread_may_look_at_all_tasks_during_the_first_step(
    debug: bool,
) -> None:
    """As monitors and profilers do."""

    async def guard(event: dict[str, Any]) -> dict[str, str]:
        loop = asyncio.get_running_loop()
        looking = threading.Thread(target=asyncio.all_tasks, args=[loop])
        looking.start()
        looking.join()
        await asyncio.sleep(0)
        return BLOCK

    async def main() -> str | None:
        return (await fire_with(guard, timeout_ms=2000)).reason

    assert asyncio.run(main(), debug=debug) == "seen"


async def test_hooks_that_run_at_once_have_a_task_each() -> None:
    seen: list[asyncio.Task[Any]] = []

    async def guard(event: dict[str, Any]) -> None:
        seen.append(own_task())

    async with HookSystem(Config()) as hooks:
        for name in ("one", "two"):
            hooks.on("BeforeTool", name=name)(guard)
        await fire(hooks)
    assert len({*seen, own_task()}) == 3
