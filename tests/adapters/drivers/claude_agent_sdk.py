"""Claude Code, as the Claude Agent SDK brings it, with a model server on this machine.

Nothing is faked but the model: the SDK starts its program, which calls the hooks.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from claude_agent_sdk import (
    ClaudeAgentOptions,
    ClaudeSDKClient,
    HookContext,
    Message,
    PermissionMode,
    PermissionResultAllow,
    PermissionResultDeny,
    ResultMessage,
    UserMessage,
    create_sdk_mcp_server,
    query,
    tool,
)

from hookline import Config, Settings
from hookline.adapters.claude_agent_sdk import hookline_hooks
from hookline.agent import ScriptedReply, Session
from hookline.testing.adapters import ModelRequest, Ran, Task
from hookline.testing.modelapi import Answer, ModelServer
from tests.adapters.recorded_hooks import Event, RecordedHooks

from .claude_program import ScriptedProgram

_NO_MODEL = "Claude Code has no hooks around its model"


class ClaudeCode:
    """Runs Claude Code in a folder, with a scripted model and a home of its own."""

    def __init__(self, folder: Path, replies: Iterable[Answer | str]) -> None:
        self.project, self.home = folder / "project", folder / "home"
        for place in (self.project, self.home):
            place.mkdir(exist_ok=True)
        self.replies = replies
        self.messages: list[Message] = []
        self.requests: list[dict[str, Any]] = []

    async def run(
        self,
        *prompts: str,
        by_query: bool = False,
        modes: Sequence[PermissionMode | None] = (),
        **options: Any,
    ) -> str:
        """Give prompts, one after the other, and return the last result.

        ``modes`` are permission modes for the prompts.
        """
        given = list(zip_longest(prompts, modes))
        with ModelServer(self.replies) as server:
            try:
                used = self._options(server.url, **options)
                async for message in _messages(used, given, by_query):
                    self.messages.append(message)
            finally:
                self.requests += [one.body for one in server.requests]
        return self.answer

    @property
    def answer(self) -> str:
        """The result; of a run that a hook ended, what the last message says."""
        results = [one for one in self.messages if isinstance(one, ResultMessage)]
        users = [one for one in self.messages if isinstance(one, UserMessage)]
        return results[-1].result or (str(users[-1].content) if users else "")

    def sent(self, at: int) -> str:
        """All text of a request, without what the program itself always sends."""
        return json.dumps(self.requests[at]["messages"], ensure_ascii=False)

    def _options(self, url: str, **more: Any) -> ClaudeAgentOptions:
        env = {
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_API_KEY": "none",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_TELEMETRY": "1",
            "HOME": str(self.home),
        }
        env |= more.pop("env", {})
        return ClaudeAgentOptions(cwd=self.project, env=env, setting_sources=[], **more)


async def _messages(
    options: ClaudeAgentOptions,
    prompts: Sequence[tuple[str, PermissionMode | None]],
    by_query: bool,
) -> AsyncIterator[Message]:
    if by_query:
        async for message in query(prompt=prompts[0][0], options=options):
            yield message
        return
    async with ClaudeSDKClient(options) as client:
        for prompt, mode in prompts:
            if mode is not None:
                await client.set_permission_mode(mode)
            await client.query(prompt)
            async for message in client.receive_response():
                yield message


def decides(answer: bool) -> Callable[..., Any]:
    """The SDK's own way to ask a person."""

    async def can_use_tool(name: str, given: Any, context: Any) -> Any:
        return PermissionResultAllow() if answer else PermissionResultDeny()

    return can_use_tool


ALLOWED = ["Bash", "Read", "Write", "Grep", "Glob", "Agent"]
"""Claude Code starts faster with few tools."""
_DELEGATE = {
    "description": "d",
    "prompt": "look",
    "subagent_type": "general-purpose",
    "run_in_background": False,
}


def bash(*commands: str) -> Answer:
    """An answer that runs commands."""
    made = [("Bash", {"command": one, "description": "x"}) for one in commands]
    return Answer("", tuple(made))


async def went_through(row: Mapping[str, Any]) -> dict[str, Any]:
    """What came of a row: the answer, files, events, and who was told its texts."""
    recorded = RecordedHooks(row.get("hooks"))
    with tempfile.TemporaryDirectory() as folder:
        claude = ClaudeCode(Path(folder), [])
        project = str(claude.project)
        for name, content in row.get("files", {}).items():
            (claude.project / name).write_text(content)
        claude.replies = [_answer(one, project) for one in row["replies"]]
        given = {"tools": ALLOWED, "allowed_tools": ALLOWED, **row.get("options", {})}
        given["hooks"] = hookline_hooks(recorded.config)
        prompts = row.get("prompts", ["go"])
        await claude.run(*prompts, modes=row.get("modes", ()), **given)
        files = {one.name: one.read_text() for one in claude.project.iterdir()}
    requests = [claude.sent(at) for at in range(len(claude.requests))]
    users = [one.content for one in claude.messages if isinstance(one, UserMessage)]
    results = [one for one in claude.messages if isinstance(one, ResultMessage)]
    events = [_event_line(event, recorded) for event in recorded.events]
    return {
        "answer": results[-1].result,
        "files": dict(sorted(files.items())),
        "events": sorted(events) if row.get("unordered") else events,
        "requests": len(requests),
        "told": {
            text: [*(one.count(text) for one in requests), str(users).count(text)]
            for text in row.get("texts", ())
        },
    }


def _answer(reply: Any, project: str) -> Answer | str:
    """A text, or calls: of a command, of a subagent, or of any tool."""
    if isinstance(reply, str):
        return reply
    calls: list[Any] = []
    for name, given in reply:
        if name == "Bash":
            calls += bash(given).calls
        else:
            text = json.dumps(given or _DELEGATE).replace("<project>", project)
            calls.append((name, json.loads(text)))
    return Answer("", tuple(calls))


def _event_line(event: Event, recorded: RecordedHooks) -> str:
    agents = list(dict.fromkeys(one.get("agent_id") for one in recorded.events))
    names = ("prompt", "tool_name", "agent_type", "prompt_response", "trigger")
    values = [f"{name}={event[name]!r}" for name in names if event.get(name)]
    if event.get("agent_id"):
        values.append(f"agent={agents.index(event['agent_id'])}")
    if event.get("stop_hook_active"):
        values.append("stop_hook_active")
    return " ".join([event["hook_event_name"], *values])


class ClaudeDriver:
    """Runs Claude Code with the tools of a task as an MCP server of this process."""

    entries: Sequence[str] = ("client",)
    cannot: Mapping[str, str] = {
        **dict.fromkeys(("model-block", "model-answer", "model-change"), _NO_MODEL),
        **dict.fromkeys(("answer-change", "answer-stop", "events"), _NO_MODEL),
        **dict.fromkeys(("selection", "selection-refused"), _NO_MODEL),
        "tool-recorded": "Claude Code keeps what the model wrote",
    }

    async def run(self, session: Session | None, task: Task, entry: str) -> Ran:
        server = create_sdk_mcp_server("box", tools=_tools(task))
        options: dict[str, Any] = {
            "hooks": None if session is None else hookline_hooks(session),
            "mcp_servers": {"box": server},
            "tools": [],
        }
        if task.confirm is None:
            options["allowed_tools"] = ["mcp__box__*"]
        else:
            options["can_use_tool"] = decides(task.confirm)
        replies = [_reply(task.reply(at)) for at in range(len(task.replies) + 1)]
        with tempfile.TemporaryDirectory() as folder:
            claude = ClaudeCode(Path(folder), replies)
            answer = await claude.run(task.prompt, **options)
            recorded = [file.read_text() for file in claude.home.rglob("*.jsonl")]
        requests = [
            ModelRequest(claude.sent(at), []) for at in range(len(claude.requests))
        ]
        return Ran(
            answer=answer,
            requests=requests,
            shown=str(claude.messages),
            recorded="\n".join(recorded),
        )


class MeasuredDriver(ClaudeDriver):
    """For benchmarks: the events of a run, without the program that takes a second."""

    async def run(self, session: Session | None, task: Task, entry: str) -> Ran:
        """Without hooks there are callbacks that do nothing."""
        hooks = hookline_hooks(session or Config(settings=Settings()))
        if session is None:
            for (matcher,) in hooks.values():
                matcher.hooks = [_nothing]
        program, (name, given) = ScriptedProgram(), task.reply(0).calls[0]
        call = {"tool_name": name, "tool_input": dict(given), "tool_use_id": "t-1"}
        async with ClaudeSDKClient(ClaudeAgentOptions(hooks=hooks), program):
            await program.fire("UserPromptSubmit", prompt=task.prompt)
            await program.fire("PreToolUse", **call)
            await program.fire("PostToolUse", **call, tool_response="content")
            await program.fire("Stop", stop_hook_active=False)
        return Ran()


async def _nothing(given: Any, tool_use_id: str | None, context: HookContext) -> Any:
    return {}


def _reply(reply: ScriptedReply) -> Answer:
    calls = tuple((f"mcp__box__{name}", dict(given)) for name, given in reply.calls)
    return Answer(reply.text, calls)


def _tools(task: Task) -> list[Any]:
    box = task.tools
    one, two = ["path"], ["path", "text"]
    return [_tool(box.read, one), _tool(box.write, two), _tool(box.fail, one)]


def _tool(function: Callable[..., str], names: list[str]) -> Any:
    async def call(given: dict[str, Any]) -> dict[str, Any]:
        return {"content": [{"type": "text", "text": function(**given)}]}

    schema = dict.fromkeys(names, str)
    return tool(function.__name__, function.__doc__ or "", schema)(call)
