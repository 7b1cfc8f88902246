"""The tool calls of one turn: at once, in order, and only those that are allowed."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from hookline import Config, Settings
from hookline.agent import (
    CallStatus,
    Confirmation,
    ToolAnswer,
    ToolBatch,
    ToolCall,
    ToolScheduler,
)
from tests.support.recorded_events import DENY, STOP, RecordedHooks


def calls(*found: str) -> list[ToolCall]:
    return [ToolCall(f"c{at}", name, {"n": at}) for at, name in enumerate(found)]


def contents(batch: ToolBatch) -> list[Any]:
    return [answer.result.llm_content for answer in batch.answers]


class Watch:
    """What a scheduler tells its host."""

    def __init__(self) -> None:
        self.statuses: dict[str, list[CallStatus]] = {}
        self.published: list[str] = []

    def status(self, call: ToolCall, status: CallStatus) -> None:
        self.statuses.setdefault(call.id, []).append(status)

    def publish(self, answer: ToolAnswer) -> None:
        self.published.append(answer.call.id)


class Meeting:
    """Tools that wait for each other: they end only if they run at once."""

    def __init__(self, size: int) -> None:
        self._barrier = asyncio.Barrier(size)
        self.order: list[int] = []
        self.running = self.most = 0

    async def meet(self, n: int) -> str:
        await self._barrier.wait()
        return f"met {n}"

    async def count(self, n: int) -> str:
        self.running += 1
        self.most = max(self.most, self.running)
        for _ in range(3):
            await asyncio.sleep(0)
        self.running -= 1
        return f"counted {n}"


@pytest.fixture
def plain(tmp_path: Path) -> Config:
    return Config("s-1", tmp_path, Settings())


async def test_calls_of_one_turn_run_at_once(plain: Config) -> None:
    scheduler = ToolScheduler(plain, [Meeting(3).meet])
    async with asyncio.timeout(30):
        batch = await scheduler.run(calls("meet", "meet", "meet"))
    assert contents(batch) == ["met 0", "met 1", "met 2"]


async def test_no_more_calls_run_than_the_limit_says(plain: Config) -> None:
    meeting = Meeting(1)
    scheduler = ToolScheduler(plain, [meeting.count], max_parallel=2)
    batch = await scheduler.run(calls(*["count"] * 5))
    assert meeting.most == 2
    assert len(batch.answers) == 5


async def test_results_are_published_in_call_order_however_they_end(
    plain: Config,
) -> None:
    """protocol.md#callers: buffered and published in call order."""
    done = asyncio.Event()
    ended: list[int] = []

    async def work(n: int) -> int:
        if n == 0:
            await done.wait()
        ended.append(n)
        if n == 2:
            done.set()
        return n

    watch = Watch()
    scheduler = ToolScheduler(plain, [work], publish=watch.publish)
    batch = await scheduler.run(calls("work", "work", "work"))
    assert ended[-1] == 0
    assert watch.published == ["c0", "c1", "c2"]
    assert contents(batch) == [0, 1, 2]


async def test_a_call_goes_through_its_states_and_back_to_idle(plain: Config) -> None:
    watch = Watch()
    scheduler = ToolScheduler(plain, [Meeting(1).meet], on_status=watch.status)
    await scheduler.run(calls("meet"))
    assert watch.statuses["c0"] == [
        CallStatus.IDLE,
        CallStatus.VALIDATING,
        CallStatus.EXECUTING,
        CallStatus.DONE,
        CallStatus.IDLE,
    ]


async def test_a_blocked_call_is_completed_and_never_retried() -> None:
    """protocol.md#callers, seed 004 section 5.1: slot back to idle, no retry."""
    hooks, watch = RecordedHooks({"BeforeTool": DENY}), Watch()
    async with hooks.config as config:
        scheduler = ToolScheduler(config, [Meeting(1).meet], on_status=watch.status)
        batch = await scheduler.run(calls("meet"))
    assert contents(batch) == ["no"]
    assert not batch.should_stop
    assert hooks.names == ["BeforeTool"]
    assert watch.statuses["c0"] == [
        CallStatus.IDLE,
        CallStatus.VALIDATING,
        CallStatus.DONE,
        CallStatus.IDLE,
    ]


async def test_a_call_that_asks_waits_for_its_confirmation() -> None:
    config = RecordedHooks({"BeforeTool": {"decision": "ask"}}).config
    watch = Watch()
    seen: list[CallStatus] = []

    async def confirm(question: Confirmation) -> bool:
        seen.append(watch.statuses["c0"][-1])
        return question.tool_name == "meet"

    async with config:
        scheduler = ToolScheduler(
            config, [Meeting(1).meet], confirm=confirm, on_status=watch.status
        )
        batch = await scheduler.run(calls("meet"))
    assert seen == [CallStatus.AWAITING_CONFIRMATION]
    assert contents(batch) == ["met 0"]


@pytest.mark.parametrize("allowed", [frozenset(), {"other"}])
async def test_a_call_outside_the_allowed_names_is_refused_without_hooks(
    allowed: set[str],
) -> None:
    hooks = RecordedHooks({"BeforeTool": None})
    async with hooks.config as config:
        scheduler = ToolScheduler(config, [Meeting(1).meet])
        batch = await scheduler.run(calls("meet"), allowed)
    [content] = contents(batch)
    assert "not allowed" in content
    assert hooks.names == []


async def test_an_unknown_tool_and_bad_arguments_are_reported_to_the_model(
    plain: Config,
) -> None:
    scheduler = ToolScheduler(plain, [Meeting(1).meet])
    bad = ToolCall("c1", "meet", {}, "arguments are no JSON")
    batch = await scheduler.run([*calls("nothing"), bad])
    assert contents(batch) == ["Unknown tool 'nothing'", "arguments are no JSON"]


async def test_a_tool_that_raises_takes_no_other_with_it(plain: Config) -> None:
    def broken(n: int) -> None:
        raise ValueError(f"bad {n}")

    scheduler = ToolScheduler(plain, [broken, Meeting(1).meet])
    batch = await scheduler.run(calls("broken", "meet"))
    assert contents(batch) == ["Error: ValueError: bad 0", "met 1"]


async def test_a_listener_that_raises_takes_no_call_with_it(plain: Config) -> None:
    def listener(*_: Any) -> None:
        raise RuntimeError("display is gone")

    scheduler = ToolScheduler(
        plain, [Meeting(1).meet], on_status=listener, publish=listener
    )
    assert contents(await scheduler.run(calls("meet"))) == ["met 0"]


class Stopping:
    """One call is stopped by a hook while another runs."""

    def __init__(self, config: Config) -> None:
        self.started, self.release = asyncio.Event(), asyncio.Event()
        self.finished = self.late = False
        system = config.get_hook_system()
        assert system is not None

        @system.on("BeforeTool", "stopper")
        async def stop(_: dict[str, Any]) -> dict[str, Any]:
            await self.started.wait()
            asyncio.get_running_loop().call_soon(self.release.set)
            return {"continue": False, "stopReason": "enough"}

    async def runner(self, n: int) -> str:
        self.started.set()
        await self.release.wait()
        for _ in range(5):
            await asyncio.sleep(0)
        self.finished = True
        return f"ran {n}"

    async def stopper(self, n: int) -> None:
        raise AssertionError(f"must not run {n}")

    async def last(self, n: int) -> str:
        self.late = True
        return f"late {n}"


@pytest.mark.parametrize("on_stop", ["finish", "cancel"])
async def test_a_stop_lets_running_calls_finish_or_cancels_them(
    plain: Config, on_stop: str
) -> None:
    stage = Stopping(plain)
    watch = Watch()
    async with plain:
        scheduler = ToolScheduler(
            plain,
            [stage.runner, stage.stopper, stage.last],
            max_parallel=2,
            on_stop=on_stop,
            publish=watch.publish,
        )
        batch = await scheduler.run(calls("runner", "stopper", "last"))
    assert (batch.should_stop, batch.stop_reason) == (True, "enough")
    assert stage.finished is (on_stop == "finish")
    assert not stage.late
    first = "ran 0" if on_stop == "finish" else "Cancelled: enough"
    assert contents(batch)[:2] == [first, "enough"]
    assert watch.published == ["c0", "c1", "c2"]


async def test_a_stop_at_once_answers_every_call() -> None:
    """Calls that have not taken a step yet are answered too."""
    plain = RecordedHooks({"BeforeTool": STOP}).config
    async with plain:
        scheduler = ToolScheduler(plain, [Meeting(1).meet], on_stop="cancel")
        batch = await scheduler.run(calls("meet", "meet", "meet"))
    assert len(batch.answers) == 3
    assert all("enough" in content for content in contents(batch))


async def test_cancelling_the_scheduler_cancels_its_calls(plain: Config) -> None:
    started, cancelled = asyncio.Event(), asyncio.Event()

    async def slow(n: int) -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    task = asyncio.create_task(ToolScheduler(plain, [slow]).run(calls("slow")))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert cancelled.is_set()
