"""FastMCP servers with hooks around their tools.

issue 14 adapters, protocol.md#callers
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mcp_types
import pytest
from fastmcp import Client, Context, FastMCP
from fastmcp.client.elicitation import ElicitResult
from fastmcp.exceptions import ToolError
from fastmcp.server import create_proxy
from fastmcp.server.middleware import Middleware
from fastmcp.tools import ToolResult

from hookline.adapters.fastmcp import HooklineMiddleware

from .noting import ASKS, BLOCKS, STOPS, WITHHOLDS, Event, NotingHooks, specific

MODES = pytest.mark.parametrize("mode", ["auto", "legacy"])
"""Connections of 2026-07-28, without sessions, and those with a handshake."""


def server_of(
    hooks: NotingHooks, ran: list[dict[str, Any]] | None = None, **options: Any
) -> FastMCP:
    """A server with a few tools; ``ran`` gets the calls that ran."""
    calls = [] if ran is None else ran
    server: FastMCP = FastMCP(
        "shop", middleware=[HooklineMiddleware(hooks.config, **options)]
    )

    @server.tool
    def add(a: int, b: int = 2) -> int:
        calls.append({"a": a, "b": b})
        return a + b

    @server.tool
    def fail() -> str:
        raise ValueError("out of stock")

    @server.tool
    def whoami(context: Context) -> str:
        return context.session_id

    @server.tool
    def picture() -> ToolResult:
        image = mcp_types.ImageContent(type="image", data="aGk=", mime_type="image/png")
        text = mcp_types.TextContent(type="text", text="a picture")
        return ToolResult([text, image])

    @server.tool(timeout=0.05)
    async def slow() -> str:
        await asyncio.Event().wait()
        return "never"

    return server


def texts(result: Any) -> list[str]:
    return [block.text for block in result.content if block.type == "text"]


async def call(server: FastMCP, name: str = "add", **arguments: Any) -> Any:
    async with Client(server) as client:
        return await client.call_tool(name, arguments, raise_on_error=False)


async def test_hooks_see_the_call_and_its_result(tmp_path: Path) -> None:
    hooks = NotingHooks(tmp_path, BeforeTool={}, AfterTool={})
    result = await call(server_of(hooks), a=1)
    assert (result.data, texts(result)) == (3, ["3"])
    before, after = hooks.events
    assert (before["tool_name"], before["tool_input"]) == ("add", {"a": 1})
    assert before["mcp_context"] == {"server_name": "shop", "tool_name": "add"}
    assert after["tool_response"]["llmContent"] == "3"
    assert after["tool_response"]["metadata"] == {"structuredContent": {"result": 3}}
    assert after["mcp_context"] == before["mcp_context"]


@MODES
async def test_a_blocked_call_is_a_tool_error_with_the_reason(
    tmp_path: Path, mode: Any
) -> None:
    ran: list[dict[str, Any]] = []
    server = server_of(NotingHooks(tmp_path, BeforeTool=BLOCKS, AfterTool={}), ran)
    async with Client(server, mode=mode) as client:
        with pytest.raises(ToolError, match=r"^not today$"):
            await client.call_tool("add", {"a": 1})
    assert ran == []


async def test_a_refusal_brings_what_hooks_added(tmp_path: Path) -> None:
    said = {**BLOCKS, **specific(additionalContext="ask Ann"), "systemMessage": "hm"}
    result = await call(server_of(NotingHooks(tmp_path, BeforeTool=said)), a=1)
    assert result.is_error
    assert texts(result) == ["not today\n\nask Ann\n\n[System] hm"]


async def test_a_changed_input_is_what_runs(tmp_path: Path) -> None:
    hooks = NotingHooks(
        tmp_path, BeforeTool=specific(tool_input={"a": 40}), AfterTool={}
    )
    ran: list[dict[str, Any]] = []
    server = server_of(hooks, ran)
    result = await call(server, a=1, b=5)
    assert ran == [{"a": 40, "b": 5}]
    assert result.data == 45
    assert texts(result) == ["45", "[System] A hook changed the tool's input: a"]
    assert hooks.events[-1]["tool_input"] == {"a": 40, "b": 5}


@MODES
async def test_additions_are_further_blocks_and_the_data_stays(
    tmp_path: Path, mode: Any
) -> None:
    hooks = NotingHooks(
        tmp_path,
        BeforeTool=specific(additionalContext="before"),
        AfterTool={**specific(additionalContext="after"), "systemMessage": "mind"},
    )
    async with Client(server_of(hooks), mode=mode) as client:
        result = await client.call_tool("add", {"a": 1})
    assert texts(result) == ["3", "before", "after", "[System] mind"]
    assert (result.data, result.structured_content) == (3, {"result": 3})


@MODES
async def test_a_withheld_result_leaves_nothing_of_it(
    tmp_path: Path, mode: Any
) -> None:
    ran: list[dict[str, Any]] = []
    server = server_of(NotingHooks(tmp_path, AfterTool=WITHHOLDS), ran)
    async with Client(server, mode=mode) as client:
        result = await client.call_tool("add", {"a": 1}, raise_on_error=False)
    assert ran == [{"a": 1, "b": 2}]
    assert result.is_error
    assert texts(result) == ["secret"]
    assert result.structured_content is None


async def test_blocks_that_are_no_text_are_shown_whole_and_kept(tmp_path: Path) -> None:
    hooks = NotingHooks(tmp_path, AfterTool=specific(additionalContext="nice"))
    result = await call(server_of(hooks), "picture")
    shown = hooks.events[0]["tool_response"]["llmContent"]
    assert [block["type"] for block in shown] == ["text", "image"]
    assert [block.type for block in result.content] == ["text", "image", "text"]


async def test_a_suppressed_display_is_for_the_model_alone(tmp_path: Path) -> None:
    hooks = NotingHooks(tmp_path, AfterTool={"suppressOutput": True})
    result = await call(server_of(hooks), a=1)
    assert result.content[0].annotations.audience == ["assistant"]
    assert (texts(result), result.data) == (["3"], 3)


@pytest.mark.parametrize(
    ("name", "error"),
    [("fail", "out of stock"), ("slow", "timed out"), ("nosuch", "nosuch")],
)
async def test_a_failing_tool_is_seen_with_its_error(
    tmp_path: Path, name: str, error: str
) -> None:
    hooks = NotingHooks(tmp_path, AfterTool=specific(additionalContext="try later"))
    result = await call(server_of(hooks), name)
    assert error in hooks.events[0]["tool_response"]["error"]["message"]
    assert result.is_error
    assert error in texts(result)[0]
    assert texts(result)[0].endswith("\n\ntry later")


async def test_a_failure_without_additions_stays_the_servers_own(
    tmp_path: Path,
) -> None:
    with_hooks = await call(server_of(NotingHooks(tmp_path, AfterTool={})), "nosuch")
    assert texts(with_hooks) == ["Unknown tool: 'nosuch'"]


async def test_a_withheld_error_leaves_nothing_of_it(tmp_path: Path) -> None:
    result = await call(server_of(NotingHooks(tmp_path, AfterTool=WITHHOLDS)), "fail")
    assert texts(result) == ["secret"]


async def test_a_cancelled_tool_has_no_result(tmp_path: Path) -> None:
    hooks = NotingHooks(tmp_path, BeforeTool={}, AfterTool={})
    server = FastMCP("wait", middleware=[HooklineMiddleware(hooks.config)])
    started = asyncio.Event()

    @server.tool
    async def wait() -> str:
        started.set()
        await asyncio.Event().wait()
        return "never"

    task = asyncio.create_task(server.call_tool("wait"))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert hooks.names() == ["BeforeTool"]


@pytest.mark.parametrize("event", ["BeforeTool", "AfterTool"])
async def test_a_stop_is_an_error_with_the_reason(tmp_path: Path, event: str) -> None:
    hooks = NotingHooks(tmp_path, **{event: STOPS})
    result = await call(server_of(hooks), a=1)
    assert result.is_error
    assert texts(result) == ["enough"]
    assert result.structured_content is None


def only(*names: str) -> dict[str, Any]:
    chosen = {"mode": "ANY", "allowedFunctionNames": list(names)}
    return specific(toolConfig=chosen)


@MODES
async def test_only_selected_tools_are_listed_and_called(
    tmp_path: Path, mode: Any
) -> None:
    hooks = NotingHooks(tmp_path, BeforeToolSelection=only("add", "fail"))
    async with Client(server_of(hooks), mode=mode) as client:
        assert [tool.name for tool in await client.list_tools()] == ["add", "fail"]
        assert (await client.call_tool("add", {"a": 1})).data == 3
        with pytest.raises(ToolError, match="'whoami' is not allowed now"):
            await client.call_tool("whoami")
    seen = hooks.events[0]
    assert seen["llm_request"]["messages"] == []
    assert set(seen["available_tools"]) == {"add", "fail", "whoami", "picture", "slow"}


@MODES
async def test_a_client_that_never_listed_is_refused_too(
    tmp_path: Path, mode: Any
) -> None:
    hooks = NotingHooks(tmp_path, BeforeToolSelection=only("add"), BeforeTool={})
    async with Client(server_of(hooks), mode=mode) as client:
        with pytest.raises(ToolError, match="'fail' is not allowed now"):
            await client.call_tool("fail")
    assert "BeforeTool" not in hooks.names()


async def test_a_selection_holds_from_the_next_call_on(tmp_path: Path) -> None:
    """A client lists once; what hooks decide later holds all the same."""
    chosen = only("add", "fail")
    hooks = NotingHooks(tmp_path, BeforeToolSelection=lambda _: chosen)
    async with Client(server_of(hooks)) as client:
        await client.list_tools()
        await client.call_tool("add", {"a": 1})
        chosen = only("fail")
        with pytest.raises(ToolError, match="not allowed"):
            await client.call_tool("add", {"a": 1})


async def test_a_stop_at_the_selection_leaves_no_tools(tmp_path: Path) -> None:
    hooks = NotingHooks(tmp_path, BeforeToolSelection=STOPS)
    async with Client(server_of(hooks)) as client:
        assert await client.list_tools() == []
        with pytest.raises(ToolError, match="enough"):
            await client.call_tool("add", {"a": 1})


Elicit = Callable[..., Any]


def elicits(asked: list[str], answer: Any) -> Elicit:
    async def handler(message: str, kind: Any, params: Any, context: Any) -> Any:
        asked.append(message)
        return answer if isinstance(answer, ElicitResult) else kind(value=answer)

    return handler


@MODES
@pytest.mark.parametrize(
    ("answer", "runs"),
    [
        (True, True),
        (False, False),
        (ElicitResult(action="decline"), False),
        (ElicitResult(action="cancel"), False),
    ],
    ids=["yes", "no", "declined", "cancelled"],
)
async def test_a_question_goes_to_the_clients_user(
    tmp_path: Path, mode: Any, answer: Any, runs: bool
) -> None:
    asked: list[str] = []
    changed = {**ASKS, **specific(tool_input={"a": 7})}
    ran: list[dict[str, Any]] = []
    server = server_of(NotingHooks(tmp_path, BeforeTool=changed), ran)
    handler = elicits(asked, answer)
    async with Client(server, mode=mode, elicitation_handler=handler) as client:
        result = await client.call_tool("add", {"a": 1}, raise_on_error=False)
    assert asked == ['really?\n\nAllow add with {"a":7}?']
    assert ran == ([{"a": 7, "b": 2}] if runs else [])
    assert result.is_error is not runs
    if not runs:
        assert texts(result) == ["Declined by the user: really?"]


async def test_an_answer_counts_for_its_own_question_only(tmp_path: Path) -> None:
    """A yes to one input is none to another (protocol.md#several-hooks)."""
    ran: list[dict[str, Any]] = []
    server = server_of(NotingHooks(tmp_path, BeforeTool=ASKS), ran)
    keys: list[str] = []

    async def handler(message: str, kind: Any, params: Any, context: Any) -> Any:
        return kind(value=True)

    async with Client(server, elicitation_handler=handler) as client:
        first = await client.session.call_tool(
            "add", {"a": 1}, allow_input_required=True
        )
        assert isinstance(first, mcp_types.InputRequiredResult)
        keys += first.input_requests or {}
        yes = mcp_types.ElicitResult(action="accept", content={"value": True})
        other = await client.session.call_tool(
            "add", {"a": 2}, input_responses={keys[0]: yes}, allow_input_required=True
        )
    assert isinstance(other, mcp_types.CallToolResult)
    assert other.is_error
    assert ran == []


@pytest.mark.parametrize(("on_ask", "runs"), [("allow", True), ("block", False)])
async def test_without_elicitation_the_settings_decide(
    tmp_path: Path, on_ask: str, runs: bool
) -> None:
    hooks = NotingHooks(tmp_path, {"onAsk": on_ask}, BeforeTool=ASKS)
    result = await call(server_of(hooks), a=1)
    assert result.is_error is not runs


async def test_confirm_decides_where_it_is_given(tmp_path: Path) -> None:
    hooks = NotingHooks(tmp_path, BeforeTool=ASKS, Notification={})
    server = server_of(hooks, confirm=lambda asked: asked.tool_input["a"] == 1)
    assert (await call(server, a=1)).data == 3
    assert (await call(server, a=2)).is_error
    assert hooks.of("Notification")[0]["details"]["tool_name"] == "add"


async def test_sessions_are_those_of_mcp(tmp_path: Path) -> None:
    """Two clients with a handshake: two sessions, each stable."""
    hooks = NotingHooks(tmp_path, BeforeTool={})
    server = server_of(hooks)
    async with (
        Client(server, mode="legacy") as one,
        Client(server, mode="legacy") as two,
    ):
        ids = [
            (await client.call_tool("whoami")).data for client in (one, two, one, two)
        ]
    assert [event["session_id"] for event in hooks.events] == ids
    assert len(set(ids)) == 2


async def test_each_request_without_a_session_is_its_own(tmp_path: Path) -> None:
    hooks = NotingHooks(tmp_path, BeforeTool={}, AfterTool={})
    server = server_of(hooks)
    async with Client(server) as client:
        ids = [(await client.call_tool("whoami")).data for _ in range(2)]
    assert [event["session_id"] for event in hooks.of("BeforeTool")] == ids
    assert [event["session_id"] for event in hooks.of("AfterTool")] == ids


async def test_the_server_may_name_the_session(tmp_path: Path) -> None:
    hooks = NotingHooks(tmp_path, BeforeTool={})
    await call(server_of(hooks, session_id=lambda _: "user-7"), a=1)
    assert hooks.events[0]["session_id"] == "user-7"


async def test_a_call_outside_of_a_request_has_the_session_given(
    tmp_path: Path,
) -> None:
    hooks = NotingHooks(tmp_path, BeforeTool={})
    session = hooks.config.session("batch")
    server = FastMCP("shop", middleware=[HooklineMiddleware(session)])
    server.tool(len_of)
    await server.call_tool("len_of", {"text": "abc"})
    assert hooks.events[0]["session_id"] == "batch"


def len_of(text: str) -> int:
    return len(text)


async def test_parallel_calls_do_not_mix(tmp_path: Path) -> None:
    def doubled(event: Event) -> dict[str, Any]:
        return specific(tool_input={"b": event["tool_input"]["a"]})

    hooks = NotingHooks(tmp_path, BeforeTool=doubled)
    async with Client(server_of(hooks)) as client:
        calls = [client.call_tool("add", {"a": n}) for n in range(20)]
        results = await asyncio.gather(*calls)
    assert [result.data for result in results] == [2 * n for n in range(20)]


async def test_a_question_of_the_tool_is_not_its_result(tmp_path: Path) -> None:
    hooks = NotingHooks(tmp_path, BeforeTool={}, AfterTool={})
    server = FastMCP("ask", middleware=[HooklineMiddleware(hooks.config)])
    schema = {"type": "object", "properties": {"value": {"type": "string"}}}

    @server.tool
    def greet(context: Context) -> str | mcp_types.InputRequiredResult:
        answers = context.input_responses
        if answers is not None:
            answer = answers["name"]
            assert isinstance(answer, mcp_types.ElicitResult)
            return f"hello {(answer.content or {})['value']}"
        form = mcp_types.ElicitRequestFormParams(
            message="who?", requested_schema=schema
        )
        asked: mcp_types.InputRequests = {"name": mcp_types.ElicitRequest(params=form)}
        return mcp_types.InputRequiredResult(input_requests=asked)

    async with Client(server, elicitation_handler=elicits([], "Ann")) as client:
        result = await client.call_tool("greet")
    assert texts(result) == ["hello Ann"]
    assert hooks.names() == ["BeforeTool", "BeforeTool", "AfterTool"]


class Tasks(Middleware):
    """Answers with what is no result of a tool, as background tasks do."""

    async def on_call_tool(self, context: Any, call_next: Any) -> Any:
        return mcp_types.EmptyResult()


async def test_a_background_task_has_no_result_and_that_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    hooks = NotingHooks(tmp_path, AfterTool={})
    server = server_of(hooks)
    server.add_middleware(Tasks())
    with caplog.at_level(logging.WARNING, "hookline"):
        result: object = await server.call_tool("add", {"a": 1})
    assert isinstance(result, mcp_types.EmptyResult)
    assert "results of background tasks" in caplog.text
    assert hooks.events == []


@pytest.mark.parametrize("mount", [True, False], ids=["mounted", "proxied"])
async def test_servers_behind_a_hooked_one_are_covered(
    tmp_path: Path, mount: bool
) -> None:
    hooks = NotingHooks(
        tmp_path,
        BeforeTool=specific(tool_input={"text": "abcd"}),
        AfterTool=specific(additionalContext="counted"),
    )
    inner: FastMCP = FastMCP("inner")
    inner.tool(len_of)
    middleware = HooklineMiddleware(hooks.config)
    if mount:
        outer: FastMCP = FastMCP("outer", middleware=[middleware])
        outer.mount(inner, namespace="in")
    else:
        outer = create_proxy(inner, name="outer")
        outer.add_middleware(middleware)
    name = "in_len_of" if mount else "len_of"
    result = await call(outer, name, text="a")
    assert result.data == 4
    assert texts(result)[0] == "4"
    assert "counted" in texts(result)
    assert hooks.events[0]["mcp_context"] == {"server_name": "outer", "tool_name": name}


async def test_hooks_that_cannot_work_are_named_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server = server_of(NotingHooks(tmp_path, BeforeModel={}, SessionStart={}))
    with caplog.at_level(logging.WARNING, "hookline"):
        await call(server, a=1)
        await call(server, a=2)
    said = [r.getMessage() for r in caplog.records if "no effect" in r.getMessage()]
    assert [line.split()[0] for line in said] == ["BeforeModel", "SessionStart"]
