"""Translate requests and responses: the part that is the same for every SDK.

``SdkTranslator`` converts requests and responses for hooks and applies their changes.
A subclass describes how one API spells them. ``MessageListTranslator`` is the shared
part of the APIs with a list of messages whose content is a string or blocks.
"""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec
from msgspec import Struct

from hookline.errors import TranslationError
from hookline.protocol.values import same_json

from .changes import align
from .shape import (
    HookToolConfig,
    HookTranslator,
    LLMCandidate,
    LLMContent,
    LLMMessage,
    LLMRequest,
    LLMResponse,
    LLMSafetyRating,
    LLMUsage,
    RequestParts,
    ResponseParts,
    ToolConfigParts,
    messages_of,
    plain_text,
    request_parts,
    response_parts,
    tool_config_parts,
    whole_number,
    with_text,
)
from .values import (
    as_list,
    as_record,
    get,
    is_list,
    is_mapping,
    is_record,
    items,
    string_of,
    text_or_none,
    unexpected,
    with_field,
)

logger = logging.getLogger("hookline")


class Entry(Struct, frozen=True):
    """One entry of a request's history."""

    raw: Any
    message: LLMMessage | None = None
    """What hooks see; None for an entry without text."""
    has_others: bool = False
    """It holds more than text."""
    has_calls: bool = False
    """It holds tool calls or results, so it cannot be removed without its pair."""
    has_results: bool = False
    """It holds results of the entry before it, so nothing may come between."""


class SdkTranslator(HookTranslator):
    """The translator of one API.

    A subclass implements the abstract methods. ``_with_*`` return a changed copy.
    """

    name: str
    """The name of the API in warnings."""
    response_type: str
    response_fields: tuple[str, ...]
    """Fields that tell a response from other dicts; an object has the first."""
    separate_system = False
    """The system instruction is a field of its own, not one of the messages."""
    usage_fields: tuple[str, ...] = ("usage",)
    counts: tuple[tuple[str, ...], ...]
    """The names of the three token counts."""
    tool_choice_fields: tuple[str, ...] = ("tool_choice",)

    def to_hook_llm_request(self, request: Any) -> LLMRequest:
        """Convert a request for hooks (HOOK-071, 072, 075, 076)."""
        if (api := self._api_for_request(request)) is not self:
            return api.to_hook_llm_request(request)
        return self._stable_request(request, self._entries(request))

    def from_hook_llm_request(
        self,
        hook_request: RequestParts,
        base_request: Any = None,
        *,
        hook_name: str | None = None,
    ) -> Any:
        """Apply a hook's changes to a request (HOOK-078)."""
        request = self._empty_request() if base_request is None else base_request
        if (api := self._api_for_request(request)) is not self:
            return api.from_hook_llm_request(hook_request, request, hook_name=hook_name)
        parts = request_parts(hook_request, hook_name)
        entries = self._entries(request)
        seen = self._stable_request(request, entries)
        if parts.get("model") and parts["model"] != seen.model:
            request = with_field(request, parts["model"], "model")
        messages = messages_of(parts)
        if messages is not None and messages != seen.messages:
            request = self._with_messages(request, entries, messages)
        request = self._with_settings(request, seen, parts, hook_name)
        tool_config = merged_tool_config(seen.tool_config, parts.get("toolConfig"))
        if tool_config is None:
            return request
        choice = self._new_tool_choice(tool_config, request)
        return self._with_option(request, choice, *self.tool_choice_fields)

    def to_hook_llm_response(self, response: Any) -> LLMResponse:
        """Convert a response for hooks (HOOK-073, 077)."""
        if (api := self._api_for_response(response)) is not self:
            return api.to_hook_llm_response(response)
        candidates = self._candidates(response)
        return with_text(LLMResponse(candidates, None, self._usage(response)))

    def from_hook_llm_response(
        self,
        hook_response: ResponseParts,
        base_response: Any = None,
        *,
        hook_name: str | None = None,
    ) -> Any:
        """Build the response that a hook returned, or keep the base (HOOK-079)."""
        base, seen = base_response, LLMResponse([])
        if base is not None:
            if (api := self._api_for_response(base)) is not self:
                return api.from_hook_llm_response(
                    hook_response, base, hook_name=hook_name
                )
            seen = self.to_hook_llm_response(base)
        parts = response_parts(hook_response, hook_name)
        candidates = new_candidates(parts, seen)
        if base is not None:
            if is_same_text(candidates, seen.candidates):
                return base
            if lost := ", ".join(self._calls(base)):
                problem = f"replaced a response: its tool calls are lost ({lost})"
                _warn(hook_name, problem)
        return self._new_response(candidates, _new_usage(parts, seen), base)

    def replaced_response(self, hook_response: ResponseParts, base: Any) -> Any:
        """Build a response from nothing; of the base only the kind counts."""
        with suppress(TranslationError):
            if (api := self._api_for_response(base)) is not self:
                return api.replaced_response(hook_response, base)
        candidates = new_candidates(response_parts(hook_response), LLMResponse([]))
        return self._new_response(candidates, None, {} if is_mapping(base) else None)

    def from_hook_tool_config(
        self, hook_tool_config: ToolConfigParts, base_request: Any = None
    ) -> Any:
        """Write which tools may be called."""
        if base_request is not None:
            api = self._api_for_request(base_request)
            if api is not self:
                return api.from_hook_tool_config(hook_tool_config, base_request)
        tool_config = tool_config_parts(hook_tool_config)
        return self._new_tool_choice(tool_config, base_request)

    def carries_names(self, hook_tool_config: ToolConfigParts) -> bool:
        """Whether the API can restrict a call to the allowed names."""
        return self._carries_names(tool_config_parts(hook_tool_config))

    def tool_names(self, request: Any) -> list[str]:
        """List the names of the functions that a request offers."""
        self._api_for_request(request)
        return [name for tool in self._tools(request) for name in self._names_in(tool)]

    def limit_tools(self, request: Any, names: Collection[str]) -> Any:
        """Remove all other tools, those that the service runs itself included."""
        self._api_for_request(request)
        request = self._without_service_fields(request, names)
        given = get(self._options(request), "tools")
        if given is None:
            return request
        limited = [self._limited_tool(tool, names) for tool in items(given)]
        kept = [tool for tool in limited if tool is not None]
        same = is_list(given) and list(map(id, kept)) == list(map(id, given))
        return request if same else self._with_tools(request, kept)

    def api_for(self, request: Any) -> SdkTranslator:
        """Choose the API that a request belongs to; this one if it is unreadable."""
        with suppress(TranslationError):
            return self._api_for_request(request)
        return self

    def _api_for_request(self, request: Any) -> SdkTranslator:
        """Check the type of a request and choose the API that it belongs to."""
        as_record(request, "request")
        return self

    def _api_for_response(self, response: Any) -> SdkTranslator:
        """Check the type of a response and choose the API that it belongs to."""
        if not self.is_response(response):
            raise unexpected("response", self.response_type, response)
        return self

    def is_response(self, value: Any) -> bool:
        """Tell a response of this API from any other value."""
        if is_mapping(value):
            return any(name in value for name in self.response_fields)
        return is_record(value) and hasattr(value, self.response_fields[0])

    @abstractmethod
    def _entries(self, request: Any) -> list[Entry]:
        """Read the history, entries without text included."""

    @abstractmethod
    def _config(self, request: Any) -> dict[str, Any]:
        """Read the settings that hooks may see, in stable spelling."""

    def _options(self, request: Any) -> Any:
        """Return what holds the settings, the tools and the choice of tools."""
        return request

    def _with_option(self, request: Any, value: Any, *names: str) -> Any:
        """Change one of them; None removes it."""
        return with_field(request, value, *names)

    @abstractmethod
    def _empty_request(self) -> Any:
        """Make a request without messages."""

    @abstractmethod
    def _with_text(self, raw: Any, text: str | None) -> Any:
        """Put a text into the first text part of an entry and drop the other ones.

        None drops all; the entry holds more than text then.
        """

    @abstractmethod
    def _new_entry(self, message: LLMMessage, request: Any) -> Any:
        """Make an entry of the same kind as those of the request."""

    @abstractmethod
    def _with_entries(self, request: Any, raws: list[Any], *, added: bool) -> Any:
        """Change the history; ``added`` if there are new entries in it."""

    def _with_system(self, request: Any, texts: Sequence[str]) -> Any:
        """Append to the system instruction, if it is a field of its own."""
        raise AssertionError(f"{self.name} has system messages: {request} {texts}")

    @abstractmethod
    def _with_config(self, request: Any, key: str, value: Any) -> Any:
        """Change one setting (None removes it); return None for an unknown one."""

    @abstractmethod
    def _new_tool_choice(self, tool_config: HookToolConfig, request: Any) -> Any:
        """Write which tools may be called, as ``to_hook_tool_config`` reads it."""

    @abstractmethod
    def _carries_names(self, tool_config: HookToolConfig) -> bool:
        """Whether the API can restrict a call to the allowed names."""

    def _tools(self, request: Any) -> list[Any]:
        return items(get(self._options(request), "tools"))

    @abstractmethod
    def _names_in(self, tool: Any) -> list[str]:
        """List the names of the functions in one tool, none if the service runs it."""

    def _limited_tool(self, tool: Any, names: Collection[str]) -> Any:
        """Remove all other functions from a tool; None if nothing is left."""
        found = self._names_in(tool)
        return tool if found and all(name in names for name in found) else None

    def _without_service_fields(self, request: Any, names: Collection[str]) -> Any:
        """Remove tools that a request offers in fields other than ``tools``."""
        return request

    @abstractmethod
    def _with_tools(self, request: Any, tools: list[Any]) -> Any:
        """Change the tools that a request offers."""

    @abstractmethod
    def _candidates(self, response: Any) -> list[LLMCandidate]:
        """Read the candidates of a response."""

    def _usage(self, response: Any) -> LLMUsage | None:
        """Read the token counts of a response."""
        usage = get(response, *self.usage_fields)
        if not is_record(usage):
            return None
        return LLMUsage(*(whole_number(get(usage, *names)) for names in self.counts))

    @abstractmethod
    def _calls(self, response: Any) -> list[str]:
        """List the tool calls that a rebuilt response would lose."""

    @abstractmethod
    def _new_response(
        self, candidates: Sequence[LLMCandidate], usage: LLMUsage | None, base: Any
    ) -> Any:
        """Build a response from text; what is None stays as in the base."""

    def _stable_request(self, request: Any, entries: list[Entry]) -> LLMRequest:
        return LLMRequest(
            string_of(get(request, "model")) or "",
            [entry.message for entry in entries if entry.message is not None],
            self._config(request) or None,
            self._tool_config(request),
        )

    def _tool_config(self, request: Any) -> HookToolConfig | None:
        choice = get(self._options(request), *self.tool_choice_fields)
        if choice is not None:
            # It holds nothing that a guard looks for: one that is unreadable is no
            # reason to keep the messages from it.
            with suppress(TranslationError):
                return self.to_hook_tool_config(choice)
        return None

    def _with_messages(
        self, request: Any, entries: list[Entry], messages: list[LLMMessage]
    ) -> Any:
        pairs = list(zip(_origins(entries, messages), messages, strict=True))
        kept = dict(pairs)
        added, system = self._added(entries, pairs)
        raws: list[Any] = []
        for at, entry in enumerate([*entries, None]):
            raws += [self._new_entry(message, request) for message in added.get(at, ())]
            raws += self._kept(entry, kept.get(at)) if entry else []
        if [id(raw) for raw in raws] != [id(entry.raw) for entry in entries]:
            request = self._with_entries(request, raws, added=bool(added))
        return self._with_system(request, system) if system else request

    def _added(
        self, entries: list[Entry], pairs: list[tuple[int | None, LLMMessage]]
    ) -> tuple[dict[int, list[LLMMessage]], list[str]]:
        """Split added messages into system text and those before each entry."""
        added: dict[int, list[LLMMessage]] = defaultdict(list)
        system: list[str] = []
        place = len(entries)
        for at, message in reversed(pairs):
            if at is not None:
                place = _after_results(entries, at)
            elif self.separate_system and message.role == "system":
                system.append(message.content)
            else:
                added[place].append(message)
        return {at: found[::-1] for at, found in added.items()}, system[::-1]

    def _kept(self, entry: Entry, message: LLMMessage | None) -> list[Any]:
        if entry.message is None or message == entry.message:
            return [entry.raw]
        if message and message.content:
            return [self._with_text(entry.raw, message.content)]
        if entry.has_calls or (message and entry.has_others):
            return [self._with_text(entry.raw, None)]
        return [self._with_text(entry.raw, "")] if message else []

    def _with_settings(
        self, request: Any, seen: LLMRequest, parts: dict[str, Any], hook: str | None
    ) -> Any:
        before = seen.config or {}
        for key, value in (parts.get("config") or {}).items():
            if same_json(before.get(key), value):
                continue
            changed = self._with_config(request, key, value)
            if changed is None:
                _warn(hook, f"set config.{key}, which {self.name} does not have")
            else:
                request = changed
        return request


_THOUGHTS = frozenset(
    {"thinking", "redacted_thinking", "reasoning", "reasoning_text", "summary_text"}
)


class MessageListTranslator(SdkTranslator):
    """The shared part of the OpenAI and Anthropic APIs, which take dicts."""

    request_type: str
    text_types = frozenset({"text", "input_text", "output_text"})
    cache_field: str
    """It marks a block as the end of a cached prefix."""
    messages_field = "messages"
    roles: Mapping[str, str]
    finish_reasons: Mapping[str, str]
    """Both by the API's own name, with the stable one; unknown names pass."""
    call_reasons: tuple[str, ...] = ()
    """The reasons of responses with calls."""
    settings: Mapping[str, tuple[str, ...]]
    """The stable name of each setting, with the names that the API has for it."""
    tool_fields: tuple[str, ...] = ("tools", "tool_choice")
    """Fields that the service refuses without tools."""

    def _api_for_request(self, request: Any) -> SdkTranslator:
        if not isinstance(request, Mapping):
            raise unexpected("request", self.request_type, request)
        return self

    def _entries(self, request: Any) -> list[Entry]:
        name = self.messages_field
        if name not in request:
            raise unexpected("request", self.request_type, request)
        found = as_list(get(request, name), name)
        return [self._entry(raw, f"{name}[{at}]") for at, raw in enumerate(found)]

    @abstractmethod
    def _entry(self, raw: Any, place: str) -> Entry:
        """Read one message."""

    def _message(self, role: str, texts: list[str]) -> LLMMessage | None:
        """Make the message that hooks see; None without text."""
        text = "".join(texts)
        return LLMMessage(self.roles.get(role, role), text) if text else None

    def _config(self, request: Any) -> dict[str, Any]:
        found = {key: get(request, *names) for key, names in self.settings.items()}
        return {key: value for key, value in found.items() if value is not None}

    def _with_config(self, request: Any, key: str, value: Any) -> Any:
        names = self.settings.get(key)
        return with_field(request, value, *names) if names else None

    def _empty_request(self) -> Any:
        return {"model": "", self.messages_field: []}

    def _with_text(self, raw: Any, text: str | None) -> Any:
        content = self._replace_text(get(raw, "content"), text)
        return with_field(raw, content, "content")

    def _read_blocks(self, content: Any, place: str) -> tuple[list[str], list[str]]:
        """Read the texts of a message's content, and the types of its other blocks."""
        if content is None:
            return [], []
        if isinstance(content, str):
            return [str.__str__(content)], []
        if not is_list(content):
            raise unexpected(place, "a string or a list", content)
        texts: list[str] = []
        others: list[str] = []
        for at, block in enumerate(content):
            where = f"{place}[{at}]"
            if self._is_text(block):
                texts.append(_block_text(block, where))
            else:
                kind = get(as_record(block, where), "type")
                others.append(text_or_none(kind, f"{where}.type") or "")
        return texts, others

    def _replace_text(self, content: Any, text: str | None) -> Any:
        """Put a text into the first text block and drop the others; None drops all."""
        if content is None or isinstance(content, str):
            return text
        blocks = list(content)
        if text is None:
            return [block for block in blocks if not self._is_text(block)] or None
        texts = [block for block in blocks if self._is_text(block)]
        first = blocks.index(texts[0])
        edited = self._edited(texts, text)
        rest = [block for block in blocks[first + 1 :] if not self._is_text(block)]
        return [*blocks[:first], edited, *rest]

    def _edited(self, texts: list[Any], text: str) -> Any:
        if isinstance(texts[0], str):
            return text
        edited = with_field(texts[0], text, "text")
        marks = [mark for block in texts if (mark := _mark(block, self.cache_field))]
        if marks and get(edited, self.cache_field) is None:
            # The mark stands at the end of the cached text, which is now this block.
            return with_field(edited, marks[-1], self.cache_field)
        return edited

    def _is_text(self, block: Any) -> bool:
        if isinstance(block, str):
            return True
        kind = string_of(get(block, "type"))
        if kind in self.text_types:
            return True
        # No new or misspelt type hides text from hooks.
        return kind not in _THOUGHTS and plain_text(get(block, "text")) is not None

    def _new_entry(self, message: LLMMessage, request: Any) -> Any:
        role = "assistant" if message.role == "model" else message.role
        return {"role": role, "content": message.content}

    def _with_entries(self, request: Any, raws: list[Any], *, added: bool) -> Any:
        return with_field(request, raws, self.messages_field)

    def _with_tools(self, request: Any, tools: list[Any]) -> Any:
        if tools:
            return {**request, "tools": tools}
        return {k: v for k, v in request.items() if k not in self.tool_fields}

    def _candidate(
        self, texts: list[str], reason: Any, index: int | None = 0
    ) -> LLMCandidate:
        own = string_of(reason)
        stable = self.finish_reasons.get(own or "", own)
        return LLMCandidate(LLMContent("model", texts), stable, index)

    def _own_reason(self, reason: str | None, before: Any) -> Any:
        """Choose the reason of a rebuilt response, which has no calls."""
        if reason is None and before not in (None, *self.call_reasons):
            return before
        return own_name(self.finish_reasons, "STOP" if reason is None else reason)


def own_name(names: Mapping[str, str], stable: str) -> str:
    """Translate a stable name back; an unknown one passes."""
    return next((own for own, name in names.items() if name == stable), stable)


def _block_text(block: Any, place: str) -> str:
    if isinstance(block, str):
        return str.__str__(block)
    return text_or_none(get(block, "text"), f"{place}.text") or ""


def _mark(block: Any, field: str) -> Any:
    return None if isinstance(block, str) else get(block, field)


def new_candidates(parts: Mapping[str, Any], seen: LLMResponse) -> list[LLMCandidate]:
    """Decide the text of each candidate: a hook may change them or ``text``.

    What it returned unchanged does not count beside what it changed.
    """
    unchanged = [
        LLMCandidate(one.content, index=at if one.index is None else one.index)
        for at, one in enumerate(seen.candidates)
    ]
    if "candidates" not in parts and "text" not in parts:
        return unchanged
    found = unchanged
    if "candidates" in parts:
        # An answer without candidates is an empty one: callers read the first.
        given = parts["candidates"] or [{"content": {"parts": []}}]
        found = [_new_candidate(one, at, seen) for at, one in enumerate(given)]
        if not is_same_text(found, seen.candidates):
            return found
    text = parts.get("text")
    if text is None or (texts_of(found) or [""])[0] == text:
        return found
    first = msgspec.structs.replace(
        first_candidate(found), content=LLMContent("model", [text] if text else [])
    )
    # It is the whole answer: the other candidates may hold what was taken out.
    return [first]


def first_candidate(candidates: Sequence[LLMCandidate]) -> LLMCandidate:
    """Return the first candidate, or an empty one."""
    return next(iter(candidates), LLMCandidate(LLMContent("model", []), index=0))


def _new_candidate(
    candidate: Mapping[str, Any], at: int, seen: LLMResponse
) -> LLMCandidate:
    before = seen.candidates[at] if at < len(seen.candidates) else None
    reason = candidate.get("finishReason")
    return LLMCandidate(
        LLMContent("model", list(candidate["content"]["parts"])),
        None if before and reason == before.finish_reason else reason,
        candidate.get("index") or at,
        msgspec.convert(candidate.get("safetyRatings"), list[LLMSafetyRating] | None),
    )


def read_ratings(ratings: Any) -> list[LLMSafetyRating] | None:
    """Read the safety ratings of a candidate (HOOK-077)."""
    if not is_list(ratings):
        return None
    return [
        LLMSafetyRating(
            string_of(get(one, "category")), string_of(get(one, "probability"))
        )
        for one in ratings
        if is_record(one)
    ]


def texts_of(candidates: Iterable[LLMCandidate]) -> list[str]:
    """Return the text of each candidate."""
    return ["".join(candidate.content.parts) for candidate in candidates]


def is_same_text(new: list[LLMCandidate], old: list[LLMCandidate]) -> bool:
    """Whether two answers are the same; none at all is an empty one."""
    return (texts_of(new) or [""]) == (texts_of(old) or [""])


def _new_usage(parts: Mapping[str, Any], seen: LLMResponse) -> LLMUsage | None:
    counts = parts.get("usageMetadata")
    if not counts:
        return None
    usage = msgspec.convert(counts, LLMUsage)
    return None if usage == seen.usage_metadata else usage


def _origins(entries: list[Entry], messages: list[LLMMessage]) -> list[int | None]:
    """Give the index of the entry for each message; None for an added one."""
    visible = [at for at, entry in enumerate(entries) if entry.message is not None]
    shown = [entry.message for entry in entries if entry.message is not None]
    return [None if at is None else visible[at] for at in align(shown, messages)]


def _after_results(entries: list[Entry], place: int) -> int:
    # Services refuse a call that is not followed by its result at once.
    while place < len(entries) and entries[place].has_results:
        place += 1
    return place


def merged_tool_config(
    seen: HookToolConfig | None, wanted: Any
) -> HookToolConfig | None:
    """Complete a hook's choice of tools from the request's; None if nothing changes."""
    if wanted is None:
        return None
    seen, new = seen or HookToolConfig(), tool_config_parts(wanted)
    names = new.allowed_function_names
    if names is None:
        names = seen.allowed_function_names
    merged = HookToolConfig(new.mode or seen.mode, names)
    return None if merged == seen else merged


def _warn(hook_name: str | None, problem: str) -> None:
    hook = f"hook {hook_name!r}" if hook_name else "a hook"
    logger.warning("%s %s", hook, problem)
