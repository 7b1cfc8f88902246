"""Headers from the environment, and secrets that are shown nowhere (issue 13.3)."""

from __future__ import annotations

import html
import json
import logging
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import pytest

from hookline.cli.main import main
from hookline.protocol.results import FailureCause, HookExecutionResult
from tests.support.web import Answer, Exchange, WebServer, hook, reply
from tests.support.workshop import Workshop

CANARY = 'canary/7f"3é&x'
QUERY, PASSWORD = "canary-query-1", "canary-password-1"
AUTH = {"Authorization": "Bearer ${GUARD_TOKEN}"}


@pytest.fixture(autouse=True)
def _token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GUARD_TOKEN", CANARY)


async def one(
    workshop: Workshop, server: WebServer, **more: Any
) -> HookExecutionResult:
    result = await workshop.fire("BeforeTool", hook(server, **more))
    [found] = result.aggregated.hook_results
    return found


async def sent(workshop: Workshop, **more: Any) -> dict[str, str]:
    with WebServer(reply()) as server:
        result = await one(workshop, server, **more)
    assert result.success, result.error
    return server.exchanges[0].headers


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("Bearer ${T1}", "Bearer first-token"),
        ("${T1}${T2}", "first-tokensecond"),
        ("a$b $T1 $$ $${T1} ${", "a$b $T1 $$ $${T1} ${"),
        ("  ${T1} ", "first-token"),
        ("plain", "plain"),
    ],
)
async def test_variables_in_braces_are_replaced_and_nothing_else(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch, written: str, expected: str
) -> None:
    monkeypatch.setenv("T1", "first-token")
    monkeypatch.setenv("T2", "second")
    headers = await sent(
        workshop, headers={"X-Given": written}, allowedEnv=["T1", "T2"]
    )
    assert headers["x-given"] == expected


async def test_a_hook_may_send_its_own_content_type(workshop: Workshop) -> None:
    given = {"content-type": "application/vnd.guard+json", "X-Level": "3"}
    headers = await sent(workshop, headers=given)
    assert headers["content-type"] == "application/vnd.guard+json"
    assert headers["x-level"] == "3"


@pytest.mark.parametrize(
    ("headers", "allowed", "value", "words"),
    [
        (AUTH, [], CANARY, "names 'GUARD_TOKEN', which is not in allowedEnv"),
        (AUTH, ["guard_token"], CANARY, "not in allowedEnv"),
        (AUTH, ["GUARD_TOKEN"], None, "names 'GUARD_TOKEN', which is not set"),
        (AUTH, ["GUARD_TOKEN"], "", "which is not set"),
        (AUTH, ["GUARD_TOKEN"], " \t", "which is not set"),
        (AUTH, ["GUARD_TOKEN"], "abcdef\n", "'GUARD_TOKEN' holds a line break"),
        (AUTH, ["GUARD_TOKEN"], "abcdef\r\nX-Evil: 1", "holds a line break"),
        (AUTH, ["GUARD_TOKEN"], "abc\x01def", "another control character"),
        ({"X": "${GUARD_TOKEN:-none}"}, ["GUARD_TOKEN"], CANARY, "not in allowedEnv"),
        ({"X": "${}"}, ["GUARD_TOKEN"], CANARY, "not in allowedEnv"),
        ({"X": "a\nb"}, [], CANARY, "header 'X' holds a line break"),
        ({"Bad Name": "a"}, [], CANARY, "not a valid name"),
        ({"X:": "a"}, [], CANARY, "not a valid name"),
        ({"Ü": "a"}, [], CANARY, "not a valid name"),
        ({"Content-Length": "1"}, [], CANARY, "is set by Hookline"),
        ({"transfer-encoding": "chunked"}, [], CANARY, "is set by Hookline"),
        ({"Host": "other"}, [], CANARY, "is set by Hookline"),
        ({"X-Hookline-Event": "AfterTool"}, [], CANARY, "is set by Hookline"),
        ({"X-A": "1", "x-a": "2"}, [], CANARY, "given twice"),
    ],
)
async def test_what_cannot_be_sent_whole_is_not_sent_at_all(
    workshop: Workshop,
    monkeypatch: pytest.MonkeyPatch,
    headers: dict[str, str],
    allowed: list[str],
    value: str | None,
    words: str,
) -> None:
    """Never a request with half a header: it would be another question."""
    monkeypatch.delenv("GUARD_TOKEN")
    if value is not None:
        monkeypatch.setenv("GUARD_TOKEN", value)
    with WebServer(reply()) as server:
        result = await one(workshop, server, headers=headers, allowedEnv=allowed)
        again = await workshop.fire(
            "BeforeTool",
            hook(server, headers=headers, allowedEnv=allowed, onError="block"),
        )
    assert server.exchanges == []
    assert result.cause is FailureCause.SPAWN
    assert result.error is not None
    assert words in result.error
    assert value is None or not value.strip() or value.strip() not in str(result)
    assert again.blocked


@pytest.mark.parametrize("value", ["grün", "raw\udcff", "tab\tinside"])
async def test_odd_bytes_of_a_variable_are_sent_as_they_are(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("GUARD_TOKEN", value)
    headers = await sent(workshop, headers=AUTH, allowedEnv=["GUARD_TOKEN"])
    received = headers["authorization"].encode("latin-1")
    assert received == f"Bearer {value}".encode("utf-8", "surrogateescape")


async def test_envpolicy_clean_leaves_the_listed_variables(workshop: Workshop) -> None:
    """Nothing is inherited by a request: ``allowedEnv`` is the whole list."""
    headers = await sent(
        workshop, headers=AUTH, allowedEnv=["GUARD_TOKEN"], envPolicy="clean"
    )
    assert headers["authorization"].startswith("Bearer canary")


async def test_user_and_password_of_the_url_are_sent_as_basic_auth(
    workshop: Workshop,
) -> None:
    with WebServer(reply()) as server:
        url = server.url.replace("//", "//me:p%40ss@")
        await workshop.fire("BeforeTool", {"type": "http", "url": f"{url}/x"})
    assert server.exchanges[0].headers["authorization"] == "Basic bWU6cEBzcw=="
    assert "@" not in server.exchanges[0].headers["host"]


def echo_as(status: int, form: str) -> Answer:
    """Echo the request in a body of this form."""

    def answer(exchange: Exchange) -> bytes:
        token = exchange.headers["authorization"].encode("latin-1").decode()
        texts = f"{token} {exchange.headers['x-basic']} {exchange.target}"
        bodies = {
            "text": texts,
            "json": json.dumps({"decision": "deny", "reason": texts}),
            "escaped": json.dumps({"reason": texts}).replace("/", "\\/"),
            "list": json.dumps([texts]),
            "broken": "{" + texts,
            "nested": json.dumps(
                {"hookSpecificOutput": {"a": [{"b c " + texts: texts}]}}
            ),
            "unicode": json.dumps({"systemMessage": texts}).replace("c", "\\u0063"),
            "opa": json.dumps({"result": [texts]}),
        }
        return reply(bodies[form], status)

    return answer


FORMS = ["text", "json", "escaped", "list", "broken", "nested", "unicode", "opa"]


@pytest.mark.parametrize("status", [200, 403])
@pytest.mark.parametrize("form", FORMS)
async def test_a_secret_that_the_service_echoes_is_kept_nowhere(
    workshop: Workshop,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
    form: str,
    status: int,
) -> None:
    """Not in results, log, journal, nor in what commands print."""
    caplog.set_level(logging.DEBUG)
    with WebServer(echo_as(status, form)) as server:
        url = server.url.replace("//", f"//me:{PASSWORD}@")
        service = {
            "type": "http",
            "url": f"{url}/ask?key={QUERY}",
            "headers": {**AUTH, "X-Basic": f"{PASSWORD}"},
            "allowedEnv": ["GUARD_TOKEN"],
            "dialect": "opa" if form == "opa" else "hookline",
        }
        settings = workshop.settings(
            "BeforeTool", service, config={"journal": "events.db", "onError": "block"}
        )
        result = await workshop.fire_on(settings, "BeforeTool")
        assert len(server.exchanges) == 1
        file = workshop.folder / "s.json"
        file.write_text(json.dumps(settings))
    # In a thread of its own, since commands run an event loop.
    commands = [
        ["list", "--json"],
        ["explain", "BeforeTool", "--tool", "write_file"],
        ["fire", "BeforeTool", "--tool", "x", "--json", "--record"],
    ]
    shown = [repr(result), str(result), caplog.text, *printed(commands, file, capsys)]
    shown += [journal_text(workshop.folder)]
    for text in shown:
        assert_hidden(text)
    assert result.blocked or (status == 200 and form not in {"json", "broken", "opa"})


def printed(
    commands: list[list[str]], file: Path, capsys: pytest.CaptureFixture[str]
) -> list[str]:
    from concurrent.futures import ThreadPoolExecutor

    found = []
    with ThreadPoolExecutor(1) as threads:
        for words in commands:
            line = [*words, "--settings", str(file), "--cwd", str(file.parent)]
            threads.submit(main, line).result()
            found.append("".join(capsys.readouterr()))
    return found


def journal_text(folder: Path) -> str:
    files = [path for path in folder.rglob("events.db*") if path.is_file()]
    assert files
    return "".join(path.read_bytes().decode("utf-8", "replace") for path in files)


def assert_hidden(text: str) -> None:
    assert text
    for secret in (CANARY, QUERY, PASSWORD, json.dumps(CANARY)[1:-1], "canary"):
        assert secret not in text


async def test_a_verdict_is_not_lost_where_a_secret_is_a_word_of_the_protocol(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names of fields are not masked, whatever a variable holds."""
    monkeypatch.setenv("GUARD_TOKEN", "decision")
    answer = reply({"decision": "deny", "reason": "my decision"})
    for dialect in ("hookline", "claude"):
        with WebServer(answer) as server:
            asked = hook(server, headers=AUTH, allowedEnv=["GUARD_TOKEN"])
            result = await workshop.fire("BeforeTool", {**asked, "dialect": dialect})
        assert (result.blocked, result.reason) == (True, "my [masked]")


@pytest.mark.parametrize("before", [180, 195, 4080, 4090])
async def test_a_page_that_is_cut_within_a_secret_shows_no_part_of_it(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch, before: int
) -> None:
    monkeypatch.setenv("GUARD_TOKEN", "canary-1234567890-1234567890")
    with WebServer(
        reply("x" * before + "canary-1234567890-1234567890 y", 500)
    ) as server:
        result = await one(workshop, server, headers=AUTH, allowedEnv=["GUARD_TOKEN"])
    assert "canary" not in str(result)


async def test_short_values_are_not_masked(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GUARD_TOKEN", "a")
    with WebServer(reply({"systemMessage": "a banana"})) as server:
        result = await one(workshop, server, headers=AUTH, allowedEnv=["GUARD_TOKEN"])
    assert result.raw_output == {"systemMessage": "a banana"}


async def test_a_credential_written_into_a_header_is_masked_too(
    workshop: Workshop,
) -> None:
    headers = {"Authorization": "Bearer literal-canary"}
    with WebServer(reply("bad token literal-canary", 401)) as server:
        result = await one(workshop, server, headers=headers)
    assert result.error is not None
    assert "literal-canary" not in str(result)
    assert result.stderr == "bad token [masked]"


def test_list_shows_the_url_without_what_may_be_secret(
    workshop: Workshop, capsys: pytest.CaptureFixture[str]
) -> None:
    url = "https://me:hidden-1@guard.test:8443/v1/ask?token=hidden-2#hidden-3"
    file = workshop.folder / "s.json"
    service = {"type": "http", "url": url, "headers": {"X-Key": "hidden-4"}}
    file.write_text(json.dumps(workshop.settings("BeforeTool", service)))
    for more in ([], ["--json"]):
        assert main(["list", "--settings", str(file), *more]) == 0
        out, err = capsys.readouterr()
        assert "https://guard.test:8443/v1/ask" in out
        assert "hidden" not in out + err


ODD = "c4N/ry+T0k=n\"<\u00e9&'x y"


@pytest.mark.parametrize(
    "escape",
    [
        quote,
        lambda text: quote(text, safe=""),
        quote_plus,
        lambda text: re.sub("%..", lambda found: found[0].lower(), quote_plus(text)),
        lambda text: html.escape(text).replace("&#x27;", "&#39;"),
        lambda text: html.escape(text).replace("&#x27;", "&apos;"),
        lambda text: html.escape(json.dumps(text)),
        lambda text: json.dumps(text).replace("<", "\\u003C").replace("/", "\\/"),
        lambda text: json.dumps(json.dumps(text)),
        repr,
        lambda text: repr(text.encode()),
        ascii,
    ],
)
async def test_a_secret_is_masked_in_every_way_of_writing_text(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch, escape: Callable[[str], str]
) -> None:
    """Also where the page is cut in the middle of it (issue 13.3)."""
    monkeypatch.setenv("GUARD_TOKEN", ODD)
    shown = escape(ODD)
    for before in (0, 4096 - shown.index("ry") - 6):
        with WebServer(reply("-" * before + f"{shown} y", 500)) as server:
            asked = {"headers": AUTH, "allowedEnv": ["GUARD_TOKEN"]}
            result = await one(workshop, server, **asked)
        assert "[masked]" in result.stderr
        assert not re.search("c4N|T0k", f"{result}")


@pytest.mark.parametrize(
    ("value", "page"),
    [
        ("Bearer canary-1", "unknown token 'canary-1'"),
        ("Basic bWU6Y2FuYXJ5LTE=", "wrong password: canary-1"),
        ("basic bWU6Y2FuYXJ5LTE=", "wrong password: canary-1"),
    ],
)
async def test_a_part_of_a_credential_is_masked_too(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch, value: str, page: str
) -> None:
    """Services show a token without its scheme, or what it holds."""
    monkeypatch.setenv("GUARD_TOKEN", value)
    headers = {"Authorization": "${GUARD_TOKEN}"}
    with WebServer(reply(page, 401)) as server:
        result = await one(
            workshop, server, headers=headers, allowedEnv=["GUARD_TOKEN"]
        )
    assert server.exchanges[0].headers["authorization"] == value
    assert "[masked]" in result.stderr
    assert "canary" not in str(result)


async def test_a_secret_is_masked_as_the_name_of_a_field(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GUARD_TOKEN", "canary12")
    said = {"systemMessage": "hi", "hookSpecificOutput": {"canary12": 1}}
    with WebServer(reply(said)) as server:
        result = await one(workshop, server, headers=AUTH, allowedEnv=["GUARD_TOKEN"])
    assert "canary" not in str(result)


async def test_what_the_event_holds_is_not_masked_in_a_changed_input(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tool must not be called with ``[masked]`` in the place of a word."""
    monkeypatch.setenv("STAGE", "production")
    monkeypatch.setenv("GUARD_TOKEN", "canary-1")

    def rewrite(exchange: Exchange) -> bytes:
        changed = {**exchange.event["tool_input"], "content": "canary-1"}
        return reply({"hookSpecificOutput": {"tool_input": changed}})

    with WebServer(rewrite) as server:
        service = hook(
            server,
            headers={**AUTH, "X-Stage": "${STAGE}"},
            allowedEnv=["STAGE", "GUARD_TOKEN"],
        )
        given = {"tool_name": "write_file", "tool_input": {"path": "production/a"}}
        result = await workshop.fire("BeforeTool", service, given=given)
    said = result.aggregated.hook_results[0].output
    assert said is not None
    assert said.tool_input == {
        "path": "production/a",
        "content": "[masked]",
    }
