"""Responses of google-genai: SDK objects or plain dicts in either spelling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hookline.translators.fields import (
    count_or_none,
    get,
    is_record,
    items_of,
    put,
    record,
    text_or_none,
    wrong,
)
from hookline.translators.responses import Draft
from hookline.translators.stable import (
    LLMCandidate,
    LLMContent,
    LLMSafetyRating,
    LLMUsage,
    to_wire,
)

from .names import field, spellings
from .parts import is_text, part_text
from .sdk import types_of, unknown_values_allowed

_NAMES = (
    "candidates",
    "usage_metadata",
    "prompt_feedback",
    "model_version",
    "response_id",
)
_FIELDS = frozenset(spelt for name in _NAMES for spelt in spellings(name))
_COUNTS = ("prompt_token_count", "candidates_token_count", "total_token_count")


class GenAIResponses:
    """The ``ResponseFormat`` of google-genai."""

    def candidates(self, response: Any) -> list[LLMCandidate]:
        """Read the texts, reasons and ratings of all candidates."""
        if not _is_response(response):
            raise wrong("response", "a GenerateContentResponse", response)
        found = items_of(get(response, "candidates"), "candidates")
        return [_candidate(one, f"candidates[{at}]") for at, one in enumerate(found)]

    def usage(self, response: Any) -> LLMUsage | None:
        """Read the three documented counts and no more."""
        usage = field(response, "usage_metadata")
        if usage is None:
            return None
        place = "usageMetadata"
        record(usage, place)
        counts = [
            count_or_none(field(usage, name), f"{place}.{name}") for name in _COUNTS
        ]
        return LLMUsage(*counts)

    def calls(self, response: Any) -> list[str]:
        """Name the function calls."""
        return [
            str(get(call, "name"))
            for candidate in get(response, "candidates") or []
            for part in get(get(candidate, "content"), "parts") or []
            if (call := field(part, "function_call")) is not None
        ]

    def rebuilt(
        self, drafts: Sequence[Draft], usage: LLMUsage | None, base: Any
    ) -> Any:
        """Build a GenerateContentResponse, or a dict where the base is one."""
        before = get(base, "candidates") or []
        built = [
            _built(draft, before[at] if at < len(before) else None)
            for at, draft in enumerate(drafts)
        ]
        if isinstance(base, Mapping):
            return _on_dict(base, built, usage)
        return _on_object(base, built, usage)


def _is_response(value: Any) -> bool:
    if isinstance(value, Mapping):
        return not _FIELDS.isdisjoint(value)
    return is_record(value) and hasattr(value, "candidates")


def _candidate(candidate: Any, place: str) -> LLMCandidate:
    content = get(record(candidate, place), "content")
    parts: list[Any] = []
    if content is not None:
        record(content, f"{place}.content")
        parts = items_of(get(content, "parts"), f"{place}.content.parts")
    texts = [
        part_text(record(part, where), where)
        for at, part in enumerate(parts)
        if is_text(record(part, where := f"{place}.content.parts[{at}]"))
    ]
    return LLMCandidate(
        LLMContent("model", texts),
        text_or_none(field(candidate, "finish_reason"), f"{place}.finishReason"),
        count_or_none(get(candidate, "index"), f"{place}.index"),
        _ratings(field(candidate, "safety_ratings"), f"{place}.safetyRatings"),
    )


def _ratings(ratings: Any, place: str) -> list[LLMSafetyRating] | None:
    if ratings is None:
        return None
    return [
        LLMSafetyRating(
            text_or_none(get(record(one, place), "category"), f"{place}.category"),
            text_or_none(get(one, "probability"), f"{place}.probability"),
        )
        for one in items_of(ratings, place)
    ]


def _built(draft: Draft, before: Any) -> dict[str, Any]:
    content = {"role": "model", "parts": [{"text": text} for text in draft.texts]}
    ratings: Any = field(before, "safety_ratings")
    if draft.safety_ratings is not None:
        ratings = [to_wire(rating) for rating in draft.safety_ratings]
    reason = draft.finish_reason or field(before, "finish_reason") or "STOP"
    candidate = {
        "content": content,
        "finishReason": reason,
        "index": draft.index,
        "safetyRatings": ratings,
    }
    return {key: value for key, value in candidate.items() if value is not None}


def _on_dict(
    base: Mapping[str, Any], built: list[dict[str, Any]], usage: LLMUsage | None
) -> Any:
    response = put(base, built, "candidates")
    if usage is None:
        return response
    counts = {**(field(base, "usage_metadata") or {}), **to_wire(usage)}
    return put(response, counts, *spellings("usage_metadata"))


def _on_object(base: Any, built: list[dict[str, Any]], usage: LLMUsage | None) -> Any:
    types = types_of()
    with unknown_values_allowed():
        candidates = [types.Candidate.model_validate(one) for one in built]
    # What was parsed from the old text would contradict the new one.
    changes: dict[str, Any] = {"candidates": candidates, "parsed": None}
    if usage is not None:
        kind = types.GenerateContentResponseUsageMetadata
        found = get(base, "usage_metadata") or kind()
        counts = {name: getattr(usage, name) for name in _COUNTS}
        changes["usage_metadata"] = found.model_copy(update=counts)
    response = types.GenerateContentResponse() if base is None else base
    return response.model_copy(update=changes)
