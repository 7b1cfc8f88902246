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


async def test_agent_and_worker_of_another_queue_cannot_answer(
    guarded: NatsServer,
) -> None:
    """A second group of workers would get a copy of every request."""
    for user, options in (("coder", {}), ("worker", {"queue": "mine"})):
        async with await as_user(guarded, user, **options) as bus:
            RequestServer(RecordingHandler(), bus).subscribe()
            with pytest.raises(BusConnectionError, match=r"(?i)permissions violation"):
                await bus.ready()


async def test_agent_that_may_not_hear_answers_is_told_at_once_and_asks_once(
    guarded: NatsServer,
) -> None:
    """A forgotten inbox prefix took the whole deadline, 70 s by default."""
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


async def logged(caplog: pytest.LogCaptureFixture, *texts: str) -> None:
    for _ in range(6000):
        if all(text in caplog.text for text in texts):
            return
        await asyncio.sleep(0.01)
    pytest.fail(f"not logged: {texts}")


async def test_a_worker_whose_rights_are_taken_away_is_not_connected(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It reconnects, and gets no requests."""
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


async def test_refused_login_fails_at_once_and_says_what_to_check(
    guarded: NatsServer,
) -> None:
    """'Authorization Violation' alone has no next step."""
    for options in ({}, {"user": "coder", "password": "guessed"}):
        with pytest.raises(BusConnectionError, match=r"(?i)authorization") as caught:
            await NatsBus.connect(guarded.url, timeout_s=60, **options)
        assert "check user and credentials" in str(caught.value)
        assert "guessed" not in str(caught.value)


async def test_name_that_matches_other_subjects_is_refused(
    server: NatsServer, subtests: pytest.Subtests
) -> None:
    """With a wildcard a worker would take every team's requests."""
    bus = await NatsBus.connect(server.url)
    for name in (
        *("*", ">", "a.*", "*.a", "a.>", "a*", "a>b", "", ".", "a.", ".a", "a..b"),
        *(" ", "a b", "a\tb", "a\r\nPUB x 0\r\n", "a\x00b", "a\u2028b", "a\u00a0b"),
    ):
        for option in ("prefix", "queue"):
            names: dict[str, Any] = {option: name}
            with subtests.test(f"{option} {name!r}"):
                with pytest.raises(HooklineError, match=option):
                    await NatsBus.connect(server.url, **names)
                with pytest.raises(HooklineError, match=option):
                    NatsBus(bus._connection, **names)
    await bus.close()


async def test_nobody_asks_or_hears_more_than_its_account_allows(
    guarded: NatsServer,
) -> None:
    """Neither the worker, nor in the inbox of another agent, nor another account."""
    for user, options, code, message in (
        ("worker", {}, "timeout", "permissions violation"),
        ("coder", {"inbox_prefix": "_INBOX_planner"}, "timeout", "_inbox_planner"),
        ("visitor", {}, "no_responders", "no worker is subscribed"),
    ):
        handler = RecordingHandler()
        async with (
            await as_worker(guarded, handler),
            await as_user(guarded, user, **options) as bus,
        ):
            client = HookBusClient(bus, on_error="block")
            response = await client.request("BeforeTool", TOOL, timeout_s=0.5)
        assert response["error"]["code"] == code
        assert message in response["error"]["message"].lower()
        assert response["processed"]["blocked"] is True
        assert handler.calls == [] or user == "coder"
