"""Who may request and who may answer: the server of ``examples/fleet/nats.conf``."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hookline.bus import HookBusClient, NatsBus
from hookline.bus.server import RequestServer
from hookline.errors import BusConnectionError, HooklineError
from tests.support.nats import ROOT, NatsServer

from .fakes import RecordingHandler

TOOL: dict[str, Any] = {"tool_name": "write_file", "tool_input": {"path": "a"}}
CONFIG = ROOT / "examples" / "fleet" / "nats.conf"
USERS = ("planner", "coder", "worker", "visitor")


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    """The example's server, on a free port."""
    secrets = {f"HOOKLINE_{user.upper()}_PASSWORD": secret(user) for user in USERS}
    server = NatsServer(
        tmp_path_factory.mktemp("guarded"),
        *("-c", str(CONFIG)),
        environment={**os.environ, **secrets},
    ).start()
    yield server
    server.stop()


def secret(user: str) -> str:
    return f"secret-of-{user}"


async def as_user(server: NatsServer, user: str, **options: Any) -> NatsBus:
    return await NatsBus.connect(
        server.url, user=user, password=secret(user), timeout_s=10, **options
    )


async def as_worker(server: NatsServer, handler: RecordingHandler) -> NatsBus:
    bus = await as_user(server, "worker")
    RequestServer(handler, bus).subscribe()
    await bus.ready()
    return bus


async def test_agents_get_verdicts_from_the_worker(guarded: NatsServer) -> None:
    handler = RecordingHandler()
    async with await as_worker(guarded, handler):
        for user in ("planner", "coder"):
            async with await as_user(
                guarded, user, inbox_prefix=f"_INBOX_{user}"
            ) as bus:
                for _ in range(3):
                    response = await HookBusClient(bus).request("BeforeTool", TOOL)
                    assert response["success"] is True
    assert len(handler.calls) == 6


async def test_agent_cannot_answer_requests(guarded: NatsServer) -> None:
    async with await as_user(guarded, "coder") as bus:
        RequestServer(RecordingHandler(), bus).subscribe()
        with pytest.raises(BusConnectionError, match=r"(?i)permissions violation"):
            await bus.ready()


async def test_worker_cannot_send_requests(guarded: NatsServer) -> None:
    handler = RecordingHandler()
    async with await as_worker(guarded, handler) as bus:
        client = HookBusClient(bus, on_error="block")
        response = await client.request("BeforeTool", TOOL, timeout_s=0.5)
    assert response["error"]["code"] == "timeout"
    assert "permissions violation" in response["error"]["message"].lower()
    assert handler.calls == []


async def test_agent_cannot_read_responses_to_another(guarded: NatsServer) -> None:
    async with (
        await as_worker(guarded, RecordingHandler()),
        await as_user(guarded, "coder", inbox_prefix="_INBOX_planner") as bus,
    ):
        response = await HookBusClient(bus).request("BeforeTool", TOOL, timeout_s=0.5)
    assert response["error"]["code"] == "timeout"
    assert "_inbox_planner" in response["error"]["message"].lower()


async def test_agent_that_may_not_hear_answers_is_told_at_once_and_asks_once(
    guarded: NatsServer,
) -> None:
    """Issue 17: a forgotten inbox prefix took the whole deadline, 70 s by default."""
    handler = RecordingHandler()
    async with (
        await as_worker(guarded, handler),
        await as_user(guarded, "coder") as bus,
    ):
        client = HookBusClient(bus)
        for _ in range(3):
            response = await client.request("BeforeTool", TOOL, timeout_s=3600)
            assert response["error"]["code"] == "timeout"
            assert "set inbox_prefix (--inbox-prefix)" in response["error"]["message"]
    assert len(handler.calls) <= 1


async def test_refused_login_says_what_to_check(guarded: NatsServer) -> None:
    """Issue 17: 'Authorization Violation' alone has no next step."""
    with pytest.raises(BusConnectionError, match="check user and credentials"):
        await NatsBus.connect(guarded.url, user="worker", password="not-it")


async def logged(caplog: pytest.LogCaptureFixture, *texts: str) -> None:
    for _ in range(6000):
        if all(text in caplog.text for text in texts):
            return
        await asyncio.sleep(0.01)
    pytest.fail(f"not logged: {texts}")


async def test_a_worker_whose_rights_are_taken_away_is_not_connected(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Issue 16: it reconnects, and gets no requests."""
    config = tmp_path / "nats.conf"
    allowed = "authorization: {users: [{user: worker, password: secret-of-worker}]}"
    denied = allowed.replace("}]", ", permissions: {subscribe: {deny: '>'}}}]")
    config.write_text(allowed)
    server = NatsServer(tmp_path, "-c", str(config)).start()
    try:
        async with await as_worker(server, RecordingHandler()) as bus:
            assert bus.is_connected
            for text, expected in ((denied, False), (allowed, True)):
                server.stop()
                await logged(caplog, "lost")
                config.write_text(text)
                server.start()
                await logged(caplog, "again after", *() if expected else ("violation",))
                assert bus.is_connected is expected
                caplog.clear()
    finally:
        server.stop()


async def test_worker_of_another_queue_is_refused(guarded: NatsServer) -> None:
    """A second group would get a copy of every request."""
    async with await as_user(guarded, "worker", queue="mine") as bus:
        RequestServer(RecordingHandler(), bus).subscribe()
        with pytest.raises(BusConnectionError, match=r"(?i)permissions violation"):
            await bus.ready()


async def test_other_accounts_reach_no_worker(guarded: NatsServer) -> None:
    async with (
        await as_worker(guarded, RecordingHandler()),
        await as_user(guarded, "visitor") as bus,
    ):
        response = await HookBusClient(bus).request("BeforeTool", TOOL)
    assert response["error"]["code"] == "no_responders"


@pytest.mark.parametrize(
    "options", [{}, {"user": "coder", "password": "guessed"}], ids=["nobody", "guessed"]
)
async def test_refused_connection_fails_at_once(
    guarded: NatsServer, options: dict[str, str]
) -> None:
    with pytest.raises(BusConnectionError, match=r"(?i)authorization") as caught:
        await NatsBus.connect(guarded.url, timeout_s=60, **options)
    assert "guessed" not in str(caught.value)


@pytest.mark.parametrize("option", ["prefix", "queue"])
@pytest.mark.parametrize(
    "name",
    [
        *("*", ">", "a.*", "*.a", "a.>", "a*", "a>b", "", ".", "a.", ".a", "a..b"),
        *(" ", "a b", "a\tb", "a\r\nPUB x 0\r\n", "a\x00b", "a\u2028b", "a\u00a0b"),
    ],
    ids=repr,
)
async def test_name_that_matches_other_subjects_is_refused(
    server: NatsServer, option: str, name: str
) -> None:
    """Issue 12.15: with a wildcard a worker would take every team's requests."""
    names: dict[str, Any] = {option: name}
    with pytest.raises(HooklineError, match=option):
        await NatsBus.connect(server.url, **names)
    bus = await NatsBus.connect(server.url)
    with pytest.raises(HooklineError, match=option):
        NatsBus(bus._connection, **names)
    await bus.close()
