"""Chat Completions: requests and completions, as dicts or as SDK objects."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from hookline.translators.blocks import (
    BlockKinds,
    kinds_in,
    texts_in,
)
from hookline.translators.fields import (
    count_or_none,
    get,
    is_record,
    items_of,
    record,
    text_or_none,
    wrong,
)
from hookline.translators.requests import Entry
from hookline.translators.responses import Draft
from hookline.translators.stable import (
    LLMCandidate,
    LLMContent,
    LLMMessage,
    LLMUsage,
)

from .sdk import chat_types
from .settings import OpenAIRequests

KINDS = BlockKinds(frozenset({"text"}), "prompt_cache_breakpoint")
SHOWN_ROLES = {"assistant": "model", "developer": "system"}
_ANSWERING_ROLES = frozenset({"tool", "function"})
_CONFIG = {
    "temperature": ("temperature",),
    "topP": ("top_p",),
    "maxOutputTokens": ("max_completion_tokens", "max_tokens"),
    "stopSequences": ("stop",),
    "frequencyPenalty": ("frequency_penalty",),
    "presencePenalty": ("presence_penalty",),
    "seed": ("seed",),
    "candidateCount": ("n",),
}
_REASONS = {
    "stop": "STOP",
    "length": "MAX_TOKENS",
    "content_filter": "SAFETY",
    "tool_calls": "STOP",
    "function_call": "STOP",
}
_OWN_REASONS = {"STOP": "stop", "MAX_TOKENS": "length", "SAFETY": "content_filter"}
_CALL_REASONS = frozenset({"tool_calls", "function_call"})
_COUNTS = ("prompt_tokens", "completion_tokens", "total_tokens")


class ChatRequests(OpenAIRequests):
    """The ``RequestFormat`` of Chat Completions."""

    name = "OpenAI Chat Completions"
    kinds = KINDS
    names = _CONFIG
    flat_tools = False

    def entries(self, request: Any) -> list[Entry]:
        """Read the messages."""
        found = items_of(get(request, "messages"), "messages")
        return [_entry(raw, f"messages[{at}]") for at, raw in enumerate(found)]


class ChatResponses:
    """The ``ResponseFormat`` of Chat Completions."""

    def candidates(self, response: Any) -> list[LLMCandidate]:
        """Read the choices."""
        choices = items_of(get(response, "choices"), "choices")
        return [_candidate(one, f"choices[{at}]") for at, one in enumerate(choices)]

    def usage(self, response: Any) -> LLMUsage | None:
        """Read the three counts."""
        return read_usage(get(response, "usage"), _COUNTS)

    def calls(self, response: Any) -> list[str]:
        """Name the tool calls of all choices."""
        messages = [get(choice, "message") for choice in get(response, "choices") or []]
        calls = [call for one in messages for call in get(one, "tool_calls") or []]
        old = [get(one, "function_call") for one in messages]
        return [_call_name(call) for call in calls] + [
            str(get(call, "name")) for call in old if call is not None
        ]

    def rebuilt(
        self, drafts: Sequence[Draft], usage: LLMUsage | None, base: Any
    ) -> Any:
        """Build a ChatCompletion, or a dict where the base is one."""
        before = get(base, "choices") or []
        choices = [
            _choice(draft, before[at] if at < len(before) else None)
            for at, draft in enumerate(drafts)
        ]
        counts = write_usage(usage, get(base, "usage"), _COUNTS)
        if isinstance(base, Mapping):
            return {**base, "choices": choices, **({"usage": counts} if counts else {})}
        whole = chat_types().ChatCompletion.model_construct(
            id=get(base, "id") or "chatcmpl-hookline",
            object="chat.completion",
            created=get(base, "created") or int(time.time()),
            model=get(base, "model") or "",
            choices=choices,
            usage=counts,
        )
        if base is None:
            return whole
        changes = {"choices": whole.choices}
        return base.model_copy(
            update={**changes, "usage": whole.usage} if counts else changes
        )


def is_completion(value: Any) -> bool:
    """Tell a completion from anything else."""
    if isinstance(value, Mapping):
        return "choices" in value
    return is_record(value) and hasattr(value, "choices")


def read_usage(usage: Any, names: Sequence[str]) -> LLMUsage | None:
    """Read what a call cost, by the names of the counts."""
    if usage is None:
        return None
    record(usage, "usage")
    return LLMUsage(*(count_or_none(get(usage, n), f"usage.{n}") for n in names))


def write_usage(
    usage: LLMUsage | None, base: Any, names: Sequence[str]
) -> dict[str, Any] | None:
    """Write what a hook says that a call cost."""
    if usage is None:
        return None
    said = (
        usage.prompt_token_count,
        usage.candidates_token_count,
        usage.total_token_count,
    )
    counts = {name: count or 0 for name, count in zip(names, said, strict=True)}
    before = base if isinstance(base, Mapping) or base is None else base.model_dump()
    return {**(before or {}), **counts}


def _entry(raw: Any, place: str) -> Entry:
    role = text_or_none(get(record(raw, place), "role"), f"{place}.role")
    if role is None:
        raise wrong(f"{place}.role", "a string", None)
    content = get(raw, "content")
    text = "".join(texts_in(content, f"{place}.content", KINDS))
    if role in _ANSWERING_ROLES:
        return Entry(raw, has_others=True, has_calls=True, answers=True)
    calls = bool(get(raw, "tool_calls") or get(raw, "function_call"))
    others = any(kind not in KINDS.text for kind in kinds_in(content))
    return Entry(
        raw,
        LLMMessage(SHOWN_ROLES.get(role, role), text) if text else None,
        calls or others or bool(get(raw, "refusal") or get(raw, "audio")),
        calls,
    )


def _candidate(choice: Any, place: str) -> LLMCandidate:
    message = record(get(record(choice, place), "message"), f"{place}.message")
    texts = texts_in(get(message, "content"), f"{place}.message.content", KINDS)
    reason = text_or_none(get(choice, "finish_reason"), f"{place}.finish_reason")
    return LLMCandidate(
        LLMContent("model", [text for text in texts if text]),
        None if reason is None else _REASONS.get(reason, reason),
        count_or_none(get(choice, "index"), f"{place}.index"),
    )


def _call_name(call: Any) -> str:
    inner = get(call, "function", "custom")
    return str(get(inner, "name"))


def _choice(draft: Draft, before: Any) -> dict[str, Any]:
    reason = get(before, "finish_reason")
    if draft.finish_reason is not None:
        reason = _OWN_REASONS.get(draft.finish_reason, draft.finish_reason)
    elif reason is None or reason in _CALL_REASONS:
        reason = "stop"
    message = {"role": "assistant", "content": "".join(draft.texts), "refusal": None}
    return {
        "finish_reason": reason,
        "index": draft.index,
        "logprobs": None,
        "message": message,
    }
