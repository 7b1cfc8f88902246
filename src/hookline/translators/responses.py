"""Responses, both ways, for every SDK: what differs is a ``ResponseFormat``.

A response is rebuilt from text only (HOOK-079). Where the text is what the hook was
shown, the original object stays, calls and all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from .returned import logger, response_parts, whose
from .stable import LLMCandidate, LLMResponse, LLMSafetyRating, LLMUsage


class Draft(Struct, frozen=True):
    """One candidate to be built, by a hook's word."""

    texts: list[str]
    index: int
    finish_reason: str | None = None
    """Only where the hook gave one that it was not shown."""
    safety_ratings: list[LLMSafetyRating] | None = None


class ResponseFormat(Protocol):
    """How one SDK spells a response."""

    def candidates(self, response: Any) -> list[LLMCandidate]:
        """Read the texts of all candidates."""
        ...

    def usage(self, response: Any) -> LLMUsage | None:
        """Read what it cost."""
        ...

    def calls(self, response: Any) -> list[str]:
        """Name the tool calls that a rebuilt response would lose."""
        ...

    def rebuilt(
        self, drafts: Sequence[Draft], usage: LLMUsage | None, base: Any
    ) -> Any:
        """Build a response of texts; what the base has beside them stays."""
        ...


def show_response(form: ResponseFormat, response: Any) -> LLMResponse:
    """Show the text of a response (HOOK-073, 077)."""
    candidates = form.candidates(response)
    parts = candidates[0].content.parts if candidates else []
    return LLMResponse(
        candidates, "".join(parts) if parts else None, form.usage(response)
    )


def change_response(
    form: ResponseFormat,
    hook_response: LLMResponse | Mapping[str, Any],
    base: Any,
    hook_name: str | None = None,
) -> Any:
    """Build the response that a hook wants, or keep the base."""
    parts = response_parts(hook_response)
    seen = LLMResponse([]) if base is None else show_response(form, base)
    drafts = drafts_of(parts, seen)
    if base is not None and _texts(drafts) == _shown_texts(seen):
        return base
    lost = [] if base is None else form.calls(base)
    if lost:
        logger.warning(
            "%s replaced a response: its tool calls are lost (%s)",
            whose(hook_name),
            ", ".join(lost),
        )
    return form.rebuilt(drafts, _usage(parts, seen), base)


def drafts_of(parts: Mapping[str, Any], seen: LLMResponse) -> list[Draft]:
    """Decide what the candidates are to say: a hook may change them or the text."""
    given = [
        _draft(entry, at, seen)
        for at, entry in enumerate(parts.get("candidates") or [])
    ]
    drafts = given or [_as_shown(c, at) for at, c in enumerate(seen.candidates)]
    said, text = _texts(drafts), parts.get("text")
    if text is None or said[:1] == [text]:
        return drafts
    if given and any(said) and said != _shown_texts(seen):
        return drafts  # both were changed: the candidates say more than the text
    first = drafts[0] if drafts else Draft([], 0)
    return [msgspec.structs.replace(first, texts=[text]), *drafts[1:]]


def _draft(entry: Mapping[str, Any], at: int, seen: LLMResponse) -> Draft:
    shown = seen.candidates[at] if at < len(seen.candidates) else None
    texts = (entry.get("content") or {}).get("parts")
    if texts is None:
        texts = shown.content.parts if shown else []
    reason = entry.get("finishReason")
    ratings = entry.get("safetyRatings")
    return Draft(
        list(texts),
        entry.get("index") or at,
        None if shown and reason == shown.finish_reason else reason,
        None if ratings is None else [_rating(rating) for rating in ratings],
    )


def _rating(rating: Mapping[str, Any]) -> LLMSafetyRating:
    return LLMSafetyRating(rating.get("category"), rating.get("probability"))


def _as_shown(candidate: LLMCandidate, at: int) -> Draft:
    index = at if candidate.index is None else candidate.index
    return Draft(list(candidate.content.parts), index)


def _texts(drafts: Sequence[Draft]) -> list[str]:
    return ["".join(draft.texts) for draft in drafts]


def _shown_texts(seen: LLMResponse) -> list[str]:
    return ["".join(candidate.content.parts) for candidate in seen.candidates]


def _usage(parts: Mapping[str, Any], seen: LLMResponse) -> LLMUsage | None:
    said = parts.get("usageMetadata")
    if not said:
        return None
    usage = LLMUsage(
        said.get("promptTokenCount"),
        said.get("candidatesTokenCount"),
        said.get("totalTokenCount"),
    )
    return None if usage == seen.usage_metadata else usage
