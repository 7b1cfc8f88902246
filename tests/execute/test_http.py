"""Http hooks with several requests, with any answer, and with trust.

What one request holds and what one answer means is in ``tests/pins/fire/http.json`` and
``opa.json`` (protocol.md#rules).
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hookline import HookEventName, HookSystem
from hookline.protocol.results import FailureCause
from tests.support.project import Project
from tests.support.python import run_python
from tests.support.web import Exchange, WebServer, hook, reply
from tests.support.workspace import INPUTS, Workspace

DENY = {"decision": "deny", "reason": "the service says no"}
TOOL_RESULT = INPUTS[HookEventName.AfterTool]


async def test_what_the_host_was_handling_is_not_taken_for_the_reason(
    workspace: Workspace,
) -> None:
    """Python makes it the context of whatever is raised meanwhile."""
    closed = {"type": "http", "url": "http://127.0.0.1:1/"}
    with WebServer(lambda _: None) as server:
        try:
            int("a secret of the host")
        except ValueError:
            crashed = await workspace.fire("BeforeTool", hook(server))
            other = await workspace.fire("BeforeTool", closed)
    assert crashed.aggregated.hook_results[0].cause is FailureCause.CRASH
    assert other.aggregated.hook_results[0].cause is FailureCause.SPAWN
    assert "a secret of the host" not in f"{crashed} {other}"


async def test_name_that_leads_nowhere_is_a_spawn_failure(workspace: Workspace) -> None:
    for host in ("no-such-host.invalid", f"{'a' * 300}.invalid"):
        service = {"type": "http", "url": f"http://{host}/"}
        result = await workspace.fire("BeforeTool", service)
        [ran] = result.aggregated.hook_results
        assert ran.cause is FailureCause.SPAWN


async def test_body_beyond_the_limit_is_not_read_to_its_end(
    workspace: Workspace,
) -> None:
    """protocol.md#process: stdout over the limit is a failure, cause output."""

    def endless(exchange: Exchange) -> None:
        head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        exchange.connection.sendall(head)
        while True:  # until the client goes away
            exchange.connection.sendall(b"1000\r\n" + b" " * 0x1000 + b"\r\n")

    with WebServer(endless) as server:
        limit = {"maxOutputBytes": 1000}
        result = await workspace.fire("BeforeTool", hook(server), config=limit)
        server.wait(lambda: not server.open)
    [ran] = result.aggregated.hook_results
    assert (ran.cause, ran.truncated) == (FailureCause.OUTPUT, True)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


def test_every_object_is_read_as_it_is_and_no_part_of_it_is(
    workspace: Workspace,
) -> None:
    """protocol.md#process: a broken answer is not a yes."""
    bodies: list[str] = []

    def answer_next(_: Exchange) -> bytes:
        return reply(bodies[-1].encode("utf-8", "surrogatepass"))

    with WebServer(answer_next) as server, asyncio.Runner() as runner:
        config = workspace.config(workspace.settings("AfterTool", hook(server)))
        system = HookSystem(config)
        runner.run(system.initialize())

        @given(st.dictionaries(st.text(), json_values), st.booleans())
        @settings(max_examples=30)
        def check(answer: dict[str, Any], ascii_only: bool) -> None:
            text = json.dumps(answer, ensure_ascii=ascii_only)
            for body in (text, text[:-1]):
                bodies.append(body)
                fire = system.event_handler.fire("AfterTool", TOOL_RESULT)
                result = runner.run(fire)
                [ran] = result.aggregated.hook_results
                is_whole = body == text
                assert ran.raw_output == (json.loads(text) if is_whole else None)
                assert ran.cause is (None if is_whole else FailureCause.OUTPUT)

        check()
        runner.run(system.dispose())


async def test_without_httpx_the_hook_fails_with_the_command_that_installs_it(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "httpx", None)
    # An address that no other test asks: parsed ones are remembered.
    service = {"type": "http", "url": "http://127.0.0.1:1/without-httpx"}
    result = await workspace.fire("BeforeTool", {**service, "onError": "block"})
    [ran] = result.aggregated.hook_results
    assert (ran.cause, result.blocked) == (FailureCause.SPAWN, True)
    assert "install 'httpx>=0.27'" in (ran.error or "")


def test_host_loads_only_what_its_hooks_need() -> None:
    code = """
        import sys
        from hookline import Config, HookSystem, Settings
        hooks = [{"type": "command", "command": "true"}]
        settings = Settings.from_mapping({"hooks": {"BeforeTool": [{"hooks": hooks}]}})
        HookSystem(Config("s", ".", settings))
        assert not {"httpx", "cedarpy"} & sys.modules.keys()
    """
    done = run_python(code)
    assert done.returncode == 0, done.stderr


async def test_max_processes_does_not_apply(workspace: Workspace) -> None:
    """A request is no process: two of them run at once where one process may."""

    def wait_for_the_other(_: Exchange) -> bytes:
        server.wait(lambda: len(server.exchanges) == 2)
        return reply(DENY)

    with WebServer(wait_for_the_other) as server:
        both = (hook(server), hook(server, "/b"))
        result = await workspace.fire("BeforeTool", *both, config={"maxProcesses": 1})
    assert [ran.success for ran in result.aggregated.hook_results] == [True, True]


async def test_hooks_of_a_project_are_asked_only_once_it_is_trusted(
    project: Project,
) -> None:
    """Also where ``untrusted: block`` closes the event."""
    user_settings = project.folder.parent / "config" / "hookline" / "settings.json"
    user_settings.parent.mkdir(parents=True)
    options = {"hooksConfig": {"untrusted": "block"}}
    with WebServer(reply(DENY)) as server:
        project.settings(hook(server))
        assert not (await project.fire()).blocked
        user_settings.write_text(json.dumps(options))
        assert (await project.fire()).blocked
        assert server.connections == 0
        assert project.trust() == 0
        assert (await project.fire()).reason == "the service says no"
        # What was approved is asked, whatever the file says now.
        project.settings(hook(server, "/other", headers={"X-New": "1"}))
        await project.fire()
    assert {exchange.target for exchange in server.exchanges} == {"/"}


def test_review_shows_what_is_sent_and_where(
    project: Project,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nobody approves the sending of a variable without having seen its name."""
    monkeypatch.setenv("GITHUB_TOKEN", "canary-value")
    headers = {"Authorization": "Bearer ${GITHUB_TOKEN}", "X-Team": "blue"}
    url = "https://guard.test/ask?x=1"
    project.settings(
        {"type": "http", "url": url, "headers": headers, "allowedEnv": ["GITHUB_TOKEN"]}
    )
    assert project.trust() == 0
    shown = capsys.readouterr().out
    for line in (
        f"runs   {url}",
        'headers: {"Authorization":"Bearer ${GITHUB_TOKEN}","X-Team":"blue"}',
        'allowedEnv: ["GITHUB_TOKEN"]',
        "GITHUB_TOKEN of your environment may be sent to this url",
    ):
        assert line in shown
    assert "canary-value" not in shown
