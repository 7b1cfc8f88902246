"""A chat session through real hook processes, with a model that follows a script."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from hookline import Config, Settings
from hookline.agent import (
    ChatChunk,
    ChatReply,
    ChatSession,
    Role,
    ScriptedModel,
    ScriptedReply,
    ToolSpec,
)
from hookline.agent.conversation import tools_turn

from .scenes import config_of, events, names, runs, says, specific

REDACTED = {"text": "call [phone]"}


def shown(pieces: list[ChatChunk | ChatReply]) -> list[str]:
    return [piece.text for piece in pieces if isinstance(piece, ChatChunk)]


async def stream(chat: ChatSession, text: str) -> list[ChatChunk | ChatReply]:
    return [piece async for piece in chat.stream(text)]


async def test_hooks_fire_in_order_around_the_model(tmp_path: Path) -> None:
    """Seed 004 section 6.2: tool selection, before, the model, after."""
    nothing = runs("true")
    config = config_of(
        tmp_path,
        dict.fromkeys(["AfterModel", "BeforeModel", "BeforeToolSelection"], nothing),
    )
    asked: list[list[str]] = []

    def answer(_: dict[str, Any]) -> str:
        asked.append(names(tmp_path))
        return "hello there"

    async with config:
        reply = await ChatSession(config, ScriptedModel([answer])).send("hi")
    assert asked == [["BeforeToolSelection", "BeforeModel"]]
    assert names(tmp_path)[2:] == ["AfterModel"]
    assert events(tmp_path)[2]["llm_response"]["text"] == "hello there"
    assert reply.text == "hello there"


async def test_before_model_block_opens_no_stream_and_gives_an_empty_response(
    tmp_path: Path,
) -> None:
    config = config_of(tmp_path, {"BeforeModel": runs("echo no >&2; exit 2")})
    model = ScriptedModel(["never"])
    async with config:
        chat = ChatSession(config, model)
        reply = await chat.send("my key is x")
    assert (reply.blocked, reply.reason, reply.text) == (True, "no", "")
    assert reply.response["text"] == ""
    assert (model.requests, chat.history) == ([], [])
    assert not reply.should_stop


async def test_before_model_synthetic_response_takes_the_models_place(
    tmp_path: Path,
) -> None:
    hook = says(
        {"decision": "block", "hookSpecificOutput": {"llm_response": {"text": "no!"}}}
    )
    model = ScriptedModel(["never"])
    async with config_of(tmp_path, {"BeforeModel": hook}) as config:
        chat = ChatSession(config, model)
        pieces = await stream(chat, "hi")
    assert shown(pieces) == ["no!"]
    assert model.requests == []
    assert [turn.text for turn in chat.history] == ["hi", "no!"]


@pytest.mark.parametrize("event", ["BeforeModel", "BeforeToolSelection"])
async def test_a_stop_before_the_model_opens_no_stream(
    tmp_path: Path, event: str
) -> None:
    hook = says({"continue": False, "stopReason": "enough"})
    model = ScriptedModel(["never"])
    async with config_of(tmp_path, {event: hook}) as config:
        reply = await ChatSession(config, model).send("hi")
    assert (reply.should_stop, reply.stop_reason) == (True, "enough")
    assert model.requests == []


async def test_before_model_change_context_and_message_reach_the_model(
    tmp_path: Path,
) -> None:
    """Change the request, additional context as an appended message.

    protocol.md#events
    """
    hook = says(
        {
            "systemMessage": "be brief",
            "hookSpecificOutput": {
                "additionalContext": "it is <late>",
                "llm_request": {"config": {"temperature": 0.1}},
            },
        }
    )
    model = ScriptedModel(["ok"])
    async with config_of(tmp_path, {"BeforeModel": hook}) as config:
        chat = ChatSession(config, model)
        await chat.send("hi")
    [request] = model.requests
    assert request["config"] == {"temperature": 0.1}
    assert request["messages"] == [
        {"role": "user", "content": "hi"},
        {"role": "user", "content": "it is &lt;late&gt;"},
        {"role": "system", "content": "be brief"},
    ]
    assert [turn.text for turn in chat.history] == ["hi", "ok"]


async def test_after_model_change_is_what_is_shown_and_what_history_keeps(
    tmp_path: Path,
) -> None:
    config = config_of(tmp_path, {"AfterModel": specific(llm_response=REDACTED)})
    model = ScriptedModel(["call 123 456", "yes"])
    async with config:
        chat = ChatSession(config, model)
        pieces = await stream(chat, "number?")
        await chat.send("thanks")
    assert shown(pieces) == ["call [phone]"]
    assert chat.history[1].text == "call [phone]"
    assert "123" not in str(model.requests[1]["messages"])
    assert names(tmp_path).count("AfterModel") == 2


async def test_after_model_leaves_chunks_as_they_were_when_it_changes_nothing(
    tmp_path: Path,
) -> None:
    config = config_of(tmp_path, {"AfterModel": runs("true")})
    async with config:
        pieces = await stream(ChatSession(config, ScriptedModel(["one two"])), "hi")
    assert shown(pieces) == ["one ", "two", ""]


async def test_after_model_suppression_shows_nothing_and_keeps_the_answer(
    tmp_path: Path,
) -> None:
    config = config_of(tmp_path, {"AfterModel": says({"suppressOutput": True})})
    async with config:
        chat = ChatSession(config, ScriptedModel(["secret plan"]))
        pieces = await stream(chat, "hi")
    assert shown(pieces) == []
    reply = pieces[-1]
    assert isinstance(reply, ChatReply)
    assert (reply.suppress_display, reply.text) == (True, "secret plan")
    assert chat.history[1].text == "secret plan"


async def test_after_model_stop_ends_with_the_answer(tmp_path: Path) -> None:
    hook = says({"continue": False, "stopReason": "enough"})
    async with config_of(tmp_path, {"AfterModel": hook}) as config:
        reply = await ChatSession(config, ScriptedModel(["said"])).send("hi")
    assert (reply.should_stop, reply.stop_reason, reply.text) == (
        True,
        "enough",
        "said",
    )


async def test_after_model_block_does_nothing(tmp_path: Path) -> None:
    """protocol.md#events: it cannot block."""
    async with config_of(tmp_path, {"AfterModel": runs("exit 2")}) as config:
        reply = await ChatSession(config, ScriptedModel(["said"])).send("hi")
    assert (reply.blocked, reply.text) == (False, "said")


async def test_after_model_message_is_kept_for_the_next_request(tmp_path: Path) -> None:
    """Seed 004 section 6.2; answers of tools still come right after their calls."""
    model = ScriptedModel([ScriptedReply("", (("t", {}),)), "done"])
    hook = runs("cat >/dev/null; echo mind the gap")
    async with config_of(tmp_path, {"AfterModel": hook}) as config:
        chat = ChatSession(config, model, tools=[ToolSpec(name="t")])
        await chat.send("hi")
        await chat.send(tools_turn([]))
    assert [turn.role for turn in chat.history] == [
        Role.USER,
        Role.MODEL,
        Role.TOOLS,
        Role.SYSTEM,
        Role.MODEL,
    ]
    assert "[System] mind the gap" in str(model.requests[1]["messages"])
    assert "mind the gap" not in str(model.requests[0]["messages"])


@pytest.mark.parametrize(
    ("tool_config", "allowed"),
    [
        ({"mode": "AUTO", "allowedFunctionNames": ["a"]}, {"a"}),
        ({"mode": "ANY", "allowedFunctionNames": ["a", "b"]}, {"a", "b"}),
        ({"mode": "NONE"}, set()),
        ({"mode": "AUTO", "allowedFunctionNames": []}, set()),
        ({"mode": "AUTO"}, None),
    ],
)
async def test_tool_selection_restricts_the_request_and_the_calls(
    tmp_path: Path, tool_config: dict[str, Any], allowed: set[str] | None
) -> None:
    model = ScriptedModel(["ok"])
    hook = specific(toolConfig=tool_config)
    specs = [ToolSpec(name="a"), ToolSpec(name="b")]
    async with config_of(tmp_path, {"BeforeToolSelection": hook}) as config:
        reply = await ChatSession(config, model, tools=specs).send("hi")
    assert reply.allowed_names == allowed
    mode = "NONE" if allowed == set() else tool_config["mode"]
    assert model.requests[0]["toolConfig"]["mode"] == mode


async def test_tool_selection_cannot_block_or_change_input(tmp_path: Path) -> None:
    """protocol.md#events."""
    hook = says({"decision": "block", "hookSpecificOutput": {"llm_request": {}}})
    model = ScriptedModel(["ok"])
    async with config_of(tmp_path, {"BeforeToolSelection": hook}) as config:
        reply = await ChatSession(config, model).send("hi")
    assert (reply.blocked, reply.text) == (False, "ok")


async def test_chunks_are_held_back_until_after_model_has_run(
    tmp_path: Path,
) -> None:
    """protocol.md#callers, stream_mode="buffer"."""
    async with config_of(tmp_path, {"AfterModel": runs("true")}) as config:
        chat = ChatSession(config, ScriptedModel(["one two"]))
        async for _ in chat.stream("hi"):
            assert names(tmp_path) == ["AfterModel"]


async def test_chunks_pass_at_once_when_no_after_model_hook_exists(
    tmp_path: Path,
) -> None:
    await _first_chunk_comes_before_the_last(Config("s", tmp_path, Settings()))


async def test_chunks_pass_at_once_in_mode_pass_with_one_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Seed 004 section 11.1: what is shown already cannot be taken back."""
    config = config_of(tmp_path, {"AfterModel": specific(llm_response=REDACTED)})
    with caplog.at_level(logging.WARNING, "hookline"):
        chat = await _first_chunk_comes_before_the_last(config, stream_mode="pass")
        async with config:
            await chat.send("again")
    said = [r for r in caplog.records if "stream_mode 'pass'" in r.getMessage()]
    assert len(said) == 1
    assert chat.history[1].text == "call [phone]"


class SteppedModel(ScriptedModel):
    """Notes how far its stream has been read."""

    produced = 0

    async def stream(self, request: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
        async for chunk in super().stream(request):
            self.produced += 1
            yield chunk


async def _first_chunk_comes_before_the_last(
    config: Config, **more: Any
) -> ChatSession:
    model = SteppedModel(["one two three", "more"])
    async with config:
        chat = ChatSession(config, model, **more)
        produced = [model.produced async for _ in chat.stream("hi")]
    assert produced[:3] == [1, 2, 3]
    return chat


async def test_an_aborted_stream_fires_no_after_model_and_keeps_no_history(
    tmp_path: Path,
) -> None:
    """Seed 004 section 11, protocol.md#callers: never for an aborted one."""
    config = config_of(tmp_path, {"AfterModel": runs("true")})
    async with config:
        chat = ChatSession(config, ScriptedModel(["one two"]), stream_mode="pass")
        pieces = chat.stream("hi")
        await anext(pieces)
        await pieces.aclose()  # type: ignore[attr-defined]  # it is a generator
    assert names(tmp_path) == []
    assert chat.history == []


async def test_a_failing_stream_is_the_callers_to_know_and_fires_no_after_model(
    tmp_path: Path,
) -> None:
    def fail(_: dict[str, Any]) -> str:
        raise ConnectionError("gone")

    config = config_of(tmp_path, {"AfterModel": runs("true")})
    async with config:
        chat = ChatSession(config, ScriptedModel([fail]))
        with pytest.raises(ConnectionError):
            await chat.send("hi")
    assert (names(tmp_path), chat.history) == ([], [])
