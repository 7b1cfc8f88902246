"""Connections of http hooks: reused, bounded, timed, closed."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any

import pytest

from hookline import HookSystem, ProcessedHookResult
from hookline.protocol.results import FailureCause
from tests.support.processes import wait_until
from tests.support.web import Answer, Exchange, WebServer, hook, reply
from tests.support.workspace import Workspace

CONNECTIONS = 32
"""To one service at a time (docs/how-to/http.md)."""
DENY = {"decision": "deny", "reason": "no"}
TOOL = ("write_file", {"path": "a"})


def system_of(workspace: Workspace, *hooks: dict[str, Any], **more: Any) -> HookSystem:
    return HookSystem(
        workspace.config(workspace.settings("BeforeTool", *hooks, **more))
    )


@asynccontextmanager
async def serving(
    workspace: Workspace, answer: Answer | bytes, **more: Any
) -> AsyncIterator[tuple[WebServer, HookSystem]]:
    """A service, and a system whose hook asks it; its connections are closed."""
    with WebServer(answer) as server:
        async with system_of(workspace, hook(server, **more)) as system:
            yield server, system
        await wait_until(lambda: server.open == 0)


async def fire(system: HookSystem) -> ProcessedHookResult:
    return await system.event_handler.fire_before_tool_event(*TOOL)


def cause_of(result: ProcessedHookResult) -> FailureCause | None:
    [ran] = result.aggregated.hook_results
    return ran.cause


def hang(exchange: Exchange) -> None:
    """Never answer; ends when the client goes away."""
    exchange.connection.recv(1)


async def test_events_one_after_the_other_share_a_connection(
    workspace: Workspace,
) -> None:
    with WebServer(reply(DENY)) as server:
        async with system_of(workspace, hook(server), hook(server, "/b")) as system:
            for _ in range(10):
                assert (await fire(system)).blocked
            assert len(server.exchanges) == 20
            assert server.connections == 2  # both hooks ask at the same time
        await wait_until(lambda: server.open == 0)


async def test_many_events_share_a_bounded_number_of_connections(
    workspace: Workspace,
) -> None:
    async with serving(workspace, reply(DENY)) as (server, system):
        results = await asyncio.gather(*(fire(system) for _ in range(200)))
        assert all(result.blocked for result in results)
        assert server.connections <= CONNECTIONS


@asynccontextmanager
async def busy(
    workspace: Workspace, slow: WebServer, events: int, other: dict[str, Any]
) -> AsyncIterator[HookSystem]:
    """All connections to a service wait; the hook of BeforeTool is another one."""
    both = workspace.settings("BeforeAgent", hook(slow, timeout=60_000))
    both["hooks"]["BeforeTool"] = [{"hooks": [other]}]
    async with HookSystem(workspace.config(both)) as system:
        ask = system.event_handler.fire_before_agent_event
        waiting = [asyncio.create_task(ask("hi")) for _ in range(events)]
        await wait_until(lambda: len(slow.exchanges) == CONNECTIONS)
        yield system
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        await wait_until(lambda: slow.open == 0)


async def test_waiting_for_a_connection_counts_against_the_deadline(
    workspace: Workspace,
) -> None:
    """One that has no turn in time has timed out, and was never sent."""
    with WebServer(hang) as server:
        late = hook(server, timeout=200)
        async with busy(workspace, server, CONNECTIONS, late) as system:
            results = await asyncio.gather(*(fire(system) for _ in range(5)))
            assert {cause_of(result) for result in results} == {FailureCause.TIMEOUT}
            assert len(server.exchanges) == CONNECTIONS


async def test_slow_service_holds_up_no_other(workspace: Workspace) -> None:
    """The limit is for each service."""
    with WebServer(hang) as slow, WebServer(reply(DENY)) as fast:
        async with busy(workspace, slow, CONNECTIONS + 5, hook(fast)) as system:
            assert (await fire(system)).blocked


DRIPS = [
    b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1",
    b"HTTP/1.1 200 OK\r\nX-Long: ",
    b"HTTP/1.1 500 No\r\nContent-Length: 100000\r\n\r\n",
    b"",
]


@pytest.mark.parametrize(
    "start", DRIPS, ids=["body", "chunk", "header", "error-page", "silence"]
)
async def test_server_that_drips_does_not_hold_the_event(
    workspace: Workspace, start: bytes
) -> None:
    """One deadline for all of it, however often a byte arrives."""

    def drip(exchange: Exchange) -> None:
        exchange.connection.sendall(start)
        while start and not server.closing.wait(0.02):
            exchange.connection.sendall(b"0")
        server.closing.wait()

    with WebServer(drip) as server:
        async with system_of(workspace, hook(server, timeout=400)) as system:
            result = await fire(system)
            [ran] = result.aggregated.hook_results
            assert (ran.cause, ran.timed_out) == (FailureCause.TIMEOUT, True)
            assert ran.error == f"{server.url}/ timed out after 400 ms"
            assert ran.duration < 30_000
            if start:
                await wait_until(lambda: server.open == 0)


async def test_server_that_never_reads_does_not_hold_the_event(
    workspace: Workspace,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        service = {"type": "http", "url": url, "timeout": 300}
        async with system_of(workspace, service) as system:
            handler = system.event_handler
            big = {"content": "x" * 20_000_000}
            result = await handler.fire_before_tool_event("write_file", big)
            assert cause_of(result) is FailureCause.TIMEOUT


def reset(exchange: Exchange) -> None:
    """Let the end of a connection be a reset."""
    linger = struct.pack("ii", 1, 0)
    exchange.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)


@pytest.mark.parametrize(
    "later",
    [lambda _: None, reset, lambda _: reply("", 408)],
    ids=["hangs up", "resets", "request timeout"],
)
async def test_service_that_hangs_up_between_events_is_asked_again(
    workspace: Workspace, later: Answer
) -> None:
    """A kept connection that broke before the answer began is no failed guard."""

    def once(exchange: Exchange) -> bytes | None:
        return reply(DENY) if exchange.number == 1 else later(exchange)

    async with serving(workspace, once) as (server, system):
        for _ in range(5):
            assert (await fire(system)).blocked
        # Each connection but the first was preceded by a try on an older one.
        assert server.connections > 1


async def test_it_is_asked_again_once_only(workspace: Workspace) -> None:
    answers = iter([reply(DENY)])
    async with serving(workspace, lambda _: next(answers, None)) as (server, system):
        assert (await fire(system)).blocked
        assert cause_of(await fire(system)) is FailureCause.CRASH
        assert len(server.exchanges) == 3


async def test_asking_again_does_not_extend_the_deadline(workspace: Workspace) -> None:
    def late(exchange: Exchange) -> bytes | None:
        if len(server.exchanges) == 1:
            return reply(DENY)
        if exchange.number > 1:
            server.closing.wait(0.2)
            return None
        server.closing.wait()
        return None

    with WebServer(late) as server:
        async with system_of(workspace, hook(server, timeout=2000)) as system:
            assert (await fire(system)).blocked
            assert cause_of(await fire(system)) is FailureCause.TIMEOUT


@pytest.mark.parametrize("answer", [reply("", 500), reply("{"), None])
async def test_answer_is_never_asked_for_twice(
    workspace: Workspace, answer: bytes | None
) -> None:
    """Only what had no answer is sent again; half an answer is one."""

    def say(exchange: Exchange) -> bytes | None:
        if exchange.number == 1:
            return reply(DENY)
        half = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"
        exchange.connection.sendall(half if answer is None else b"")
        return answer

    async with serving(workspace, say) as (server, system):
        await fire(system)
        assert cause_of(await fire(system)) is not None
        assert len(server.exchanges) == 2


async def test_second_answer_is_not_taken_for_the_next_one(
    workspace: Workspace,
) -> None:
    """Each event gets its own, from a service that says everything twice."""

    def twice(exchange: Exchange) -> bytes:
        denies = {"decision": "deny", "reason": exchange.event["tool_input"]["path"]}
        return reply(denies) * 2

    async with serving(workspace, twice) as (_, system):
        ask = system.event_handler.fire_before_tool_event
        for number in range(6):
            assert (await ask("a", {"path": f"{number}"})).reason == f"{number}"
        several = [ask("a", {"path": f"{number}"}) for number in range(20)]
        reasons = [result.reason for result in await asyncio.gather(*several)]
    assert reasons == [f"{number}" for number in range(20)]


async def test_cancelling_the_caller_closes_the_request(workspace: Workspace) -> None:
    async with serving(workspace, hang) as (server, system):
        before = asyncio.all_tasks()
        task = asyncio.create_task(fire(system))
        await wait_until(lambda: len(server.exchanges) == 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await wait_until(lambda: server.open == 0)
        assert asyncio.all_tasks() == before


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_asyncio_run_several_times_leaves_nothing_behind(
    workspace: Workspace, loop: str
) -> None:
    """The event loop closes the connections that were opened on it."""
    new_loop = pytest.importorskip(loop).new_event_loop
    with WebServer(reply(DENY)) as server:
        system = system_of(workspace, hook(server))

        async def use() -> bool:
            await system.initialize()
            await fire(system)
            return (await fire(system)).blocked

        for round_ in range(1, 4):
            with asyncio.Runner(loop_factory=new_loop) as runner:
                assert runner.run(use())
            assert server.connections == round_
            server.wait(lambda: server.open == 0)
        asyncio.run(system.dispose())
        gc.collect()  # a warning about what is still open would be an error


async def test_hook_that_is_not_waited_for_is_sent_all_the_same(
    workspace: Workspace,
) -> None:
    """``"async": true``: it counts for nothing, and dispose() lets it finish."""
    options = {"async": True}
    async with serving(workspace, reply(DENY), **options) as (server, system):
        assert not (await fire(system)).blocked
        await system.dispose()
        assert len(server.exchanges) == 1


def test_event_loops_in_several_threads_have_their_own_connections(
    workspace: Workspace,
) -> None:
    with WebServer(reply(DENY)) as server:
        system = system_of(workspace, hook(server))
        asyncio.run(system.initialize())

        async def use() -> list[bool]:
            return [(await fire(system)).blocked for _ in range(5)]

        with ThreadPoolExecutor(4) as threads:
            verdicts = [*threads.map(lambda _: asyncio.run(use()), range(4))]
        assert verdicts == [[True] * 5] * 4
        server.wait(lambda: server.open == 0)
        asyncio.run(system.dispose())


FORK = """
import asyncio, os, sys
from hookline import Config, HookSystem, Settings
hooks = [{"type": "http", "url": sys.argv[1]}]
settings = Settings.from_mapping({"hooks": {"BeforeTool": [{"hooks": hooks}]}})
system = HookSystem(Config("s", ".", settings))
loop = asyncio.new_event_loop()
loop.run_until_complete(system.initialize())
def blocked():
    event = system.event_handler.fire_before_tool_event("write_file", {})
    return loop.run_until_complete(event).blocked
assert blocked()
child = os.fork()
if child == 0:
    os._exit(0 if blocked() else 1)
assert os.waitpid(child, 0)[1] == 0
assert blocked()
loop.run_until_complete(system.dispose())
"""


def test_fork_does_not_share_the_connections_of_its_parent(
    workspace: Workspace,
) -> None:
    """Two processes on one connection would read each other's verdicts."""
    with WebServer(reply(DENY)) as server:
        words = [sys.executable, "-c", FORK, server.url]
        subprocess.run(words, cwd=workspace.folder, check=True, timeout=60)
        assert len(server.exchanges) == 3
        assert server.connections == 2


async def test_dispose_closes_connections_of_another_loop_that_still_runs(
    workspace: Workspace,
) -> None:
    with WebServer(reply(DENY)) as server:
        system = system_of(workspace, hook(server))
        await system.initialize()
        other = asyncio.new_event_loop()
        thread = threading.Thread(target=other.run_forever)
        thread.start()
        used = asyncio.run_coroutine_threadsafe(fire(system), other)
        assert (await asyncio.wrap_future(used)).blocked
        assert server.open == 1
        await system.dispose()
        await wait_until(lambda: server.open == 0)
        other.call_soon_threadsafe(other.stop)
        thread.join()
        other.close()


async def test_no_descriptor_and_no_task_is_left_by_failures(
    workspace: Workspace,
) -> None:
    def fail(exchange: Exchange) -> bytes | None:
        kind = len(server.exchanges) % 4
        if kind == 0:
            return None
        if kind == 1:
            server.closing.wait(0.2)
        return reply("{" if kind == 2 else "", 200 if kind == 2 else 500)

    with WebServer(fail) as server:
        async with system_of(
            workspace, hook(server, timeout=100), config={"breaker": False}
        ) as system:
            await fire(system)
            before, tasks = len(os.listdir("/proc/self/fd")), asyncio.all_tasks()
            for _ in range(20):
                await fire(system)
            await wait_until(lambda: server.open <= 1)

            def is_closed() -> bool:
                # Both ends of a connection that is kept are in this process.
                return len(os.listdir("/proc/self/fd")) <= before + 2 * server.open

            await wait_until(is_closed)
            assert asyncio.all_tasks() == tasks
