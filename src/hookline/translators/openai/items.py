"""The Responses API: requests and responses, as dicts or as SDK objects.

Its history is a list of items; messages are some of them, calls and results others.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from hookline.translators.blocks import (
    BlockKinds,
    emptied_content,
    kinds_in,
    texts_in,
)
from hookline.translators.fields import (
    get,
    is_record,
    items_of,
    put,
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

from .chat import SHOWN_ROLES, read_usage, write_usage
from .sdk import responses_types
from .settings import OpenAIRequests

KINDS = BlockKinds(
    frozenset({"input_text", "output_text", "text"}), "prompt_cache_breakpoint"
)
_CONFIG = {
    "temperature": ("temperature",),
    "topP": ("top_p",),
    "maxOutputTokens": ("max_output_tokens",),
}
_REASONS = {
    "completed": "STOP",
    "max_output_tokens": "MAX_TOKENS",
    "content_filter": "SAFETY",
}
_INCOMPLETE = {"MAX_TOKENS": "max_output_tokens", "SAFETY": "content_filter"}
_COUNTS = ("input_tokens", "output_tokens", "total_tokens")
_USAGE_DETAILS = {
    "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
    "output_tokens_details": {"reasoning_tokens": 0},
}
_CALL_SUFFIX, _ANSWER_SUFFIX = "_call", "_call_output"
# The service has made these calls itself: nobody waits for them.
_HOSTED_CALLS = frozenset(
    {
        "file_search_call", "web_search_call", "code_interpreter_call",
        "image_generation_call", "mcp_call", "tool_search_call",
    }
)  # fmt: skip


class ItemRequests(OpenAIRequests):
    """The ``RequestFormat`` of the Responses API."""

    name = "OpenAI Responses"
    kinds = KINDS
    names = _CONFIG
    flat_tools = True
    messages_key = "input"

    def entries(self, request: Any) -> list[Entry]:
        """Read ``input``, a string or items."""
        given = get(request, "input")
        if isinstance(given, str):
            return [Entry(given, LLMMessage("user", given) if given else None)]
        found = items_of(given, "input")
        return [_entry(raw, f"input[{at}]") for at, raw in enumerate(found)]

    def edited(self, raw: Any, text: str) -> Any:
        """Put a new text in place of all the text of a message."""
        if isinstance(raw, str):
            return text
        return super().edited(raw, text)

    def emptied(self, raw: Any) -> Any:
        """Take the text out of a message."""
        return put(raw, emptied_content(get(raw, "content"), KINDS) or [], "content")

    def with_entries(self, request: Any, raws: list[Any], *, added: bool) -> Any:
        """Change ``input``; a string stays one while it is alone."""
        if isinstance(get(request, "input"), str) and len(raws) == 1 and not added:
            return put(request, raws[0], "input")
        items = [
            {"role": "user", "content": raw} if isinstance(raw, str) else raw
            for raw in raws
        ]
        return put(
            request, _without_stray_reasoning(items, get(request, "input")), "input"
        )


class ItemResponses:
    """The ``ResponseFormat`` of the Responses API: one candidate."""

    def candidates(self, response: Any) -> list[LLMCandidate]:
        """Read the texts of all output messages as one candidate."""
        output = items_of(get(response, "output"), "output")
        texts = [
            text
            for at, item in enumerate(output)
            if get(record(item, f"output[{at}]"), "type") == "message"
            for text in texts_in(get(item, "content"), f"output[{at}].content", KINDS)
        ]
        reason = _reason(response)
        shown = None if reason is None else _REASONS.get(reason, reason)
        return [LLMCandidate(LLMContent("model", texts), shown, 0)]

    def usage(self, response: Any) -> LLMUsage | None:
        """Read the three counts."""
        return read_usage(get(response, "usage"), _COUNTS)

    def calls(self, response: Any) -> list[str]:
        """Name the tool calls."""
        return [
            str(get(item, "name") or get(item, "type"))
            for item in get(response, "output") or []
            if _kind(item).endswith(_CALL_SUFFIX) and _kind(item) not in _HOSTED_CALLS
        ]

    def rebuilt(
        self, drafts: Sequence[Draft], usage: LLMUsage | None, base: Any
    ) -> Any:
        """Build a Response, or a dict where the base is one."""
        draft = drafts[0] if drafts else Draft([], 0)
        changes: dict[str, Any] = {"output": [_message(draft, base)], **_ending(draft)}
        counts = write_usage(usage, get(base, "usage"), _COUNTS)
        if counts:
            changes["usage"] = {**_USAGE_DETAILS, **counts}
        if isinstance(base, Mapping):
            return {**base, **changes}
        fresh = {
            "id": "resp_hookline", "object": "response", "created_at": time.time(),
            "model": "", "status": "completed", "parallel_tool_calls": False,
            "tool_choice": "auto", "tools": [],
        }  # fmt: skip
        whole = responses_types().Response.model_construct(**{**fresh, **changes})
        if base is None:
            return whole
        return base.model_copy(update={key: getattr(whole, key) for key in changes})


def is_response(value: Any) -> bool:
    """Tell a Response from anything else."""
    if isinstance(value, Mapping):
        return "output" in value
    return is_record(value) and hasattr(value, "output")


def _entry(raw: Any, place: str) -> Entry:
    record(raw, place)
    kind = text_or_none(get(raw, "type"), f"{place}.type")
    if kind is None and get(raw, "role") is None and get(raw, "content") is not None:
        raise wrong(f"{place}.role", "a string", None)
    if kind not in (None, "message") or get(raw, "role") is None:
        return _hidden(raw, kind or "", place)
    role = text_or_none(get(raw, "role"), f"{place}.role") or ""
    content = get(raw, "content")
    text = "".join(texts_in(content, f"{place}.content", KINDS))
    return Entry(
        raw,
        LLMMessage(SHOWN_ROLES.get(role, role), text) if text else None,
        any(kind not in KINDS.text for kind in kinds_in(content)),
    )


def _hidden(raw: Any, kind: str, place: str) -> Entry:
    if kind == "message":
        raise wrong(f"{place}.role", "a string", None)
    answers = kind.endswith(_ANSWER_SUFFIX)
    calls = answers or kind.endswith(_CALL_SUFFIX)
    return Entry(raw, None, has_others=True, has_calls=calls, answers=answers)


def _kind(item: Any) -> str:
    return str(get(item, "type") or "")


def _without_stray_reasoning(items: list[Any], before: Any) -> list[Any]:
    """Take out the reasoning of an answer that was taken out.

    The service refuses a reasoning item that nothing of the model's follows.
    """
    if not isinstance(before, list | tuple):
        return items
    # An entry is known by its identity, unless it is in the history more than once.
    times = Counter(map(id, before))
    meant = {
        id(item): after for item, after in pairwise(before) if times[id(item)] == 1
    }
    return [
        item
        for item, after in pairwise([*items, None])
        if not (
            _kind(item) == "reasoning"
            and get(meant.get(id(item)), "role") == "assistant"
            and _is_new_turn(after)
        )
    ]


def _is_new_turn(item: Any) -> bool:
    return item is None or get(item, "role") not in (None, "assistant")


def _reason(response: Any) -> str | None:
    details = get(get(response, "incomplete_details"), "reason")
    return text_or_none(
        details if details is not None else get(response, "status"), "status"
    )


def _message(draft: Draft, base: Any) -> dict[str, Any]:
    messages = [one for one in get(base, "output") or [] if _kind(one) == "message"]
    return {
        "id": (get(messages[0], "id") if messages else None) or "msg_hookline",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [
            {"type": "output_text", "text": text, "annotations": []}
            for text in draft.texts
        ],
    }


def _ending(draft: Draft) -> dict[str, Any]:
    if draft.finish_reason is None:
        return {}
    if draft.finish_reason == "STOP":
        return {"status": "completed", "incomplete_details": None}
    reason = _INCOMPLETE.get(draft.finish_reason, draft.finish_reason)
    return {"status": "incomplete", "incomplete_details": {"reason": reason}}
