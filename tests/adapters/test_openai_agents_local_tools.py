"""Tools of other kinds that run in this process: shell, patches, custom tools.

Issue 14 adapters.
"""

from __future__ import annotations

from typing import Any

import pytest
from agents import ApplyPatchTool, CustomTool, LocalShellTool, ShellTool
from agents.editor import ApplyPatchOperation
from openai.types.responses import (
    ResponseApplyPatchToolCall,
    ResponseCustomToolCall,
    ResponseFunctionShellToolCall,
)
from openai.types.responses.response_output_item import LocalShellCall

from .openai_agents_lab import Lab, run, say, sent, specific

BLOCK = {"decision": "deny", "reason": "not now"}
ACTION = {"command": ["rm"], "env": {}, "type": "exec"}
PATCH = {"type": "create_file", "path": "a.md", "diff": "+a"}
CALLS = {
    "shell": ResponseFunctionShellToolCall.model_validate(
        {
            "id": "1",
            "call_id": "1",
            "type": "shell_call",
            "status": "completed",
            "action": {"commands": ["rm"]},
        }
    ),
    "local_shell": LocalShellCall.model_validate(
        {
            "id": "1",
            "call_id": "1",
            "type": "local_shell_call",
            "status": "completed",
            "action": ACTION,
        }
    ),
    "script": ResponseCustomToolCall.model_validate(
        {"call_id": "1", "type": "custom_tool_call", "name": "script", "input": "rm"}
    ),
    "apply_patch": ResponseApplyPatchToolCall.model_validate(
        {
            "id": "1",
            "call_id": "1",
            "type": "apply_patch_call",
            "status": "completed",
            "operation": PATCH,
        }
    ),
}
INPUTS = {
    "shell": ({"commands": ["rm"]}, {"commands": ["ls"]}, ["ls"]),
    "local_shell": ({"command": ["rm"]}, {"command": ["ls"]}, ["ls"]),
    "script": ({"input": "rm"}, {"input": "ls"}, "ls"),
    "apply_patch": (PATCH, {**PATCH, "path": "b.md"}, "b.md"),
}


class Editor:
    """Writes down what it is asked for."""

    def __init__(self, ran: list[Any]) -> None:
        self.ran = ran

    def create_file(self, operation: ApplyPatchOperation) -> str:
        self.ran.append(operation.path)
        return "done"

    update_file = delete_file = create_file


def tools(ran: list[Any]) -> dict[str, Any]:
    def shell(request: Any) -> str:
        ran.append(request.data.action.commands)
        return "done"

    def local_shell(request: Any) -> str:
        ran.append(request.data.action.command)
        return "done"

    async def script(_ctx: Any, text: str) -> str:
        ran.append(text)
        return "done"

    return {
        "shell": ShellTool(executor=shell),
        "local_shell": LocalShellTool(executor=local_shell),
        "script": CustomTool("script", "Run it.", script),
        "apply_patch": ApplyPatchTool(editor=Editor(ran)),
    }


@pytest.mark.parametrize("name", CALLS)
def test_a_local_tool_is_blocked(name: str) -> None:
    lab, ran = Lab(), list[Any]()
    lab.on("BeforeTool", BLOCK)
    agent, model = lab.agent([[CALLS[name]], [say("ok")]], tools=[tools(ran)[name]])
    assert run(lab, agent).final_output == "ok"
    assert ran == []
    assert lab.of("BeforeTool")[0]["tool_name"] == name
    assert lab.of("BeforeTool")[0]["tool_input"] == INPUTS[name][0]
    assert "not now" in sent(model)


@pytest.mark.parametrize("name", CALLS)
def test_a_local_tool_runs_with_the_changed_input_and_its_result_is_seen(
    name: str,
) -> None:
    lab, ran = Lab(), list[Any]()
    lab.on("BeforeTool", specific(tool_input=INPUTS[name][1]))
    lab.on("AfterTool", specific(additionalContext="mind this"))
    agent, model = lab.agent([[CALLS[name]], [say("ok")]], tools=[tools(ran)[name]])
    run(lab, agent)
    assert ran == [INPUTS[name][2]]
    assert lab.of("AfterTool")[0]["tool_response"]["llmContent"] == "done"
    assert "mind this" in sent(model)
