"""What the adapters share; an adapter's own file is what its framework alone needs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from hookline.agent import (
    ConfigOrSession,
    HookedModelCall,
    HookedRun,
    HookedToolCall,
    ModelOutcome,
    Session,
    ToolResult,
    session_of,
)
from hookline.protocol.outputs import BLOCKED_BY_HOOK
from hookline.protocol.values import same_json
from hookline.translators.changes import RequestChanges
from hookline.translators.shape import LLMMessage

logger = logging.getLogger("hookline")
M = TypeVar("M")


class Sessions:
    """The sessions of a framework's conversations."""

    def __init__(self, config_or_session: ConfigOrSession) -> None:
        self.default = session_of(config_or_session)
        self._is_fixed = isinstance(config_or_session, Session)

    def of(
        self, conversation_id: object | None, caller: HookedRun | None = None
    ) -> Session:
        """The session of a conversation, by the id that the framework has for it.

        A session that was given is used as it is, and the config's own one where there
        is no id. What a tool of ``caller`` runs is in the conversation of that.
        """
        if caller is not None:
            conversation_id = caller.session.session_id
        if self._is_fixed or conversation_id is None:
            return self.default
        return self.default.view(conversation_id)


class JudgedCalls:
    """The calls of a model's answer that hooks have judged before any of them is made.

    Models repeat ids: a call is the one that was judged if it has its input as well.
    """

    def __init__(self) -> None:
        self._calls: list[tuple[str | None, HookedToolCall, dict[str, Any]]] = []

    def __iter__(self) -> Iterator[HookedToolCall]:
        return iter([call for _, call, _ in self._calls])

    def add(
        self, call_id: str | None, call: HookedToolCall, tool_input: dict[str, Any]
    ) -> None:
        """Keep a call until the framework makes it with this input."""
        self._calls.append((call_id, call, tool_input))

    def find(self, call_id: str | None) -> HookedToolCall | None:
        """The latest call of this id, which stays here."""
        calls = (call for key, call, _ in reversed(self._calls) if key == call_id)
        return next(calls, None)

    def take(
        self, name: str, tool_input: Any, call_id: str | None = None
    ) -> HookedToolCall | None:
        """The call that is made now; None if hooks have not judged this one.

        Without an id it is known by its name and its input alone.
        """
        for entry in self._calls:
            key, call, judged_input = entry
            is_same = call_id in (None, key) and call.tool_name == name
            if is_same and same_json(judged_input, tool_input):
                self._calls.remove(entry)
                return call
        return None


async def with_hooks(session: Session, *events: str) -> list[str]:
    """Those of these events that have hooks."""
    return [event for event in events if await session.has_hooks(event)]


@dataclass(frozen=True)
class MessageShape(Generic[M]):
    """How a framework's messages are shown to hooks, and how they are changed."""

    role_of: Callable[[M], str]
    """In the stable shape: "user", "model" or "system"."""
    text_of: Callable[[M], str]
    """Empty for a message that hooks do not see."""
    with_text: Callable[[M, str | None], M | None]
    """A message with another text, or without; None if nothing is left of it."""
    new: Callable[[LLMMessage], M]

    def shown(self, messages: Iterable[M]) -> list[dict[str, Any]]:
        """The messages in the stable shape."""
        return [
            {"role": self.role_of(message), "content": text}
            for message in messages
            if (text := self.text_of(message))
        ]

    def changed(self, messages: Sequence[M], changes: RequestChanges) -> list[M]:
        """The messages as hooks want them."""
        return changes.applied(
            messages, text_of=self.text_of, edit=self.with_text, make=self.new
        )


def with_text(content: Any, text: str | None) -> Any:
    """A content, a text or blocks, with another text or none; images and so on stay."""
    if isinstance(content, str):
        return text or ""
    is_text = [
        isinstance(block, str) or block.get("type") == "text" for block in content
    ]
    blocks = [block for block, drop in zip(content, is_text, strict=True) if not drop]
    return [{"type": "text", "text": text}, *blocks] if text else blocks


def extended(content: Any, additions: Iterable[str]) -> Any:
    """A content, a text or blocks, with texts after it."""
    if isinstance(content, str):
        return "\n\n".join(filter(None, [content, *additions]))
    return [*content, *({"type": "text", "text": text} for text in additions)]


def changed_settings(
    settings: Mapping[str, Any], changes: RequestChanges, names: Mapping[str, str]
) -> dict[str, Any]:
    """A framework's settings as hooks want them; ``names`` are those of the framework.

    A setting that hooks took away is left out.
    """
    config = {
        names[key]: value for key, value in changes.config.items() if key in names
    }
    changed = {**settings, **config}
    return {name: value for name, value in changed.items() if value is not None}


def stable_role(role: str) -> str:
    """The role of a message from what most services call it."""
    return {"assistant": "model", "system": "system"}.get(role, "user")


def service_role(role: str) -> str:
    """What most services call a role of the stable shape."""
    return "assistant" if role == "model" else role


class Answer(NamedTuple):
    """What stands in the place of a model's answer."""

    text: str
    is_ending: bool
    """Whether it is no answer, but the reason why hooks ended the run."""


def answer_of(call: HookedModelCall) -> Answer | None:
    """What hooks say in the model's place; None if it is to be called."""
    if not call.refused:
        return None
    if call.text and call.stop_reason is None:
        return Answer(call.text, is_ending=False)
    return Answer(call.stop_reason or call.reason or BLOCKED_BY_HOOK, is_ending=True)


def changed_answer(
    outcome: ModelOutcome, dropped_calls: Iterable[str] = ()
) -> Answer | None:
    """What hooks put in the place of an answer; None if it stays.

    ``dropped_calls`` are the tools that are called in it: a changed one has no calls.
    """
    if outcome.stop_reason is not None:
        return Answer(outcome.stop_reason, is_ending=True)
    if not outcome.changed:
        return None
    if names := ", ".join(dropped_calls):
        logger.warning("a hook changed an answer: its calls are dropped: %s", names)
    return Answer(outcome.text, is_ending=False)


def warn_of_settings(framework: str, changes: RequestChanges) -> None:
    """Warn that a framework's calls have the model and the settings of its agent."""
    names = [*changes.config, *(["model"] if changes.model else [])]
    if names:
        logger.warning(
            "a hook's change of model or settings has no effect in %s: %s",
            framework,
            ", ".join(names),
        )


def must_call_tool(call: HookedModelCall) -> bool:
    """Whether hooks want the model to call one of its tools."""
    tool_config = call.request.get("toolConfig") or {}
    return tool_config.get("mode") == "ANY"


def shown_result(
    blocks: list[dict[str, Any]], *, is_error: bool, metadata: Any = None
) -> ToolResult:
    """What AfterTool hooks see of a result: its text, or blocks if some are no text."""
    texts = [block["text"] for block in blocks if "text" in block]
    text = "\n".join(texts)
    return ToolResult(
        llm_content=text if len(texts) == len(blocks) else blocks,
        metadata=metadata,
        error=(text or "the tool failed") if is_error else None,
    )


def joined(additions: Iterable[str]) -> str:
    """What hooks added for the model as one text."""
    return "\n\n".join(additions)
