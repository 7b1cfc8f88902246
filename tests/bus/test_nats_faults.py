"""Faults in a fleet: every request gets a response.

Each test says what was lost (nothing) and bounds how long callers waited by the
deadline they gave, with a generous allowance for a busy machine.
"""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from time import monotonic
from typing import Any

from hookline.bus import HookBusClient
from tests.support.nats import codes

from .conftest import Fleet

TOOL: dict[str, Any] = {"tool_name": "write_file", "tool_input": {"path": "a"}}
ALLOWANCE_S = 10.0


class Asked:
    """The responses to many requests, and how long each caller waited."""

    def __init__(self) -> None:
        self.responses: list[Any] = []
        self.waits_s: list[float] = []

    async def one(self, client: HookBusClient, number: int, **options: Any) -> None:
        began = monotonic()
        response = await client.request(
            "BeforeTool", TOOL, correlation_id=f"c-{number}", **options
        )
        self.waits_s.append(monotonic() - began)
        self.responses.append(response)

    def each_answered_once(self, count: int) -> bool:
        ids = sorted(response["correlationId"] for response in self.responses)
        return ids == sorted(f"c-{n}" for n in range(count))

    def pids(self, start: int = 0) -> dict[str, int]:
        return Counter(
            response["processed"]["systemMessage"]
            for response in self.responses[start:]
            if response["success"]
        )


async def test_two_workers_share_a_thousand_requests_each_answered_once(
    fleet: Fleet,
) -> None:
    workers = [await fleet.process(), await fleet.process()]
    client, asked = await fleet.client(), Asked()
    await asyncio.gather(*(asked.one(client, n) for n in range(1000)))
    assert codes(asked.responses) == {"success": 1000}
    assert asked.each_answered_once(1000)
    assert set(asked.pids()) == {str(worker.pid) for worker in workers}
    handled = 0
    for worker in workers:
        worker.send(signal.SIGTERM)
        handled += int((await worker.line()).removeprefix("handled "))
        assert await worker.ended() == 0
    assert handled == 1000


async def test_slow_consumer_answers_everything_once_it_reads_again(
    fleet: Fleet,
) -> None:
    """15 MB wait for a worker that does not read; none of it is dropped."""
    worker = await fleet.process(concurrency=2)
    client = await fleet.client()
    worker.send(signal.SIGSTOP)
    big = TOOL | {"tool_input": {"content": "x" * 50_000}}
    asking = [
        asyncio.ensure_future(
            client.request("BeforeTool", big, correlation_id=f"c-{n}", timeout_s=60)
        )
        for n in range(300)
    ]
    done, _ = await asyncio.wait(asking, timeout=0.3)
    assert not done
    worker.send(signal.SIGCONT)
    responses = await asyncio.gather(*asking)
    assert codes(responses) == {"success": 300}
    worker.send(signal.SIGTERM)
    assert await worker.line() == "handled 300"


async def test_client_that_disconnects_affects_no_other(fleet: Fleet) -> None:
    worker = await fleet.process("slow")
    leaving = await fleet.bus()
    asking = [
        asyncio.ensure_future(HookBusClient(leaving).request("BeforeTool", TOOL))
        for _ in range(20)
    ]
    assert await worker.line() == "working"
    await leaving.close()
    for task in asking:
        task.cancel()
    await asyncio.wait(asking)
    client = await fleet.client()
    assert (await client.request("BeforeTool", TOOL))["success"] is True
    worker.send(signal.SIGTERM)
    assert await worker.ended() == 0


async def test_stopping_worker_answers_its_requests(fleet: Fleet) -> None:
    worker = await fleet.process("slow", concurrency=1)
    client, asked = await fleet.client(), Asked()
    asking = [asyncio.ensure_future(asked.one(client, n)) for n in range(5)]
    assert await worker.line() == "working"
    worker.send(signal.SIGTERM)
    await asyncio.gather(*asking)
    assert codes(asked.responses) == {"success": 5}
    assert await worker.ended() == 0


async def test_server_restart_under_load_leaves_no_request_unanswered(
    fleet_of_its_own: Fleet,
) -> None:
    """Nothing is lost: requests in flight may end as timeouts or no_responders."""
    workers = [await fleet_of_its_own.process(), await fleet_of_its_own.process()]
    pids = {str(worker.pid) for worker in workers}
    client, asked = await fleet_of_its_own.client(), Asked()
    stop, progress = asyncio.Event(), asyncio.Condition()
    numbers = iter(range(1_000_000))

    async def keep_asking() -> None:
        while not stop.is_set():
            await asked.one(client, next(numbers), timeout_s=2.0)
            async with progress:
                progress.notify_all()

    load = [asyncio.ensure_future(keep_asking()) for _ in range(20)]
    async with progress:
        await progress.wait_for(lambda: len(asked.responses) > 100)
    before = len(asked.responses)
    fleet_of_its_own.server.stop()
    fleet_of_its_own.server.start()
    async with progress:
        await progress.wait_for(lambda: set(asked.pids(before)) == pids)
    stop.set()
    await asyncio.gather(*load)
    assert asked.each_answered_once(next(numbers))
    assert set(codes(asked.responses)) <= {"success", "timeout", "no_responders"}
    assert max(asked.waits_s) < 2.0 + ALLOWANCE_S


async def test_request_during_an_outage_waits_for_the_server(
    fleet_of_its_own: Fleet,
) -> None:
    """If the server is back before the deadline, the request gets its verdict."""
    await fleet_of_its_own.process()
    client = await fleet_of_its_own.client()
    assert (await client.request("BeforeTool", TOOL))["success"] is True
    fleet_of_its_own.server.stop()
    asking = asyncio.ensure_future(
        client.request("BeforeTool", TOOL, timeout_s=60, retries=29)
    )
    done, _ = await asyncio.wait([asking], timeout=0.2)
    assert not done
    fleet_of_its_own.server.start()
    assert (await asking)["success"] is True


async def test_request_that_outlives_its_deadline_in_an_outage_is_never_sent(
    fleet_of_its_own: Fleet,
) -> None:
    """A hook must not run after its requester has given up."""
    worker = await fleet_of_its_own.process()
    client = await fleet_of_its_own.client()
    assert (await client.request("BeforeTool", TOOL))["success"] is True
    fleet_of_its_own.server.stop()
    response = await client.request("BeforeTool", TOOL, timeout_s=0.3)
    assert response["error"]["code"] == "timeout"
    fleet_of_its_own.server.start()
    while not (await client.request("BeforeTool", TOOL, timeout_s=5))["success"]:
        pass
    worker.send(signal.SIGTERM)
    assert await worker.line() == "handled 2"


async def test_first_request_that_gives_up_on_a_hanging_server_breaks_nothing(
    fleet_of_its_own: Fleet,
) -> None:
    """It gives up while it asks whether answers can arrive."""
    await fleet_of_its_own.process()
    client = await fleet_of_its_own.client()
    fleet_of_its_own.server.pause()
    response = await client.request("BeforeTool", TOOL, timeout_s=0.1)
    assert response["error"]["code"] == "timeout"
    fleet_of_its_own.server.resume()
    assert (await client.request("BeforeTool", TOOL, timeout_s=5))["success"] is True


async def test_request_that_was_not_sent_before_a_loss_is_not_sent_after_it(
    fleet_of_its_own: Fleet,
) -> None:
    """A server that hangs fills the connection; what nats-py holds then is late."""
    worker = await fleet_of_its_own.process()
    # The worker is there again first: else nobody would get what is sent late.
    client = HookBusClient(await fleet_of_its_own.bus(reconnect_time_wait=2))
    assert (await client.request("BeforeTool", TOOL))["success"] is True
    fleet_of_its_own.server.pause()
    long = {"tool_name": "write_file", "tool_input": {"content": "x" * 900_000}}
    asking = [client.request("BeforeTool", long, timeout_s=0.3) for _ in range(20)]
    filling = asyncio.gather(*asking)
    await asyncio.sleep(0.1)
    response = await client.request("BeforeTool", TOOL, timeout_s=0.1)
    assert response["error"]["code"] == "timeout"
    await filling
    fleet_of_its_own.server.stop()
    await asyncio.sleep(0.2)
    fleet_of_its_own.server.start()
    while not (await client.request("BeforeTool", TOOL, timeout_s=5))["success"]:
        pass
    worker.send(signal.SIGTERM)
    assert await worker.line() == "handled 2"


async def test_requests_of_a_dead_or_hanging_worker_time_out_or_are_sent_again(
    fleet: Fleet,
) -> None:
    """Nothing is lost. SIGSTOP: neither dead nor answering."""
    steady = await fleet.process()
    for number, timeout_s, retries, expected in (
        (signal.SIGKILL, 2.0, 0, {"success", "timeout"}),
        (signal.SIGSTOP, 1.0, 0, {"success", "timeout"}),
        (signal.SIGKILL, 20.0, 9, {"success"}),
    ):
        doomed = await fleet.process("hold")
        client, asked = await fleet.client(), Asked()
        if number == signal.SIGSTOP:
            doomed.send(number)
        asking = [
            asyncio.ensure_future(
                asked.one(client, n, timeout_s=timeout_s, retries=retries)
            )
            for n in range(40)
        ]
        if number == signal.SIGKILL:
            assert await doomed.line() == "holding"
            doomed.send(number)
        await asyncio.gather(*asking)
        assert asked.each_answered_once(40)
        assert set(codes(asked.responses)) == expected
        assert set(asked.pids()) == {str(steady.pid)}
        assert max(asked.waits_s) < timeout_s + ALLOWANCE_S
        await doomed.kill()
