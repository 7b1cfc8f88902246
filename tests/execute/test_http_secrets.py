"""Secrets that an http hook sends are kept and shown nowhere.

Which headers are sent, and what is masked in one answer, is in
``tests/pins/fire/http.json``.
"""

from __future__ import annotations

import html
import json
import logging
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest

from tests.support.commandline import run_command
from tests.support.web import Answer, Exchange, WebServer, hook, reply
from tests.support.workspace import Workspace

CANARY = 'canary/7f"3é&x'
QUERY, PASSWORD = "canary-query-1", "canary-password-1"
AUTH = {"Authorization": "Bearer ${GUARD_TOKEN}"}
ECHOES: dict[str, Callable[[str], str]] = {
    "text": str,
    "json": lambda text: json.dumps({"decision": "deny", "reason": text}),
    "escaped": lambda text: json.dumps({"reason": text}).replace("/", "\\/"),
    "list": lambda text: json.dumps([text]),
    "broken": lambda text: "{" + text,
    "nested": lambda text: json.dumps(
        {"hookSpecificOutput": {"a": [{"b c " + text: text}]}}
    ),
    "unicode": lambda text: json.dumps({"systemMessage": text}).replace("c", "\\u0063"),
    "opa": lambda text: json.dumps({"result": [text]}),
}
"""Ways in which a service shows what it was sent."""


def echo_as(form: str, status: int) -> Answer:
    """Answer with the credentials of the request."""

    def answer(exchange: Exchange) -> bytes:
        token = exchange.headers["authorization"].encode("latin-1").decode()
        text = f"{token} {exchange.headers['x-basic']} {exchange.target}"
        return reply(ECHOES[form](text), status)

    return answer


@pytest.mark.parametrize("form", ECHOES)
@pytest.mark.parametrize("status", [200, 403])
async def test_secret_that_the_service_echoes_is_kept_nowhere(
    workspace: Workspace,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    form: str,
    status: int,
) -> None:
    """Not in results, log, journal, nor in what commands print."""
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("GUARD_TOKEN", CANARY)
    with WebServer(echo_as(form, status)) as server:
        service = {
            "type": "http",
            "url": server.url.replace("//", f"//me:{PASSWORD}@") + f"/?key={QUERY}",
            "headers": {**AUTH, "X-Basic": PASSWORD},
            "allowedEnv": ["GUARD_TOKEN"],
            "dialect": "opa" if form == "opa" else "hookline",
        }
        config = {"journal": "events.db", "onError": "block"}
        settings = workspace.settings("BeforeTool", service, config=config)
        result = await workspace.fire_on(settings, "BeforeTool")
        assert len(server.exchanges) == 1
        file = workspace.folder / "s.json"
        file.write_text(json.dumps(settings))
        texts = [repr(result), str(result), caplog.text]
        # In a thread of its own, since commands run an event loop.
        with ThreadPoolExecutor(1) as thread:
            texts += thread.submit(printed_by_commands, file).result()
    texts.append(journal_text(workspace.folder))
    for text in texts:
        assert text
        for secret in (CANARY, QUERY, PASSWORD, json.dumps(CANARY)[1:-1], "canary"):
            assert secret not in text
    assert result.blocked or (status == 200 and form not in {"json", "broken", "opa"})


def printed_by_commands(settings: Path) -> list[str]:
    commands = [
        ("list", "--json"),
        ("explain", "BeforeTool", "--tool", "write_file"),
        ("fire", "BeforeTool", "--tool", "x", "--json", "--record"),
    ]
    where = ("--settings", settings, "--cwd", settings.parent)
    ended = [run_command(*words, *where) for words in commands]
    return [done.stdout + done.stderr for done in ended]


def journal_text(folder: Path) -> str:
    files = [path for path in folder.rglob("events.db*") if path.is_file()]
    assert files
    return "".join(path.read_bytes().decode("utf-8", "replace") for path in files)


def test_list_shows_the_url_without_what_may_be_secret(workspace: Workspace) -> None:
    url = "https://me:hidden-1@guard.test:8443/v1/ask?token=hidden-2#hidden-3"
    file = workspace.folder / "s.json"
    service = {"type": "http", "url": url, "headers": {"X-Key": "hidden-4"}}
    file.write_text(json.dumps(workspace.settings("BeforeTool", service)))
    for more in ([], ["--json"]):
        done = run_command("list", "--settings", file, *more)
        assert done.returncode == 0
        assert "https://guard.test:8443/v1/ask" in done.stdout
        assert "hidden" not in done.stdout + done.stderr


async def test_odd_bytes_of_a_variable_are_sent_as_they_are(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GUARD_TOKEN", "raw\udcff")
    with WebServer(reply()) as server:
        service = hook(server, headers=AUTH, allowedEnv=["GUARD_TOKEN"])
        await workspace.fire("BeforeTool", service)
    received = server.exchanges[0].headers["authorization"].encode("latin-1")
    assert received == b"Bearer raw\xff"


ODD = "c4N/ry+T0k=n\"<\u00e9&'x y"
ESCAPES: list[Callable[[str], str]] = [
    quote,
    lambda text: quote(text, safe=""),
    quote_plus,
    lambda text: re.sub("%..", lambda match: match[0].lower(), quote_plus(text)),
    lambda text: html.escape(text).replace("&#x27;", "&#39;"),
    lambda text: html.escape(text).replace("&#x27;", "&apos;"),
    lambda text: json.dumps(text)[1:],
    lambda text: json.dumps(text)[1:].replace("/", "\\/"),
    lambda text: json.dumps(text)[1:].replace("&", "\\u0026").replace("<", "\\u003c"),
    # Gson and .NET; the templates of Go and .NET, in HTML.
    lambda text: re.sub("[<>&'=+\"]", lambda sign: f"\\u{ord(sign[0]):04X}", text),
    lambda text: re.sub("[<>&'+\"]", lambda sign: f"&#{ord(sign[0])};", text),
    lambda text: re.sub("[<>&'+\"]", lambda sign: f"&#x{ord(sign[0]):X};", text),
]


async def test_secret_is_masked_as_urls_html_and_json_write_it(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    """Also where the page is cut in the middle of it."""
    monkeypatch.setenv("GUARD_TOKEN", ODD)
    for escaped in [escape(ODD) for escape in ESCAPES]:
        for before in (0, 4096 - escaped.index("ry") - 6):
            page = "-" * before + f"{escaped} y"
            with (
                subtests.test(escaped=escaped, before=before),
                WebServer(reply(page, 500)) as server,
            ):
                service = hook(server, headers=AUTH, allowedEnv=["GUARD_TOKEN"])
                result = await workspace.fire("BeforeTool", service)
                assert "[masked]" in result.aggregated.hook_results[0].stderr
                assert not re.search("c4N|T0k", f"{result}")
