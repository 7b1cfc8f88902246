"""The bus inside the process: order, isolation, unsubscribing."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from hookline.bus import InMemoryMessageBus
from tests.support.bus_rows import REQUEST, RESPONSE


async def test_message_reaches_every_subscriber_of_its_type() -> None:
    """A type may be a plain string; nothing happens without subscribers."""
    bus = InMemoryMessageBus()
    await bus.publish(REQUEST, {"n": 0})
    assert not bus.has_subscribers(REQUEST)
    first: list[Any] = []
    second: list[Any] = []
    other: list[Any] = []
    bus.subscribe(REQUEST, first.append)
    bus.subscribe("hook-execution-request", second.append)
    bus.subscribe(RESPONSE, other.append)
    await bus.publish(REQUEST, {"n": 1})
    assert (first, second, other) == ([{"n": 1}], [{"n": 1}], [])
    assert bus.has_subscribers(REQUEST)


async def test_subscriber_gets_messages_one_at_a_time_in_order() -> None:
    """Also where it is sometimes async."""
    bus = InMemoryMessageBus()
    steps: list[str] = []

    async def later(number: int) -> None:
        steps.append(f"start {number}")
        await asyncio.sleep(0)
        steps.append(f"end {number}")

    def handler(number: int) -> Any:
        if number != 4:
            return later(number)
        steps.append("at once 4")
        return None

    bus.subscribe(REQUEST, handler)
    for number in range(6):
        await bus.publish(REQUEST, number)
    while "end 5" not in steps:  # noqa: ASYNC110 - there is no event to wait on
        await asyncio.sleep(0)
    expected = [[f"start {n}", f"end {n}"] for n in range(6)]
    expected[4] = ["at once 4"]
    assert steps == [step for steps_of_one in expected for step in steps_of_one]


async def test_slow_subscriber_delays_neither_publisher_nor_others() -> None:
    """A subscriber that never finishes affects no other."""
    bus = InMemoryMessageBus()
    stuck = asyncio.Event()
    quick: list[int] = []

    async def slow(number: int) -> None:
        await stuck.wait()

    async def fast(number: int) -> None:
        quick.append(number)
        if number == 99:
            finished.set()

    finished = asyncio.Event()
    bus.subscribe(REQUEST, slow)
    bus.subscribe(REQUEST, fast)
    for number in range(100):
        await bus.publish(REQUEST, number)
    await finished.wait()
    assert quick == list(range(100))
    stuck.set()


async def test_unsubscribing_drops_the_queue_and_finishes_the_call_in_flight() -> None:
    bus = InMemoryMessageBus()
    gate, finished = asyncio.Event(), asyncio.Event()
    seen: list[int] = []

    async def handler(number: int) -> None:
        await gate.wait()
        seen.append(number)
        finished.set()

    unsubscribe = bus.subscribe(REQUEST, handler)
    await bus.publish(REQUEST, 1)
    await bus.publish(REQUEST, 2)
    unsubscribe()
    gate.set()
    await finished.wait()
    await asyncio.sleep(0)
    assert seen == [1]
    assert not bus.has_subscribers(REQUEST)


async def test_long_queue_is_logged_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hookline.bus.memory.LONG_QUEUE", 3)
    bus = InMemoryMessageBus()
    gate = asyncio.Event()

    async def handler(number: int) -> None:
        await gate.wait()

    bus.subscribe(REQUEST, handler)
    with caplog.at_level(logging.WARNING, "hookline.bus"):
        for number in range(6):
            await bus.publish(REQUEST, number)
    assert caplog.text.count("messages wait for") == 1
    gate.set()


async def test_subscribers_may_come_and_go_inside_of_handlers() -> None:
    """Who leaves gets nothing more at once; who comes, from the next message on."""
    bus = InMemoryMessageBus()
    seen: list[tuple[str, int]] = []

    def subscribe(name: str) -> Any:
        return bus.subscribe(REQUEST, lambda number: seen.append((name, number)))

    def once(number: int) -> None:
        seen.append(("once", number))
        leave()
        leave()
        second_leaves()
        subscribe("new")

    leave = bus.subscribe(REQUEST, once)
    second_leaves = subscribe("second")
    subscribe("third")
    await bus.publish(REQUEST, 1)
    assert seen == [("once", 1), ("third", 1)]
    await bus.publish(REQUEST, 2)
    assert seen[2:] == [("third", 2), ("new", 2)]


async def test_raising_subscriber_affects_no_other_and_continues(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Plain or async, also after an await of its own that was cancelled."""
    bus = InMemoryMessageBus()
    calls: dict[str, list[int]] = {"plain": [], "async": [], "cancelled": []}
    seen: list[int] = []

    def plain(number: int) -> None:
        calls["plain"].append(number)
        raise RuntimeError("broken plain")

    async def as_coroutine(number: int) -> None:
        calls["async"].append(number)
        raise RuntimeError("broken coroutine")

    async def cancelled(number: int) -> None:
        calls["cancelled"].append(number)
        never: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        never.cancel()
        await never

    for handler in (plain, as_coroutine, cancelled, seen.append):
        bus.subscribe(REQUEST, handler)
    with caplog.at_level(logging.ERROR, "hookline.bus"):
        for number in range(3):
            await bus.publish(REQUEST, number)
        while min(map(len, calls.values())) < 3:  # noqa: ASYNC110 - as above
            await asyncio.sleep(0)
    assert [*calls.values(), seen] == [[0, 1, 2]] * 4
    assert "broken plain" in caplog.text
    assert "broken coroutine" in caplog.text
