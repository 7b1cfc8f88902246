"""Agents of LangChain with hooks in this process, and what was seen of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from langchain.agents import create_agent
from langchain_core.runnables import RunnableConfig

from hookline import Config, HookEventName, HookSystem, Settings
from hookline.adapters.langchain import HooklineMiddleware
from hookline.agent import ScriptedReply

from .drivers.langchain import ScriptedChat

Hook = Callable[[dict[str, Any]], dict[str, Any] | None]
Events = list[dict[str, Any]]
SECRET = "s3cret"


@asynccontextmanager
async def hooked(
    hooks_config: dict[str, Any] | None = None, **hooks: Hook
) -> AsyncIterator[tuple[Config, Events]]:
    """A config with a hook per event, and the events that were fired."""
    seen: Events = []

    def record(event: dict[str, Any]) -> None:
        seen.append(event)

    config = Config(
        "own", ".", Settings.from_mapping({"hooksConfig": hooks_config or {}})
    )
    async with config:
        system = HookSystem(config)
        for name in HookEventName:
            if name.value in hooks:
                system.on(name)(hooks[name.value])
            # One on AfterModel holds back every stream, so it is not always there.
            if name is not HookEventName.AfterModel or name.value in hooks:
                system.on(name, name="recorder")(record)
        yield config, seen


def agent_of(
    config: Config,
    *replies: ScriptedReply | str,
    tools: Sequence[Any] = (),
    middleware: Sequence[Any] = (),
    confirm: Any = None,
    **more: Any,
) -> tuple[Any, ScriptedChat]:
    """An agent whose model answers by a script; the hooks are the first middleware."""
    script = [ScriptedReply(one) if isinstance(one, str) else one for one in replies]
    ended = ScriptedReply("the end")
    model = ScriptedChat(reply=lambda at: script[at] if at < len(script) else ended)
    own = HooklineMiddleware[Any](config, confirm=confirm)
    return create_agent(model, tools, middleware=[own, *middleware], **more), model


def calls(*given: tuple[str, dict[str, Any]], text: str = "") -> ScriptedReply:
    """An answer with tool calls."""
    return ScriptedReply(text, given)


def ask(text: str) -> dict[str, Any]:
    """The input of an agent."""
    return {"messages": [{"role": "user", "content": text}]}


def thread(name: str) -> RunnableConfig:
    """The config of a conversation."""
    return {"configurable": {"thread_id": name}}


def named(events: Events, name: str) -> Events:
    """The events of one name."""
    return [one for one in events if one["hook_event_name"] == name]


def answer(result: Any) -> str:
    """The text of the last message."""
    return str(result["messages"][-1].text)


def redact(event: dict[str, Any]) -> dict[str, Any] | None:
    """An AfterModel hook that takes the secret out."""
    text = event["llm_response"]["text"] or ""
    if SECRET not in text:
        return None
    return specific(llm_response={"text": text.replace(SECRET, "[redacted]")})


def specific(**fields: Any) -> dict[str, Any]:
    """The output of a hook with these effects."""
    return {"hookSpecificOutput": fields}


def deny(reason: str) -> Hook:
    """A hook that blocks."""
    return lambda _: {"decision": "deny", "reason": reason}
