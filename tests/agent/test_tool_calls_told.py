"""What callers carry to the model and to a person.

protocol.md#events, #callers, issue 12
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from google.genai import types

from hookline.agent import (
    Confirmation,
    ToolCall,
    ToolScheduler,
    execute_tool_with_hooks,
    hooked,
    hooked_tool,
)
from hookline.testing.modelapi import Answer, ModelServer

from .scenes import Hook, config_of, says, specific, told
from .servers import genai_client

CALLERS = ("execute", "plain tool", "async tool", "scheduler", "client")


async def call(folder: Path, caller: str, hooks: dict[str, Hook]) -> str:
    """What the model gets of a call of ``write_file``, by each of the callers."""
    config = config_of(folder, hooks, seen=False)

    def write_file(path: str) -> str:
        """Write a file."""
        return f"wrote {path}"

    async def write_async(path: str) -> str:
        return write_file(path)

    async with config:
        if caller == "execute":
            result = await execute_tool_with_hooks(
                config, "write_file", {"path": "a"}, lambda given: write_file(**given)
            )
            return result.text
        if caller == "plain tool":
            return hooked_tool(config)(write_file)("a")
        if caller == "async tool":
            return await hooked_tool(config, name="write_file")(write_async)("a")
        if caller == "scheduler":
            tool_call = ToolCall("1", "write_file", {"path": "a"})
            batch = await ToolScheduler(config, [write_file]).run([tool_call])
            return batch.answers[0].result.text
        asks = Answer("", (("write_file", {"path": "a"}),))
        with ModelServer([asks, "done"]) as server:
            client = genai_client(server)
            settings = types.GenerateContentConfig(tools=[write_file])
            hooked(client, config).models.generate_content(
                model="m", contents="go", config=settings
            )
            client.close()
        answer: Any = server.requests[1].body["contents"][-1]["parts"][0]
        return str(answer["functionResponse"]["response"]["result"])


@pytest.mark.parametrize("caller", CALLERS)
async def test_context_of_a_before_hook_reaches_the_model_with_the_result(
    tmp_path: Path, caller: str
) -> None:
    hooks = {
        "BeforeTool": specific(additionalContext="see <docs>"),
        "AfterTool": specific(additionalContext="and this"),
    }
    text = await call(tmp_path, caller, hooks)
    assert text == "wrote a\n\nsee &lt;docs&gt;\n\nand this"


async def test_context_beside_an_empty_result_is_for_the_model_only(
    tmp_path: Path,
) -> None:
    hook = specific(additionalContext="note")
    async with config_of(tmp_path, {"BeforeTool": hook}, seen=False) as config:
        result = await execute_tool_with_hooks(config, "t", {}, lambda _: None)
    assert (result.text, result.display) == ("note", "")


@pytest.mark.parametrize("caller", CALLERS)
async def test_context_of_a_before_hook_reaches_the_model_with_the_refusal(
    tmp_path: Path, caller: str
) -> None:
    output = {"additionalContext": "use the api"}
    hook = says({"decision": "deny", "reason": "no", "hookSpecificOutput": output})
    text = await call(tmp_path, caller, {"BeforeTool": hook})
    assert text == "no\n\nuse the api"


@pytest.mark.parametrize("caller", CALLERS)
async def test_the_model_is_told_which_parameters_hooks_changed(
    tmp_path: Path, caller: str
) -> None:
    hook = specific(tool_input={"path": "src/a"}, additionalContext="note")
    text = await call(tmp_path, caller, {"BeforeTool": hook})
    assert text == told("wrote src/a\n\nnote", "path")


async def test_the_model_is_told_of_parameters_that_hooks_removed(
    tmp_path: Path,
) -> None:
    output = {"tool_input": {"path": "a"}, "replacesToolInput": True}
    config = config_of(tmp_path, {"BeforeTool": specific(**output)})
    async with config:
        result = await execute_tool_with_hooks(
            config, "t", {"path": "a", "force": True}, json.dumps
        )
    assert result.text == told('{"path": "a"}', "force")


async def test_an_unchanged_input_needs_no_note(tmp_path: Path) -> None:
    text = await call(
        tmp_path, "execute", {"BeforeTool": specific(tool_input={"path": "a"})}
    )
    assert text == "wrote a"


@pytest.mark.parametrize(
    ("output", "question"),
    [
        ({"decision": "ask", "reason": "sure?", "systemMessage": "hm"}, "sure?"),
        ({"decision": "ask", "systemMessage": "really delete?"}, "really delete?"),
        ({"decision": "ask", "reason": " ", "systemMessage": "really?"}, "really?"),
        (
            {
                "hookSpecificOutput": {"permissionDecision": "ask"},
                "systemMessage": "really?",
            },
            "really?",
        ),
        ({"decision": "ask"}, "a hook asks for a person's decision"),
    ],
    ids=["reason", "message", "blank reason", "permission", "nothing"],
)
async def test_the_question_is_the_reason_or_else_the_message(
    tmp_path: Path, output: dict[str, Any], question: str
) -> None:
    config = config_of(tmp_path, {"BeforeTool": says(output)}, seen=False)
    asked: list[Confirmation] = []

    def confirm(one: Confirmation) -> bool:
        asked.append(one)
        return False

    async with config:
        result = await execute_tool_with_hooks(config, "t", {}, print, confirm=confirm)
        unasked = await execute_tool_with_hooks(config, "t", {}, print)
    assert [one.reason for one in asked] == [question]
    assert f"Declined by the user: {question}" in result.text
    assert f"{question} (confirmation is not available)" in unasked.text


async def test_a_list_stays_as_it_is_and_the_notes_follow_its_text(
    tmp_path: Path,
) -> None:
    config = config_of(tmp_path, {"BeforeTool": specific(additionalContext="note")})
    async with config:
        result = await execute_tool_with_hooks(config, "t", {}, lambda _: ["a"])
    assert result.llm_content == ["a"]
    assert result.text == '["a"]\n\nnote'
