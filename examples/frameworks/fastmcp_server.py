"""A FastMCP server whose tools obey hooks; a client in this process calls them."""

from __future__ import annotations

import asyncio
from typing import Any

from fastmcp import Client, FastMCP

from hookline import Config, HookSystem
from hookline.adapters.fastmcp import HooklineMiddleware

config = Config(session_id="files", working_dir=".")
hooks = HookSystem(config)
server: FastMCP = FastMCP("files", middleware=[HooklineMiddleware(config)])


@server.tool
def write_file(path: str, text: str) -> str:
    """Write a file."""
    return f"wrote {len(text)} characters to {path}"


@server.tool
def read_file(path: str) -> str:
    """Read a file."""
    return f"password=hunter2 ({path})"


@hooks.on("BeforeTool", matcher="write_file")
def guard(event: dict[str, Any]) -> dict[str, Any] | None:
    """No secrets, and the person of the client decides about drafts."""
    path = event["tool_input"]["path"]
    if path.endswith(".env"):
        return {"decision": "block", "reason": "keep secrets out of .env files"}
    if path.startswith("draft"):
        return {"decision": "ask", "reason": f"write {path}?"}
    return None


@hooks.on("AfterTool", matcher="read_file")
def withhold(event: dict[str, Any]) -> dict[str, Any] | None:
    """Keep a result with a password from the model."""
    if "password" not in event["tool_response"]["llmContent"]:
        return None
    withheld = {"withholdResult": True}
    return {"reason": "the file holds a password", "hookSpecificOutput": withheld}


async def ask(message: str, kind: Any, params: Any, context: Any) -> Any:
    """What the client's user says to a question."""
    print(f"  asked: {message.splitlines()[0]}")
    return kind(value=True)


async def main() -> None:
    """Call tools as an agent would."""
    calls: list[tuple[str, dict[str, str]]] = [
        ("write_file", {"path": "a.txt", "text": "hello"}),
        ("write_file", {"path": ".env", "text": "KEY=1"}),
        ("write_file", {"path": "draft.txt", "text": "hello"}),
        ("read_file", {"path": "b.txt"}),
    ]
    async with config, Client(server, elicitation_handler=ask) as client:
        for name, arguments in calls:
            print(name, arguments["path"])
            result = await client.call_tool(name, arguments, raise_on_error=False)
            print("  error:" if result.is_error else "  result:", end=" ")
            print(result.content[0].text)


if __name__ == "__main__":
    asyncio.run(main())
