"""Http hooks: what is sent, and what each answer means.

protocol.md#rules, issue 13.3
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from typing import Any

import pytest

from hookline import HookSystem
from hookline.cli.main import main
from hookline.executors import http
from hookline.protocol.events import HookEventName
from hookline.protocol.results import FailureCause, HookExecutionResult
from tests.support.web import Exchange, WebServer, hook, reply
from tests.support.workshop import INPUTS, Workshop

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
DENY = {"decision": "deny", "reason": "the service says no"}


async def one(
    workshop: Workshop, server: WebServer, **more: Any
) -> HookExecutionResult:
    config = more.pop("config", None)
    result = await workshop.fire("BeforeTool", hook(server, **more), config=config)
    [found] = result.aggregated.hook_results
    return found


async def test_the_event_is_posted_as_a_command_would_read_it(
    workshop: Workshop,
) -> None:
    """protocol.md#rules: the event is POSTed as JSON; the same bytes as on stdin."""
    with WebServer(reply(DENY)) as server:
        result = await workshop.fire(
            "BeforeTool",
            workshop.runs("cat > seen.json", "reader"),
            hook(server, "/v1/ask?tenant=blue"),
        )
    assert (result.blocked, result.reason) == (True, "the service says no")
    [sent] = server.exchanges
    assert sent.target == "/v1/ask?tenant=blue"
    assert sent.body == (workshop.folder / "seen.json").read_bytes()
    assert sent.headers["content-type"] == "application/json"
    assert sent.headers["accept-encoding"] == "identity"
    assert sent.headers["content-length"] == str(len(sent.body))


async def test_the_event_and_the_session_are_in_the_headers(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HOOKLINE_REPLAY", raising=False)
    with WebServer(reply()) as server:
        await one(workshop, server)
    headers = server.exchanges[0].headers
    own = {name: headers[name] for name in headers if name.startswith("x-hookline")}
    assert own == {
        "x-hookline-event": "BeforeTool",
        "x-hookline-session": "s-1",
        "x-hookline-depth": "1",
    }


@pytest.mark.parametrize(
    ("session", "sent"),
    [
        ("plain-1", "plain-1"),
        ("søren", "s%C3%B8ren"),
        ("a\r\nX-Evil: 1", "a%0D%0AX-Evil:%201"),
        ("nul\0gone", "nulgone"),
        ("lone\ud800", "lone%EF%BF%BD"),
        (" blank ", "%20blank%20"),
        ("x" * 300, "x" * 256),
        ("", ""),
    ],
    ids=["plain", "letters", "line-break", "nul", "surrogate", "blank", "long", "none"],
)
async def test_no_session_id_breaks_the_request(
    workshop: Workshop, session: str, sent: str
) -> None:
    settings = Workshop(workshop.folder).settings
    with WebServer(reply(DENY)) as server:
        system = HookSystem(workshop.config(settings("BeforeTool", hook(server))))
        async with system:
            given = {**INPUTS[HookEventName.BeforeTool], "session_id": session}
            result = await system.event_handler.fire("BeforeTool", given)
    assert result.blocked
    assert server.exchanges[0].headers["x-hookline-session"] == sent
    assert "x-evil" not in server.exchanges[0].headers


async def test_a_replay_says_so(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOOKLINE_REPLAY", "1")
    with WebServer(reply()) as server:
        await one(workshop, server)
    assert server.exchanges[0].headers["x-hookline-replay"] == "1"


@pytest.mark.parametrize("event", list(HookEventName))
async def test_every_event_can_be_posted(
    workshop: Workshop, event: HookEventName
) -> None:
    with WebServer(reply({"systemMessage": "seen"})) as server:
        result = await workshop.fire(event, hook(server))
    assert result.aggregated.success
    assert server.exchanges[0].event["hook_event_name"] == event.value
    assert result.system_message == "seen"


@pytest.mark.parametrize(
    ("answer", "output"),
    [
        (reply(DENY), DENY),
        (reply(DENY, 201), DENY),
        (reply(json.dumps(json.dumps(DENY))), DENY),
        (reply("\ufeff" + json.dumps(DENY)), DENY),
        (reply(json.dumps(DENY).encode("utf-16")), DENY),
        (reply("all fine"), {"decision": "allow", "systemMessage": "all fine"}),
        (reply(""), None),
        (reply(b" \r\n"), None),
        (reply("", 204), None),
        (reply(DENY, Content_Encoding="identity"), DENY),
        (b"HTTP/1.1 200 \r\nConnection: close\r\n\r\n", None),
        (
            CHUNKED + b'9\r\n{"decisio\r\n9\r\nn":"deny"\r\n1\r\n}\r\n0\r\n\r\n',
            {"decision": "deny"},
        ),
        (b"HTTP/1.1 103 Early\r\n\r\n" + reply(DENY), DENY),
    ],
    ids=[
        *("object", "created", "string", "bom", "utf-16", "text", "empty", "blank"),
        *("no-content", "identity", "no-length", "chunked", "early-hints"),
    ],
)
async def test_a_2xx_body_is_read_like_stdout_at_exit_0(
    workshop: Workshop, answer: bytes, output: dict[str, Any] | None
) -> None:
    """protocol.md#process, HOOK-063..070: the same table reads it."""

    def say(exchange: Exchange) -> bytes:
        exchange.connection.sendall(answer)
        return b""

    def say_and_close(exchange: Exchange) -> None:
        exchange.connection.sendall(answer)

    closes = b"Connection: close" in answer
    with WebServer(say_and_close if closes else say) as server:
        result = await one(workshop, server, expect="any")
    assert result.raw_output == output
    assert (result.success, result.exit_code, result.cause) == (True, 0, None)


@pytest.mark.parametrize(
    ("answer", "cause", "words"),
    [
        (
            reply("oops\nsecond", 500),
            "crash",
            "answered 500 Internal Server Error: oops",
        ),
        (reply(DENY, 403), "crash", "answered 403 Forbidden: {"),
        (reply("", 404), "crash", "answered 404 Not Found"),
        (
            reply("x" * 9000, 503),
            "crash",
            f"answered 503 Service Unavailable: {'x' * 200}...",
        ),
        (b"HTTP/1.1 599 \r\nContent-Length: 0\r\n\r\n", "crash", "answered 599"),
        (reply('{"decision": "deny"'), "output", "printed broken JSON"),
        (reply("{'decision': 'deny'}"), "output", "printed broken JSON"),
        (reply(DENY, Content_Encoding="gzip"), "output", "Content-Encoding 'gzip'"),
        (reply(DENY, Content_Encoding="br, x"), "output", "without compression"),
        (b"220 mail ready\r\n\r\n", "output", "did not answer as an HTTP server does"),
    ],
    ids=[
        *("500", "403", "404", "long-page", "unknown-status", "half-json"),
        *("python", "gzip", "br", "smtp"),
    ],
)
async def test_anything_else_is_a_failure_with_its_cause(
    workshop: Workshop, answer: bytes, cause: str, words: str
) -> None:
    """protocol.md#rules: also a refusal's body that holds a verdict is not parsed."""
    with WebServer(answer) as server:
        result = await one(workshop, server)
    assert (result.success, result.output, result.exit_code) == (False, None, None)
    assert result.cause == cause
    assert result.error is not None
    assert result.error.startswith(f"{server.url}/ ")
    assert words in result.error


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308, 304])
async def test_redirects_are_not_followed(workshop: Workshop, status: int) -> None:
    with WebServer(reply(DENY)) as other:
        place = other.url.replace("//", "//user:hidden-pass@")
        with WebServer(reply("", status, Location=f"{place}/?t=hidden-t")) as server:
            result = await one(workshop, server)
    assert other.exchanges == []
    assert result.cause is FailureCause.CRASH
    assert result.error is not None
    assert "redirects are not followed: write the final address" in result.error
    assert "hidden" not in result.error


async def test_a_closed_port_is_a_spawn_failure(workshop: Workshop) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/x"
    hooks = {"type": "http", "url": url}
    result = await workshop.fire("BeforeTool", hooks)
    [found] = result.aggregated.hook_results
    assert found.cause is FailureCause.SPAWN
    assert found.hook_name == url
    assert found.error is not None
    assert f"{url} cannot be reached: " in found.error
    assert "check the url, and that the service runs" in found.error


@pytest.mark.parametrize(
    "url",
    [
        *("http://no-such-host.invalid/", "http://[::1", "http://a:b/", "http:///x"),
        *("http://127.0.0.1:99999/", "http://xn--/", "http://a b.invalid"),
        f"http://{'a' * 300}.invalid/",
    ],
)
async def test_an_address_that_leads_nowhere_is_a_spawn_failure(
    workshop: Workshop, url: str
) -> None:
    result = await workshop.fire("BeforeTool", {"type": "http", "url": url})
    for found in result.aggregated.hook_results:  # none where it was dropped
        assert found.cause is FailureCause.SPAWN


async def test_a_server_that_hangs_up_is_a_crash(workshop: Workshop) -> None:
    with WebServer(lambda _: None) as server:
        result = await one(workshop, server)
    assert result.cause is FailureCause.CRASH
    assert result.error is not None
    assert "closed the connection without an answer" in result.error
    assert len(server.exchanges) == 1  # a new connection is not tried twice


async def test_what_the_host_was_handling_is_not_taken_for_the_reason(
    workshop: Workshop,
) -> None:
    """Python makes it the context of whatever is raised meanwhile."""
    closed = {"type": "http", "url": "http://127.0.0.1:1/"}
    with WebServer(lambda _: None) as server:
        try:
            int("a secret of the host")
        except ValueError:
            crashed = await workshop.fire("BeforeTool", hook(server))
            other = await workshop.fire("BeforeTool", closed)
    assert crashed.aggregated.hook_results[0].cause is FailureCause.CRASH
    assert other.aggregated.hook_results[0].cause is FailureCause.SPAWN
    assert "a secret of the host" not in f"{crashed} {other}"


async def test_half_an_answer_is_never_read(workshop: Workshop) -> None:
    def cut(exchange: Exchange) -> None:
        head = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"
        exchange.connection.sendall(head + b'{"decision": "allow"}')

    with WebServer(cut) as server:
        result = await one(workshop, server)
    assert result.cause is FailureCause.OUTPUT
    assert result.error is not None
    assert "broke off its answer" in result.error


async def test_a_body_beyond_the_limit_is_not_read_to_its_end(
    workshop: Workshop,
) -> None:
    """protocol.md#process: stdout over the limit is a failure, cause output."""

    def endless(exchange: Exchange) -> None:
        exchange.connection.sendall(CHUNKED)
        while True:  # until the client goes away
            exchange.connection.sendall(b"1000\r\n" + b" " * 0x1000 + b"\r\n")

    with WebServer(endless) as server:
        result = await one(workshop, server, config={"maxOutputBytes": 1000})
        server.wait(lambda: not server.open)
    assert (result.cause, result.truncated) == (FailureCause.OUTPUT, True)
    assert result.error is not None
    assert "printed more than maxOutputBytes" in result.error


@pytest.mark.parametrize("size", [999, 1000, 1001])
async def test_the_limit_counts_bytes(workshop: Workshop, size: int) -> None:
    with WebServer(reply("y" * size)) as server:
        result = await one(workshop, server, config={"maxOutputBytes": 1000})
    assert result.success is (size <= 1000)


async def test_a_page_with_an_error_is_not_read_beyond_a_few_kilobytes(
    workshop: Workshop,
) -> None:
    with WebServer(reply("e" * 3_000_000, 500)) as server:
        result = await one(workshop, server)
    assert len(result.stderr) == 4096


@pytest.mark.parametrize(
    ("body", "cause"),
    [("fine", "output"), ("[1]", "output"), ("", None), ("{}", None)],
)
async def test_expect_json_is_honoured(
    workshop: Workshop, body: str, cause: str | None
) -> None:
    with WebServer(reply(body)) as server:
        result = await one(workshop, server, expect="json")
    assert result.cause == cause


@pytest.mark.parametrize(
    ("head", "cause"),
    [
        (b"HTTP/1.0 200 OK\r\n\r\n", "output"),
        (b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n \n", "output"),
        (b"HTTP/1.0 200 OK\r\n\r\n{}", None),
        (b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", None),
        (b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n", None),
    ],
)
async def test_a_service_that_crashes_before_its_body_gave_no_answer(
    workshop: Workshop, head: bytes, cause: str | None
) -> None:
    """Nothing tells it from an empty answer that ends with the connection."""

    def crash(exchange: Exchange) -> None:
        exchange.connection.sendall(head)

    with WebServer(crash) as server:
        result = await one(workshop, server, expect="json")
        assert result.cause == cause
        assert (await one(workshop, server)).cause is None


async def test_without_httpx_the_hook_fails_with_the_command_that_installs_it(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "httpx", None)
    http._parse_url.cache_clear()  # another test may have had the same port
    with WebServer(reply(DENY)) as server:
        open_hook = await one(workshop, server)
        closed = await workshop.fire("BeforeTool", hook(server, onError="block"))
    assert server.exchanges == []
    assert open_hook.cause is FailureCause.SPAWN
    assert open_hook.error is not None
    assert "install 'httpx>=0.27'" in open_hook.error
    assert closed.blocked


LOADS_NOTHING = """
import sys
from hookline import Config, HookSystem, Settings
hooks = [{"type": "command", "command": "true"}]
found = Settings.from_mapping({"hooks": {"BeforeTool": [{"hooks": hooks}]}})
HookSystem(Config("s", ".", found))
sys.exit(bool({"httpx", "hookline.executors.http"} & sys.modules.keys()))
"""


def test_a_host_without_http_hooks_loads_nothing_of_it(workshop: Workshop) -> None:
    words = [sys.executable, "-c", LOADS_NOTHING]
    assert subprocess.run(words, check=False, cwd=workshop.folder).returncode == 0


def test_fire_shows_a_failure_on_the_command_line(
    workshop: Workshop, capsys: pytest.CaptureFixture[str]
) -> None:
    with WebServer(reply("down", 503)) as server:
        settings = workshop.settings("BeforeTool", hook(server, onError="block"))
        file = workshop.folder / "s.json"
        file.write_text(json.dumps(settings))
        words = ["fire", "BeforeTool", "--tool", "x", "--settings", str(file), "--json"]
        assert main(words) == 2
    printed = json.loads(capsys.readouterr().out)
    [found] = printed["hooks"]
    assert found["exit_code"] is None
    assert found["stderr"] == "down"
    assert "answered 503" in printed["reason"]
