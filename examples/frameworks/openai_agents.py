"""The OpenAI Agents SDK with hooks, offline: a scripted model, a tool, three hooks."""

import asyncio
from typing import Any

from agents import (
    Agent,
    SQLiteSession,
    ToolCallOutputItem,
    function_tool,
    set_tracing_disabled,
)
from agents.testing import ScriptedModel, assistant_message, function_call

from hookline import Config, HookSystem
from hookline.adapters.openai_agents import HooklineRunner, hooked_agent

config = Config()
hooks = HookSystem(config)  # hooks from settings files work the same


@hooks.on("BeforeTool", matcher="write_file")
def guard(event: dict[str, Any]) -> dict[str, Any] | None:
    path = event["tool_input"]["path"]
    if path.endswith(".env"):
        return {"decision": "deny", "reason": "keep secrets out of files"}
    if path.endswith(".sh"):
        return {"decision": "ask", "reason": f"may {path} be written?"}
    return None


@hooks.on("AfterModel")
def redact(event: dict[str, Any]) -> dict[str, Any] | None:
    text = event["llm_response"].get("text") or ""
    changed = text.replace("ops@example.com", "[e-mail]")
    return {"hookSpecificOutput": {"llm_response": {"text": changed}}}


@hooks.on("SubagentStart")
def brief(event: dict[str, Any]) -> dict[str, Any] | None:
    return {"hookSpecificOutput": {"additionalContext": "Answer in one sentence."}}


@function_tool
def write_file(path: str, text: str) -> str:
    """Write a file."""
    print(f"  (the tool writes {path})")
    return f"wrote {path}"


def calls(name: str, call_id: str, **given: str) -> Any:
    return function_call(name, given, call_id=call_id)


writer = Agent(
    name="Writer",
    model=ScriptedModel(
        [
            [
                calls("write_file", "1", path="prod.env", text="KEY=1"),
                calls("write_file", "2", path="deploy.sh", text="make"),
            ],
            [assistant_message("Done. Ask ops@example.com about it.")],
        ]
    ),
    tools=[write_file],
)
triage = Agent(
    name="Triage",
    model=ScriptedModel([[calls("transfer_to_writer", "0")]]),
    handoffs=[writer],
)
agent = hooked_agent(triage, config)


async def main() -> None:
    async with config:
        given: Any = "Set it up."
        memory = SQLiteSession("conversation-17")
        while True:
            result = HooklineRunner.run_streamed(agent, given, session=memory)
            async for event in result.stream_events():
                if event.type == "run_item_stream_event":
                    print(event.name)
            if not result.interruptions:
                break
            given = result.to_state()
            for item in result.interruptions:
                print("question:", item.tool_name, item.arguments)
                given.approve(item)  # a person says yes
        for said in result.new_items:
            if isinstance(said, ToolCallOutputItem):
                print("told the model:", said.output)
        print("answer:", result.final_output)


if __name__ == "__main__":
    set_tracing_disabled(disabled=True)  # the SDK would send traces to OpenAI
    asyncio.run(main())
