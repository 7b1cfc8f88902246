"""An agent of Google's ADK that obeys its hooks; runs offline with a scripted model.

pip install '.[google-adk]'
python examples/frameworks/google_adk.py
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.sessions import InMemorySessionService
from google.genai import types

from hookline import Config, HookSystem, Settings
from hookline.adapters.google_adk import HooklineRunner

FILES: dict[str, str] = {}


def write_file(path: str, text: str) -> str:
    """Write a file."""
    FILES[path] = text
    return f"wrote {path}"


class ScriptedLlm(BaseLlm):
    """Calls a tool twice, then answers twice: no network, no key."""

    model: str = "scripted"
    step: int = 0

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        write = types.Part.from_function_call
        part = [
            write(name="write_file", args={"path": ".env", "text": "KEY=1"}),
            write(name="write_file", args={"path": "notes.md", "text": "hello"}),
            types.Part(text="Done."),
            types.Part(text="Done: notes.md is written, .env is not."),
        ][self.step]
        self.step += 1
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


async def main() -> None:
    config = Config(settings=Settings.from_mapping({}))
    hooks = HookSystem(config)

    @hooks.on("BeforeTool", matcher="write_file")
    def no_env_files(event: dict[str, Any]) -> dict[str, Any] | None:
        if event["tool_input"]["path"].endswith(".env"):
            return {"decision": "deny", "reason": "keep secrets out of .env files"}
        return {"hookSpecificOutput": {"tool_input": {"text": "hello\n"}}}

    @hooks.on("AfterAgent")
    def say_more(event: dict[str, Any]) -> dict[str, Any] | None:
        if event["prompt_response"] == "Done.":
            return {"decision": "deny", "reason": "say what you did"}

    agent = LlmAgent(name="writer", model=ScriptedLlm(), tools=[write_file])
    runner = HooklineRunner(
        config,
        app=App(name="example", root_agent=agent),
        session_service=InMemorySessionService(),
        auto_create_session=True,
    )
    message = types.Content(role="user", parts=[types.Part(text="Write my notes.")])
    async with config:
        async for event in runner.run_async(
            user_id="me", session_id="conversation-17", new_message=message
        ):
            for call in event.get_function_calls():
                print("call:  ", call.name, call.args)
            for result in event.get_function_responses():
                print("result:", result.response)
            if event.is_final_response() and event.content and event.content.parts:
                print("answer:", event.content.parts[0].text)
    print("files: ", FILES)


if __name__ == "__main__":
    logging.getLogger("google_adk").setLevel(logging.ERROR)
    asyncio.run(main())
