"""A restriction of tools holds for those that the service runs (issue 12.5)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from google.genai import types

from hookline.agent import (
    ChatSession,
    GenAIModel,
    OpenAIModel,
    ToolSpec,
    fire_before_model_hook,
    fire_before_tool_selection_hook,
    hooked,
)
from hookline.settings.model import ToolSelection
from hookline.testing.modelapi import ModelServer
from hookline.translators.genai import GenerateContentRequest

from .scenes import Hook, config_of, runs, specific
from .servers import genai_client, openai_model

RESTRICTIONS: dict[str, dict[str, Any]] = {
    "NONE": {"mode": "NONE"},
    "an empty list": {"allowedFunctionNames": []},
    "a list under AUTO": {"mode": "AUTO", "allowedFunctionNames": ["read_file"]},
    "a list under ANY": {"mode": "ANY", "allowedFunctionNames": ["read_file"]},
    "other names": {"mode": "ANY", "allowedFunctionNames": ["something"]},
    "two names": {"mode": "ANY", "allowedFunctionNames": ["read_file", "x"]},
}
HI: dict[str, Any] = {"role": "user", "content": "hi"}
FUNCTION = {"type": "function", "function": {"name": "read_file"}}
FLAT = {"type": "function", "name": "read_file"}
SCHEMA = {"name": "read_file", "input_schema": {"type": "object"}}
DECLARED = {"functionDeclarations": [{"name": "read_file"}]}
HOSTED_ITEMS: list[dict[str, Any]] = [
    {"type": "web_search"},
    {"type": "file_search", "vector_store_ids": ["v"]},
    {"type": "computer_use_preview"},
    {"type": "mcp", "server_label": "far", "server_url": "https://x"},
    {"type": "code_interpreter", "container": {"type": "auto"}},
    {"type": "image_generation"},
    {"type": "something_new", "name": "read_file"},
]
HOSTED_BLOCKS: list[dict[str, Any]] = [
    {"type": "web_search_20250305", "name": "web_search"},
    {"type": "code_execution_20250522", "name": "code_execution"},
    {"type": "mcp_toolset", "mcp_server_name": "far"},
    {"type": "something_new_20990101", "name": "something_new"},
]
HOSTED_FIELDS = ("googleSearch", "codeExecution", "urlContext", "googleMaps")
REQUESTS: dict[str, dict[str, Any]] = {
    "chat": {
        "messages": [HI],
        "tools": [FUNCTION],
        "web_search_options": {},
        "functions": [{"name": "write_file"}],
        "function_call": "auto",
    },
    "responses": {"input": "hi", "tools": [FLAT, *HOSTED_ITEMS]},
    "responses, hosted only": {"input": "hi", "tools": HOSTED_ITEMS},
    "anthropic": {
        "model": "claude-x",
        "messages": [HI],
        "tools": [SCHEMA, *HOSTED_BLOCKS],
        "mcp_servers": [{"name": "far", "url": "https://x"}],
    },
    "genai": {
        "contents": "hi",
        "config": {"tools": [DECLARED, *({name: {}} for name in HOSTED_FIELDS)]},
    },
    "genai, one tool": {
        "contents": "hi",
        "config": {"tools": [DECLARED | {name: {} for name in HOSTED_FIELDS}]},
    },
    "genai, snake case": {
        "contents": "hi",
        "config": {
            "tools": [
                {"function_declarations": [{"name": "read_file"}], "google_search": {}},
                {"mcp_servers": [{"name": "far"}]},
            ]
        },
    },
}
HOSTED_WORDS = (
    "search", "computer", "mcp", "code", "image", "something_new", "Context", "Maps",
    "write_file",
)  # fmt: skip


async def selected(tmp_path: Path, request: Any, hook: Hook, **config: Any) -> Any:
    hooks = {"BeforeToolSelection": hook}
    async with config_of(tmp_path, hooks, seen=False, **config) as made:
        return await fire_before_tool_selection_hook(made, request)


@pytest.mark.parametrize("kind", RESTRICTIONS)
@pytest.mark.parametrize("api", REQUESTS)
async def test_a_restriction_drops_tools_that_the_service_runs(
    tmp_path: Path, api: str, kind: str
) -> None:
    """protocol.md#merging and #callers."""
    request = REQUESTS[api]
    result = await selected(tmp_path, request, specific(toolConfig=RESTRICTIONS[kind]))
    left = result.modified_request
    for word in HOSTED_WORDS:
        assert word not in str(left), left
    assert ("read_file" in str(left)) == ("hosted only" not in api)
    assert ("read_file" in str(result.tools)) == ("hosted only" not in api)
    assert result.tools is not None


@pytest.mark.parametrize("kind", RESTRICTIONS)
@pytest.mark.parametrize("api", REQUESTS)
async def test_a_restriction_before_the_model_holds_like_any_other(
    tmp_path: Path, api: str, kind: str
) -> None:
    """protocol.md#callers: also where the SDK cannot carry the names."""
    hook = specific(llm_request={"toolConfig": RESTRICTIONS[kind]})
    async with config_of(tmp_path, {"BeforeModel": hook}, seen=False) as config:
        before = await fire_before_model_hook(config, REQUESTS[api])
    selection = specific(toolConfig=RESTRICTIONS[kind])
    expected = await selected(tmp_path, REQUESTS[api], selection)
    assert before.modified_request == expected.modified_request
    assert before.allowed_names == expected.allowed_names


async def test_a_choice_of_tools_that_is_returned_as_shown_restricts_nothing(
    tmp_path: Path,
) -> None:
    """A hook that changes messages may return the whole request."""
    chosen = {**REQUESTS["anthropic"], "tool_choice": {"type": "none"}}
    change = {"messages": [HI], "toolConfig": {"mode": "NONE"}}
    hook = specific(llm_request=change)
    async with config_of(tmp_path, {"BeforeModel": hook}, seen=False) as config:
        before = await fire_before_model_hook(config, chosen)
    assert before.modified_request == chosen
    assert before.allowed_names is None


async def test_both_events_restrict_the_calls_of_a_chat(tmp_path: Path) -> None:
    """The scheduler refuses a call that one of them does not allow."""
    hooks = {
        "BeforeToolSelection": specific(
            toolConfig={"allowedFunctionNames": ["read_file", "x"]}
        ),
        "BeforeModel": specific(
            llm_request={"toolConfig": {"allowedFunctionNames": ["read_file", "y"]}}
        ),
    }
    specs = [ToolSpec(name=name) for name in ("read_file", "x", "y")]
    with ModelServer(["a"]) as server:
        async with config_of(tmp_path, hooks) as config, openai_model(server) as model:
            reply = await ChatSession(config, model, tools=specs).send("hi")
    assert reply.allowed_names == frozenset({"read_file"})


@pytest.mark.parametrize("api", REQUESTS)
async def test_a_mode_alone_drops_nothing(tmp_path: Path, api: str) -> None:
    request = REQUESTS[api]
    result = await selected(tmp_path, request, specific(toolConfig={"mode": "AUTO"}))
    left = result.modified_request
    tools = left.get("tools") or left["config"]["tools"]
    assert tools == (request.get("tools") or request["config"]["tools"])
    assert result.allowed_names is None


async def test_a_failed_guard_leaves_no_tool_of_any_kind(tmp_path: Path) -> None:
    """The closed form is NONE, also where the request is unreadable.

    protocol.md#results
    """
    hook = runs("exit 1", onError="block")
    for request in (
        REQUESTS["responses"],
        {"messages": [object()], "tools": [FUNCTION, {"type": "web_search"}]},
    ):
        result = await selected(tmp_path, request, hook, translator="openai")
        assert result.allowed_names == frozenset()
        assert "search" not in str(result.modified_request)


async def test_a_server_tool_that_a_list_names_stays(tmp_path: Path) -> None:
    """Anthropic's have names, so a hook can allow them."""
    names = ["read_file", "web_search"]
    hook = specific(toolConfig={"mode": "AUTO", "allowedFunctionNames": names})
    result = await selected(tmp_path, REQUESTS["anthropic"], hook)
    tools = result.modified_request["tools"]
    assert [tool["name"] for tool in tools] == ["read_file", "web_search"]


async def test_objects_of_the_sdk_are_restricted_like_dicts(tmp_path: Path) -> None:
    declared = types.FunctionDeclaration(name="read_file")
    both = types.Tool(
        function_declarations=[declared], google_search=types.GoogleSearch()
    )
    search = types.Tool(code_execution=types.ToolCodeExecution())
    config = types.GenerateContentConfig(tools=[both, search])
    request = GenerateContentRequest("m", "hi", config)
    hook = specific(toolConfig={"mode": "NONE"})
    result = await selected(tmp_path, request, hook)
    tools = result.modified_request.config.tools
    assert tools == [types.Tool(function_declarations=[declared])]
    assert both.google_search is not None


@pytest.mark.parametrize("selection", list(ToolSelection))
@pytest.mark.parametrize("mode", ["AUTO", "ANY", None])
async def test_an_empty_list_allows_no_tool(
    tmp_path: Path, mode: str | None, selection: ToolSelection
) -> None:
    """A list restricts even when it is empty; union adds nothing to it.

    protocol.md#merging
    """
    hook = specific(toolConfig={"mode": mode, "allowedFunctionNames": []})
    options = {"toolSelection": selection.value}
    result = await selected(tmp_path, REQUESTS["chat"], hook, hooks_config=options)
    assert result.allowed_names == frozenset()
    assert result.modified_request["tool_choice"] == "none"


async def test_what_the_service_receives_has_no_tool_of_its_own(tmp_path: Path) -> None:
    hook = specific(toolConfig={"allowedFunctionNames": ["read_file"]})
    search: Any = {"tools": [{"googleSearch": {}}, {"codeExecution": {}}]}
    spec = ToolSpec(name="read_file")
    with ModelServer(["a", "b", "c"]) as server:
        client = genai_client(server)
        async with config_of(tmp_path, {"BeforeToolSelection": hook}) as config:
            model = GenAIModel(client, "m", search)
            await ChatSession(config, model, tools=[spec]).send("hi")
            wrapped = hooked(client, config)
            wrapped.models.generate_content(model="m", contents="hi", config=search)
            async with openai_model(server) as plain:
                assert isinstance(plain, OpenAIModel)
                plain._options["web_search_options"] = {}
                await ChatSession(config, plain, tools=[spec]).send("hi")
        await client.aio.aclose()
        client.close()
    assert len(server.requests) == 3
    for asked in server.requests:
        assert "earch" not in str(asked.body)
        assert "xecution" not in str(asked.body)
