"""Claude Code, run by the Claude Agent SDK, obeys hooks.

Its model is a script on this machine, so that the example needs no account and no
network. Without ``env`` and ``ModelServer`` it is an agent like any other.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

from claude_agent_sdk import (
    ClaudeAgentOptions,
    ResultMessage,
    TextBlock,
    ToolResultBlock,
    UserMessage,
    query,
)

from hookline import Config, HookSystem
from hookline.adapters.claude_agent_sdk import hookline_hooks
from hookline.testing.modelapi import Answer, ModelServer

COMMANDS = ("touch .env", "echo hello > notes.txt", "cat notes.txt")
SCRIPT: list[Answer | str] = [
    *(
        Answer("", (("Bash", {"command": one, "description": "x"}),))
        for one in COMMANDS
    ),
    "All done.",
    "All done, and notes.txt says hello.",
]


def add_hooks(config: Config) -> None:
    """A guard of commands, and a check of the answer."""
    hooks = HookSystem(config)

    @hooks.on("BeforeTool", matcher="Bash")
    def guard(event: dict[str, Any]) -> dict[str, Any] | None:
        if ".env" in event["tool_input"]["command"]:
            return {"decision": "block", "reason": "keep secrets out of .env files"}
        return None

    @hooks.on("AfterAgent")
    def check(event: dict[str, Any]) -> dict[str, Any] | None:
        if "notes.txt" in event["prompt_response"]:
            return None
        return {"decision": "block", "reason": "Say what is in notes.txt."}


async def run(config: Config, env: dict[str, str]) -> None:
    """Run the agent and print what happened."""
    options = ClaudeAgentOptions(
        cwd=config.working_dir,
        hooks=hookline_hooks(config),
        allowed_tools=["Bash"],
        permission_mode="acceptEdits",
        setting_sources=[],
        env=env,
    )
    async with config:
        async for message in query(prompt="write notes.txt", options=options):
            show(message)


def show(message: Any) -> None:
    """Print tool results, what hooks say in place of the user, and the answer."""
    if isinstance(message, ResultMessage):
        print("answer:", message.result)
    elif isinstance(message, UserMessage):
        for block in message.content:
            if isinstance(block, ToolResultBlock):
                print("tool:", block.content)
            elif isinstance(block, TextBlock):
                print("hook:", block.text)


def main() -> None:
    """Run in a folder that is removed afterwards."""
    with tempfile.TemporaryDirectory() as folder, ModelServer(SCRIPT) as server:
        project = Path(folder, "project")
        project.mkdir()
        config = Config(session_id="example", working_dir=project)
        add_hooks(config)
        env = {
            "ANTHROPIC_BASE_URL": server.url,
            "ANTHROPIC_API_KEY": "none",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "HOME": folder,
        }
        asyncio.run(run(config, env))
        print("files:", ", ".join(one.name for one in project.iterdir()))


if __name__ == "__main__":
    main()
