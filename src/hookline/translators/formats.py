"""Show the requests and responses of any SDK, and apply a hook's changes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from .messages import align
from .stable import (
    HookToolConfig,
    LLMCandidate,
    LLMMessage,
    LLMRequest,
    LLMResponse,
    LLMSafetyRating,
    LLMUsage,
    logger,
    messages_of,
    request_parts,
    response_parts,
    tool_config_parts,
    whose,
)


class Entry(Struct, frozen=True):
    """One entry of an SDK's history, and what the house needs to know about it."""

    raw: Any
    message: LLMMessage | None = None
    """What is shown of it; None for an entry without text."""
    has_others: bool = False
    """It holds more than text."""
    has_calls: bool = False
    """It holds tool calls or results: taking it out would orphan their other half."""
    answers: bool = False
    """It holds results of the entry before it: nothing may come between."""


class RequestFormat(Protocol):
    """How one SDK spells a request. ``with_*`` copy; nothing is changed in place."""

    name: str
    system_apart: bool
    """The system instruction is a field of its own, not one of the messages."""

    def model(self, request: Any) -> str:
        """Read the model's name, empty where the request leaves it open."""
        ...

    def entries(self, request: Any) -> list[Entry]:
        """Read the history, shown or not, in order."""
        ...

    def config(self, request: Any) -> dict[str, Any]:
        """Read the settings that hooks may see, in stable spelling."""
        ...

    def tool_config(self, request: Any) -> HookToolConfig | None:
        """Read which tools may be called."""
        ...

    def blank(self) -> Any:
        """Start a request from nothing."""
        ...

    def edited(self, raw: Any, text: str) -> Any:
        """Put a text into the first text part of an entry; the other ones go."""
        ...

    def emptied(self, raw: Any) -> Any:
        """Take the text out of an entry that holds more than text."""
        ...

    def created(self, message: LLMMessage, request: Any) -> Any:
        """Make an entry, of the kind that the request is made of."""
        ...

    def with_model(self, request: Any, model: str) -> Any:
        """Change the model."""
        ...

    def with_entries(self, request: Any, raws: list[Any], *, added: bool) -> Any:
        """Change the history; ``added`` says that there are new entries in it."""
        ...

    def with_system(self, request: Any, texts: Sequence[str]) -> Any:
        """Append to the system instruction, where that is a field of its own."""
        ...

    def takes_config(self, request: Any, key: str) -> bool:
        """Whether there is a place for a setting."""
        ...

    def with_config(self, request: Any, key: str, value: Any) -> Any:
        """Change one setting; None removes it."""
        ...

    def with_tool_config(self, request: Any, tool_config: HookToolConfig) -> Any:
        """Change which tools may be called."""
        ...


def show_request(form: RequestFormat, request: Any) -> LLMRequest:
    """Show the text of a request (HOOK-071, 072, 075, 076)."""
    return _shown(form, request, form.entries(request))


def change_request(
    form: RequestFormat,
    hook_request: LLMRequest | Mapping[str, Any],
    base: Any,
    hook_name: str | None = None,
) -> Any:
    """Apply what a hook returned to a base request (HOOK-078)."""
    parts = request_parts(hook_request)
    request = form.blank() if base is None else base
    entries = form.entries(request)
    seen = _shown(form, request, entries)
    if parts.get("model") and parts["model"] != seen.model:
        request = form.with_model(request, parts["model"])
    messages = messages_of(parts)
    if messages is not None and messages != seen.messages:
        request = _with_messages(form, request, entries, messages)
    config = parts.get("config") or {}
    request = _with_config(form, request, seen.config or {}, config, hook_name)
    return _with_tools(form, request, seen.tool_config, parts.get("toolConfig"))


def _shown(form: RequestFormat, request: Any, entries: list[Entry]) -> LLMRequest:
    return LLMRequest(
        form.model(request),
        [entry.message for entry in entries if entry.message is not None],
        form.config(request) or None,
        form.tool_config(request),
    )


def _with_messages(
    form: RequestFormat, request: Any, entries: list[Entry], messages: list[LLMMessage]
) -> Any:
    origin = _origins(entries, messages)
    added = _added(form, entries, origin, messages)
    raws = _rewritten(form, request, entries, added, _kept_texts(origin, messages))
    if not _same(raws, entries):
        request = form.with_entries(request, raws, added=bool(added))
    system = [
        message.content
        for at, message in zip(origin, messages, strict=True)
        if at is None and _goes_apart(form, message)
    ]
    return form.with_system(request, system) if system else request


def _origins(entries: list[Entry], messages: list[LLMMessage]) -> list[int | None]:
    """Say for each message which entry it is; None for an added one."""
    visible = [at for at, entry in enumerate(entries) if entry.message is not None]
    shown = [entry.message for entry in entries if entry.message is not None]
    return [None if at is None else visible[at] for at in align(shown, messages)]


def _kept_texts(origin: list[int | None], messages: list[LLMMessage]) -> dict[int, str]:
    pairs = zip(origin, messages, strict=True)
    return {at: message.content for at, message in pairs if at is not None}


def _rewritten(
    form: RequestFormat,
    request: Any,
    entries: list[Entry],
    added: Mapping[int, list[LLMMessage]],
    texts: Mapping[int, str],
) -> list[Any]:
    raws: list[Any] = []
    for at, entry in enumerate(entries):
        raws += [form.created(message, request) for message in added.get(at, ())]
        raws += _kept(form, entry, texts.get(at))
    last = added.get(len(entries), ())
    return [*raws, *(form.created(message, request) for message in last)]


def _goes_apart(form: RequestFormat, message: LLMMessage) -> bool:
    return form.system_apart and message.role == "system"


def _added(
    form: RequestFormat,
    entries: list[Entry],
    origin: list[int | None],
    messages: list[LLMMessage],
) -> dict[int, list[LLMMessage]]:
    """Find the entry before which each added message goes."""
    before: dict[int, list[LLMMessage]] = defaultdict(list)
    place = len(entries)
    for at, message in zip(reversed(origin), reversed(messages), strict=True):
        if at is not None:
            place = _past_answers(entries, at)
        elif not _goes_apart(form, message):
            before[place].append(message)
    return {place: messages[::-1] for place, messages in before.items()}


def _past_answers(entries: list[Entry], place: int) -> int:
    # A result has to follow its call at once, or the SDK's service refuses both.
    while place < len(entries) and entries[place].answers:
        place += 1
    return place


def _kept(form: RequestFormat, entry: Entry, text: str | None) -> list[Any]:
    if entry.message is None or text == entry.message.content:
        return [entry.raw]
    if text:
        return [form.edited(entry.raw, text)]
    if entry.has_calls or (text is not None and entry.has_others):
        return [form.emptied(entry.raw)]
    return [] if text is None else [form.edited(entry.raw, text)]


def _same(raws: list[Any], entries: list[Entry]) -> bool:
    return len(raws) == len(entries) and all(
        raw is entry.raw for raw, entry in zip(raws, entries, strict=True)
    )


def _with_config(
    form: RequestFormat,
    request: Any,
    seen: Mapping[str, Any],
    wanted: Mapping[str, Any],
    hook_name: str | None,
) -> Any:
    for key, value in wanted.items():
        if _equal(seen.get(key), value):
            continue
        if form.takes_config(request, key):
            request = form.with_config(request, key, value)
        else:
            logger.warning(
                "%s set config.%s, which has no place in a request to %s: left out",
                whose(hook_name),
                key,
                form.name,
            )
    return request


def _equal(old: Any, new: Any) -> bool:
    return bool(old == new) and isinstance(old, bool) == isinstance(new, bool)


def _with_tools(
    form: RequestFormat, request: Any, seen: HookToolConfig | None, wanted: Any
) -> Any:
    if wanted is None:
        return request
    seen = seen or HookToolConfig()
    said = tool_config_parts(wanted)
    names = said.allowed_function_names
    merged = HookToolConfig(
        said.mode or seen.mode,
        seen.allowed_function_names if names is None else names,
    )
    return request if merged == seen else form.with_tool_config(request, merged)


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
