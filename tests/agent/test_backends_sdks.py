"""Chat sessions on the SDKs' real clients, against a server on this machine."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from anthropic.types import Message
from google.genai.types import GenerateContentResponse
from openai.types.chat import ChatCompletion

from hookline.agent import Agent, ChatSession, Ending
from hookline.testing.modelapi import Answer, ModelServer, ReceivedRequest

from .scenes import config_of, names, runs, says, specific
from .servers import MODELS, SDKS

TYPES: dict[str, type] = {
    "genai": GenerateContentResponse,
    "openai": ChatCompletion,
    "anthropic": Message,
}

pytestmark = pytest.mark.parametrize("sdk", SDKS)


def read_file(path: str) -> str:
    """Read a file."""
    return f"text of {path}"


def write_file(path: str, content: str) -> str:
    """Write a file."""
    return f"wrote {len(content)} to {path}"


def temperature_in(asked: ReceivedRequest) -> Any:
    config = asked.body.get("generationConfig", asked.body)
    return config["temperature"]


def texts_in(asked: ReceivedRequest) -> str:
    return str(asked.body.get("contents") or asked.body.get("messages"))


def tools_in(asked: ReceivedRequest) -> set[str]:
    """The tools that a request leaves the model, in each service's own way."""
    body = asked.body
    offered = [
        (tool.get("function") or tool)["name"]
        for group in body.get("tools", [])
        for tool in group.get("functionDeclarations", [group])
    ]
    choice = body.get("tool_choice")
    if isinstance(choice, dict) and choice["type"] == "allowed_tools":
        named = choice["allowed_tools"]["tools"]
        return {tool["function"]["name"] for tool in named}
    if isinstance(choice, dict) and choice["type"] in ("function", "tool"):
        return {(choice.get("function") or choice)["name"]}
    calling = body.get("toolConfig", {}).get("functionCallingConfig", {})
    if "allowedFunctionNames" in calling:
        return set(calling["allowedFunctionNames"])
    return set() if choice in ("none", {"type": "none"}) else set(offered)


async def test_a_blocked_call_makes_no_http_request(tmp_path: Path, sdk: str) -> None:
    config = config_of(tmp_path, {"BeforeModel": runs("echo no >&2; exit 2")})
    with ModelServer(["never"]) as server:
        async with MODELS[sdk](server) as model, config:
            reply = await ChatSession(config, model).send("hi")
        assert server.requests == []
    assert (reply.blocked, reply.reason, reply.text) == (True, "no", "")
    assert isinstance(reply.response, TYPES[sdk])


async def test_a_changed_temperature_is_what_the_server_receives(
    tmp_path: Path, sdk: str
) -> None:
    hook = specific(llm_request={"config": {"temperature": 0.125}})
    with ModelServer(["one", "two"]) as server:
        async with MODELS[sdk](server) as model:
            async with config_of(tmp_path, {}) as config:
                await ChatSession(config, model).send("hi")
            async with config_of(tmp_path, {"BeforeModel": hook}) as config:
                reply = await ChatSession(config, model).send("hi")
        assert [temperature_in(asked) for asked in server.requests] == [0.5, 0.125]
    assert reply.text == "two"


async def test_a_synthetic_response_reaches_the_caller_as_the_sdks_type(
    tmp_path: Path, sdk: str
) -> None:
    hook = says(
        {"decision": "block", "hookSpecificOutput": {"llm_response": {"text": "no!"}}}
    )
    with ModelServer() as server:
        config = config_of(tmp_path, {"BeforeModel": hook})
        async with MODELS[sdk](server) as model, config:
            reply = await ChatSession(config, model).send("hi")
        assert server.requests == []
    assert isinstance(reply.response, TYPES[sdk])
    assert (reply.text, model.text_of(reply.response)) == ("no!", "no!")


@pytest.mark.parametrize("mode", ["AUTO", "ANY"])
async def test_a_restricted_tool_list_is_what_the_server_receives(
    tmp_path: Path, sdk: str, mode: str
) -> None:
    hook = specific(toolConfig={"mode": mode, "allowedFunctionNames": ["read_file"]})
    config = config_of(tmp_path, {"BeforeToolSelection": hook})
    with ModelServer(["ok"]) as server:
        async with MODELS[sdk](server) as model, config:
            agent = Agent(config, model, [read_file, write_file])
            await agent.run("look")
        assert tools_in(server.requests[0]) == {"read_file"}


async def test_no_tool_is_offered_when_a_hook_sets_mode_none(
    tmp_path: Path, sdk: str
) -> None:
    hook = specific(toolConfig={"mode": "NONE"})
    config = config_of(tmp_path, {"BeforeToolSelection": hook})
    with ModelServer([Answer("", (("read_file", {"path": "x"}),)), "ok"]) as server:
        async with MODELS[sdk](server) as model, config:
            agent = Agent(config, model, [read_file])
            result = await agent.run("look")
        body = server.requests[0].body
        mode = body.get("tool_choice") or body["toolConfig"]["functionCallingConfig"]
        assert mode in ("none", {"type": "none"}, {"mode": "NONE"})
        assert "not allowed" in texts_in(server.requests[1])
    assert result.text == "ok"


async def test_a_tool_turn_goes_back_in_the_services_own_format(
    tmp_path: Path, sdk: str
) -> None:
    calls = (
        ("read_file", {"path": "a.txt"}),
        ("write_file", {"path": "b", "content": "ü"}),
    )
    with ModelServer([Answer("let me see", calls), "all done"]) as server:
        async with MODELS[sdk](server) as model, config_of(tmp_path, {}) as config:
            agent = Agent(config, model, [read_file, write_file], system="be good")
            result = await agent.run("go")
        assert len(server.requests) == 2
        said = texts_in(server.requests[1])
        assert "be good" in str(server.requests[1].body)
    assert (result.ending, result.text) == (Ending.ANSWERED, "all done")
    assert "let me see" in said
    assert said.index("text of a.txt") < said.index("wrote 1 to b")


async def test_a_changed_answer_is_what_history_sends_back(
    tmp_path: Path, sdk: str
) -> None:
    hook = specific(llm_response={"text": "call [phone]"})
    config = config_of(tmp_path, {"AfterModel": hook})
    with ModelServer(["call 123", "bye"]) as server:
        async with MODELS[sdk](server) as model, config:
            chat = ChatSession(config, model)
            reply = await chat.send("number?")
            await chat.send("thanks")
        assert "123" not in texts_in(server.requests[1])
        assert "call [phone]" in texts_in(server.requests[1])
    assert isinstance(reply.response, TYPES[sdk])
    assert names(tmp_path) == ["AfterModel"] * 2


async def test_an_aborted_stream_fires_no_after_model(tmp_path: Path, sdk: str) -> None:
    config = config_of(tmp_path, {"AfterModel": runs("true")})
    with ModelServer(["one two three"]) as server:
        server.gate = threading.Event()
        async with MODELS[sdk](server) as model, config:
            chat = ChatSession(config, model, stream_mode="pass")
            pieces = chat.stream("hi")
            await anext(pieces)
            await pieces.aclose()  # type: ignore[attr-defined]  # a generator
    assert (names(tmp_path), chat.history) == ([], [])


async def test_messages_of_hooks_reach_the_server(tmp_path: Path, sdk: str) -> None:
    """Seed 004 section 6.2: before in this request, after in the next."""
    hooks = {
        "BeforeModel": says({"systemMessage": "word before"}),
        "AfterModel": says({"systemMessage": "word after"}),
    }
    config = config_of(tmp_path, hooks)
    with ModelServer(["one", "two"]) as server:
        async with MODELS[sdk](server) as model, config:
            chat = ChatSession(config, model)
            await chat.send("hi")
            await chat.send("ho")
        first, second = (str(asked.body) for asked in server.requests)
    assert "word before" in first
    assert "word after" not in first
    assert "word after" in second
