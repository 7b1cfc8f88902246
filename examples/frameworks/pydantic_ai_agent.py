"""A pydantic-ai agent with hooks, as docs/how-to/frameworks/pydantic-ai.md shows it.

Runs offline, with pydantic-ai's own FunctionModel:

python examples/frameworks/pydantic_ai_agent.py
"""

from __future__ import annotations

import asyncio
from typing import Any

from pydantic_ai import (
    Agent,
    DeferredToolRequests,
    DeferredToolResults,
    ModelMessage,
    ModelResponse,
    TextPart,
    ToolCallPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel

from hookline import Config, HookSystem, Settings
from hookline.adapters.pydantic_ai import HooklineCapability

files: dict[str, str] = {}


def write_file(path: str, text: str) -> str:
    """Write a file."""
    files[path] = text
    return f"wrote {path}"


def model(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
    """The fake model: three files, then an answer, then a better one."""
    if len(messages) == 1:
        paths = (".env", "notes.md", "deploy.sh")
        given = [{"path": path, "text": "KEY=1"} for path in paths]
        return ModelResponse([ToolCallPart("write_file", one) for one in given])
    if "say what you did" in str(messages[-1]):
        return ModelResponse([TextPart("I wrote two files. Ask ann@example.com.")])
    return ModelResponse([TextPart("Done.")])


def add_hooks(config: Config) -> None:
    """Hooks in this process; those in settings files work the same."""
    hooks = HookSystem(config)

    @hooks.on("BeforeTool", matcher="write_file")
    def guard(event: dict[str, Any]) -> dict[str, Any] | None:
        path = event["tool_input"]["path"]
        if path.endswith(".env"):
            return {"decision": "deny", "reason": "keep secrets out of .env files"}
        if path.endswith(".sh"):
            return {"decision": "ask", "reason": f"may it write {path}?"}
        return {"hookSpecificOutput": {"tool_input": {"text": "hello"}}}

    @hooks.on("AfterModel")
    def redact(event: dict[str, Any]) -> dict[str, Any] | None:
        text = event["llm_response"]["text"].replace("ann@example.com", "[e-mail]")
        return {"hookSpecificOutput": {"llm_response": {"text": text}}}

    @hooks.on("AfterAgent")
    def say_more(event: dict[str, Any]) -> dict[str, Any] | None:
        if event["prompt_response"] == "Done.":
            return {"decision": "deny", "reason": "say what you did"}
        return None


async def main() -> None:
    config = Config(settings=Settings.from_mapping({}))
    add_hooks(config)
    agent = Agent(
        FunctionModel(model),
        output_type=[str, DeferredToolRequests],
        tools=[write_file],
        capabilities=[HooklineCapability(config)],
    )
    async with config:
        result = await agent.run("write the files")
        if isinstance(result.output, DeferredToolRequests):
            asked = result.output
            for call in asked.approvals:
                print("asked: ", asked.metadata[call.tool_call_id]["reason"])
            approvals: dict[str, Any] = {
                call.tool_call_id: True for call in asked.approvals
            }
            result = await agent.run(
                message_history=result.all_messages(),
                deferred_tool_results=DeferredToolResults(approvals=approvals),
            )
    for message in result.all_messages():
        for part in message.parts:
            if part.part_kind == "tool-return":
                print("tool:  ", part.content)
    print("answer:", result.output)
    print("files: ", files)


if __name__ == "__main__":
    asyncio.run(main())
