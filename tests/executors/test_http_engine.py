"""Http hooks in the engine: policies, modes, chains, trust, dialects (issue 13.3)."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from hookline import HookSystem
from hookline.protocol.events import HookEventName
from hookline.protocol.results import FailureCause
from tests.support.project import Project
from tests.support.web import Exchange, WebServer, hook, reply
from tests.support.workshop import Workshop

DENY = {"decision": "deny", "reason": "the service says no"}


def rewrite(**changes: str) -> dict[str, Any]:
    return {"hookSpecificOutput": {"tool_input": changes}}


async def test_an_observing_hook_only_records(workshop: Workshop) -> None:
    with WebServer(reply(DENY)) as server:
        result = await workshop.fire("BeforeTool", hook(server, mode="observe"))
    [found] = result.aggregated.hook_results
    assert (result.blocked, found.would_block) == (False, True)


@pytest.mark.parametrize("cause", ["spawn", "crash", "timeout", "output"])
async def test_each_cause_of_failure_has_its_policy(
    workshop: Workshop, cause: str
) -> None:
    def fail(exchange: Exchange) -> bytes | None:
        if cause == "timeout":
            exchange.connection.recv(1)
            return None
        return reply("{", 200) if cause == "output" else reply("", 500)

    with WebServer(fail) as server:
        more: dict[str, Any] = {"timeout": 300} if cause == "timeout" else {}
        if cause == "spawn":
            more = {"url": "http://127.0.0.1:1/"}
        others = dict.fromkeys(("spawn", "crash", "timeout", "output"), "block")
        del others[cause]
        let_through = {**hook(server, onError=others), **more}
        blocks = {**hook(server, onError={cause: "block"}), **more}
        opened = await workshop.fire("BeforeTool", let_through)
        closed = await workshop.fire("BeforeTool", blocks)
    assert not opened.blocked
    assert closed.blocked
    assert closed.reason is not None
    assert f"onError blocks on {cause}" in closed.reason


@pytest.mark.parametrize(
    ("event", "closed"),
    [
        ("AfterTool", "withholdResult"),
        ("AfterModel", "llm_response"),
        ("BeforeToolSelection", "toolConfig"),
    ],
)
async def test_a_failure_closes_events_that_cannot_block(
    workshop: Workshop, event: str, closed: str
) -> None:
    with WebServer(reply("", 500)) as server:
        result = await workshop.fire(event, hook(server, onError="block"))
    [found] = result.aggregated.hook_results
    assert found.raw_output is not None
    assert closed in found.raw_output["hookSpecificOutput"]


async def test_a_hook_that_saw_another_input_is_asked_again(workshop: Workshop) -> None:
    """protocol.md#several-hooks: what runs is what the guards have seen."""

    def judge(exchange: Exchange) -> bytes:
        path = exchange.event["tool_input"]["path"]
        return reply(DENY if path == ".env" else {})

    with (
        WebServer(judge) as guard,
        WebServer(reply(rewrite(path=".env"))) as other,
    ):
        result = await workshop.fire("BeforeTool", hook(guard), hook(other, name="w"))
    assert result.blocked
    first, second = guard.exchanges
    assert "x-hookline-recheck" not in first.headers
    assert second.headers["x-hookline-recheck"] == "1"
    assert second.event["tool_input"]["path"] == ".env"
    assert [one.recheck for one in result.aggregated.hook_results] == [
        *(False, False),
        True,
    ]


async def test_recheck_false_is_not_asked_again(workshop: Workshop) -> None:
    with (
        WebServer(reply()) as guard,
        WebServer(reply(rewrite(path="b"))) as other,
    ):
        hooks = (hook(guard, recheck=False), hook(other, name="w"))
        await workshop.fire("BeforeTool", *hooks)
    assert len(guard.exchanges) == 1


async def test_a_chain_hands_the_changed_input_on(workshop: Workshop) -> None:
    with (
        WebServer(reply(rewrite(path="b"))) as first,
        WebServer(reply(DENY)) as second,
        WebServer(reply()) as third,
    ):
        result = await workshop.fire(
            "BeforeTool",
            hook(first, name="a"),
            hook(second, name="b"),
            hook(third, name="c"),
            sequential=True,
        )
    assert result.blocked
    assert second.exchanges[0].event["tool_input"]["path"] == "b"
    assert third.exchanges == []


async def test_hooks_that_differ_in_what_they_send_are_not_duplicates(
    workshop: Workshop,
) -> None:
    """protocol.md#planning: url, headers, allowedEnv and dialect all count."""
    with WebServer(reply({"result": True})) as server:
        hooks = [
            hook(server),
            hook(server),
            hook(server, "/?a=1"),
            hook(server, headers={"X-A": "1"}),
            hook(server, allowedEnv=["HOME"]),
            hook(server, dialect="opa"),
        ]
        await workshop.fire("BeforeTool", *hooks)
    assert len(server.exchanges) == 5


async def test_a_service_that_keeps_timing_out_is_skipped(workshop: Workshop) -> None:
    with WebServer(lambda exchange: exchange.connection.recv(1) and None) as server:
        settings = workshop.settings(
            "BeforeTool",
            hook(server, timeout=100, onError="block"),
            config={"breaker": {"timeouts": 2, "cooldownMs": 60000}},
        )
        async with HookSystem(workshop.config(settings)) as system:
            for _ in range(4):
                event = system.event_handler.fire_before_tool_event("x", {})
                assert (await event).blocked
    assert len(server.exchanges) == 2


async def test_max_processes_does_not_apply(workshop: Workshop) -> None:
    """A request is no process: two of them run at once where one process may."""
    both = asyncio.Event()
    loop = asyncio.get_running_loop()

    def wait_for_the_other(exchange: Exchange) -> bytes:
        server.wait(lambda: len(server.exchanges) == 2)
        loop.call_soon_threadsafe(both.set)
        return reply()

    with WebServer(wait_for_the_other) as server:
        await workshop.fire(
            "BeforeTool", hook(server), hook(server, "/b"), config={"maxProcesses": 1}
        )
    assert both.is_set()


async def test_the_dialect_claude_shows_and_reads_its_own_names(
    workshop: Workshop,
) -> None:
    """Claude Code has http hooks too: the same JSON in both directions."""
    said = {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "deny",
            "permissionDecisionReason": "not here",
        }
    }
    with WebServer(reply(said)) as server:
        result = await workshop.fire("BeforeTool", hook(server, dialect="claude"))
    [sent] = server.exchanges
    assert sent.event["hook_event_name"] == "PreToolUse"
    assert sent.event["tool_name"] == "Write"
    assert "file_path" in sent.event["tool_input"]
    assert (result.blocked, result.reason) == (True, "not here")


async def test_plain_text_for_claude_is_context(workshop: Workshop) -> None:
    with WebServer(reply("the build is red")) as server:
        result = await workshop.fire("BeforeAgent", hook(server, dialect="claude"))
    assert result.final_output is not None
    assert result.final_output.additional_context == "the build is red"


def user_settings(project: Project, **options: Any) -> None:
    folder = project.folder.parent / "config" / "hookline"
    folder.mkdir(parents=True)
    (folder / "settings.json").write_text(json.dumps({"hooksConfig": options}))


async def test_hooks_of_a_project_are_asked_only_once_it_is_trusted(
    project: Project,
) -> None:
    with WebServer(reply(DENY)) as server:
        project.settings(hook(server))
        assert not (await project.fire()).blocked
        assert server.exchanges == []
        assert project.trust() == 0
        assert (await project.fire()).blocked
        # What was approved is asked, whatever the file says now.
        project.settings(hook(server, "/other", headers={"X-New": "1"}))
        await project.fire()
    assert {exchange.target for exchange in server.exchanges} == {"/"}


async def test_untrusted_block_closes_the_event_without_a_request(
    project: Project,
) -> None:
    user_settings(project, untrusted="block")
    with WebServer(reply({})) as server:
        project.settings(hook(server))
        result = await project.fire()
    assert result.blocked
    assert server.connections == 0


def test_the_review_shows_what_is_sent_and_where(
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
    assert f"runs   {url}" in shown
    assert (
        'headers: {"Authorization":"Bearer ${GITHUB_TOKEN}","X-Team":"blue"}' in shown
    )
    assert 'allowedEnv: ["GITHUB_TOKEN"]' in shown
    assert "GITHUB_TOKEN of your environment may be sent to this url" in shown
    assert "canary-value" not in shown


async def test_every_event_with_an_unencodable_part_is_blocked_unsent(
    workshop: Workshop,
) -> None:
    """protocol.md#process: no guard has seen it."""
    deep: Any = "x"
    for _ in range(600):
        deep = [deep]
    given = {"tool_name": "write_file", "tool_input": {"path": deep}}
    with WebServer(reply()) as server:
        result = await workshop.fire(
            HookEventName.BeforeTool, hook(server), given=given
        )
    assert result.blocked
    assert server.exchanges == []


async def test_failures_are_counted_as_such(workshop: Workshop) -> None:
    with WebServer(reply("", 500)) as server:
        result = await workshop.fire("BeforeTool", hook(server))
    assert not result.aggregated.success
    assert result.aggregated.hook_results[0].cause is FailureCause.CRASH
