"""The bus inside the process: order, isolation, unsubscribing."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from hookline.bus import InMemoryMessageBus, MessageBusType

REQUEST = MessageBusType.HOOK_EXECUTION_REQUEST
RESPONSE = MessageBusType.HOOK_EXECUTION_RESPONSE


async def test_message_reaches_every_subscriber_of_its_type() -> None:
    bus = InMemoryMessageBus()
    first, second, other = [], [], []  # type: ignore[var-annotated] # plain lists
    bus.subscribe(REQUEST, first.append)
    bus.subscribe(REQUEST, second.append)
    bus.subscribe(RESPONSE, other.append)
    await bus.publish(REQUEST, {"n": 1})
    assert (first, second, other) == ([{"n": 1}], [{"n": 1}], [])


async def test_message_type_may_be_a_plain_string() -> None:
    bus = InMemoryMessageBus()
    seen: list[Any] = []
    bus.subscribe("hook-execution-request", seen.append)
    await bus.publish(REQUEST, 1)
    assert seen == [1]


async def test_publishing_without_subscribers_does_nothing() -> None:
    bus = InMemoryMessageBus()
    await bus.publish(REQUEST, 1)
    assert not bus.has_subscribers(REQUEST)


async def test_async_subscriber_gets_messages_one_at_a_time_in_order() -> None:
    bus = InMemoryMessageBus()
    seen: list[str] = []
    done = asyncio.Event()

    async def handler(number: int) -> None:
        seen.append(f"start {number}")
        await asyncio.sleep(0)
        seen.append(f"end {number}")
        if number == 2:
            done.set()

    bus.subscribe(REQUEST, handler)
    for number in range(3):
        await bus.publish(REQUEST, number)
    await done.wait()
    assert seen == [f"{what} {n}" for n in range(3) for what in ("start", "end")]


async def test_order_is_kept_when_a_handler_is_sometimes_async() -> None:
    bus = InMemoryMessageBus()
    seen: list[int] = []
    done = asyncio.Event()

    async def later(number: int) -> None:
        await asyncio.sleep(0)
        seen.append(number)

    def handler(number: int) -> Any:
        if number % 2 == 0:
            return later(number)
        seen.append(number)
        if number == 5:
            done.set()
        return None

    bus.subscribe(REQUEST, handler)
    for number in range(6):
        await bus.publish(REQUEST, number)
    await done.wait()
    assert seen == [0, 1, 2, 3, 4, 5]


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


@pytest.mark.parametrize("kind", ["plain", "async"])
async def test_raising_subscriber_affects_no_other_and_continues(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    bus = InMemoryMessageBus()
    calls: list[int] = []
    seen: list[int] = []
    called = asyncio.Event()

    def plain(number: int) -> None:
        calls.append(number)
        if number == 2:
            called.set()
        raise RuntimeError("broken subscriber")

    async def as_coroutine(number: int) -> None:
        plain(number)

    bus.subscribe(REQUEST, plain if kind == "plain" else as_coroutine)
    bus.subscribe(REQUEST, seen.append)
    with caplog.at_level(logging.ERROR, "hookline.bus"):
        for number in range(3):
            await bus.publish(REQUEST, number)
        await called.wait()
    assert calls == seen == [0, 1, 2]
    assert "broken subscriber" in caplog.text


async def test_subscriber_continues_after_a_cancelled_await() -> None:
    bus = InMemoryMessageBus()
    seen: list[int] = []
    done = asyncio.Event()

    async def handler(number: int) -> None:
        if number == 0:
            never: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            never.cancel()
            await never
        seen.append(number)
        done.set()

    bus.subscribe(REQUEST, handler)
    await bus.publish(REQUEST, 0)
    await bus.publish(REQUEST, 1)
    await done.wait()
    assert seen == [1]


async def test_unsubscribing_inside_a_handler_is_safe() -> None:
    bus = InMemoryMessageBus()
    seen: list[tuple[str, int]] = []

    def once(number: int) -> None:
        seen.append(("once", number))
        unsubscribe()
        unsubscribe()

    unsubscribe = bus.subscribe(REQUEST, once)
    bus.subscribe(REQUEST, lambda number: seen.append(("always", number)))
    await bus.publish(REQUEST, 1)
    await bus.publish(REQUEST, 2)
    assert seen == [("once", 1), ("always", 1), ("always", 2)]


async def test_unsubscribing_another_inside_a_handler_takes_effect_at_once() -> None:
    bus = InMemoryMessageBus()
    seen: list[str] = []
    bus.subscribe(REQUEST, lambda _: unsubscribe_second())
    unsubscribe_second = bus.subscribe(REQUEST, lambda _: seen.append("second"))
    bus.subscribe(REQUEST, lambda _: seen.append("third"))
    await bus.publish(REQUEST, 1)
    assert seen == ["third"]


async def test_subscribing_inside_a_handler_starts_with_the_next_message() -> None:
    bus = InMemoryMessageBus()
    seen: list[int] = []
    unsubscribe = bus.subscribe(REQUEST, lambda _: bus.subscribe(REQUEST, seen.append))
    await bus.publish(REQUEST, 1)
    unsubscribe()
    await bus.publish(REQUEST, 2)
    assert seen == [2]


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
