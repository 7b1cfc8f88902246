"""Translate requests and responses: the part that is the same for every SDK.

``SdkTranslator`` converts requests and responses for hooks and applies their changes.
A subclass describes how one API spells them.
"""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
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
    unknown_values_allowed,
    with_field,
)

logger = logging.getLogger("hookline")

_UNREADABLE = (AttributeError, LookupError, TypeError, ValueError, RecursionError)
_THOUGHTS = frozenset(
    {"thinking", "redacted_thinking", "reasoning", "reasoning_text", "summary_text"}
)


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

    The defaults are those of an API that takes a dict with a list of messages, whose
    content is a string or blocks. ``_with_*`` return a changed copy.
    """

    name: str
    """The name of the API in warnings."""
    request_type: str
    response_type: str
    chunk_type: str
    assembled: Callable[[list[Any]], Any]
    """Makes the whole response of chunks; may raise any error of a wrong type."""
    response_fields: tuple[str, ...]
    """Fields that tell a response from other dicts; an object has the first."""
    messages_field = "messages"
    separate_system = False
    """The system instruction is a field of its own, not one of the messages."""
    text_types = frozenset({"text", "input_text", "output_text"})
    cache_field = ""
    """It marks a block as the end of a cached prefix."""
    roles: Mapping[str, str]
    finish_reasons: Mapping[str, str]
    """Both by the API's own name, with the stable one; unknown names pass."""
    call_reasons: tuple[str, ...] = ()
    """The reasons of responses with calls."""
    settings: Mapping[str, tuple[str, ...]]
    """The stable name of each setting, with the names that the API has for it."""
    usage_fields: tuple[str, ...] = ("usage",)
    counts: tuple[tuple[str, ...], ...]
    """The names of the three token counts."""
    tool_choice_fields: tuple[str, ...] = ("tool_choice",)
    tool_fields: tuple[str, ...] = ("tools", "tool_choice")
    """Fields that the service refuses without tools."""

    def to_hook_llm_request(self, request: Any) -> LLMRequest:
        """Convert a request for hooks."""
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
        """Apply a hook's changes to a request."""
        request = self._empty_request() if base_request is None else base_request
        if (api := self._api_for_request(request)) is not self:
            return api.from_hook_llm_request(hook_request, request, hook_name=hook_name)
        parts = request_parts(hook_request, hook_name)
        entries = self._entries(request)
        before = self._stable_request(request, entries)
        if parts.get("model") and parts["model"] != before.model:
            request = with_field(request, parts["model"], "model")
        messages = messages_of(parts)
        if messages is not None and messages != before.messages:
            request = self._with_messages(request, entries, messages)
        for key, setting in (parts.get("config") or {}).items():
            if same_json((before.config or {}).get(key), setting):
                continue
            changed_request = self._with_config(request, key, setting)
            if changed_request is None:
                problem = f"set config.{key}, which {self.name} does not have"
                _warn(hook_name, problem)
            else:
                request = changed_request
        tool_config = merged_tool_config(before.tool_config, parts.get("toolConfig"))
        if tool_config is None:
            return request
        choice = self._new_tool_choice(tool_config, request)
        return self._with_option(request, choice, *self.tool_choice_fields)

    def to_hook_llm_response(self, response: Any) -> LLMResponse:
        """Convert a response for hooks."""
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
        """Build the response that a hook returned, or keep the base."""
        before = LLMResponse([])
        if base_response is not None:
            if (api := self._api_for_response(base_response)) is not self:
                return api.from_hook_llm_response(
                    hook_response, base_response, hook_name=hook_name
                )
            before = self.to_hook_llm_response(base_response)
        parts = response_parts(hook_response, hook_name)
        candidates = new_candidates(parts, before)
        if base_response is not None:
            if _is_same_text(candidates, before.candidates):
                return base_response
            if calls := ", ".join(self._calls(base_response)):
                problem = f"replaced a response: its tool calls are lost ({calls})"
                _warn(hook_name, problem)
        usage = msgspec.convert(parts.get("usageMetadata") or None, LLMUsage | None)
        if usage == before.usage_metadata:
            usage = None
        return self._new_response(candidates, usage, base_response)

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

    def tool_names(self, request: Any) -> list[str]:
        """List the names of the functions that a request offers."""
        self._api_for_request(request)
        tools = items(get(self._options(request), "tools"))
        return [name for tool in tools for name in self._names_in(tool)]

    def limit_tools(self, request: Any, names: Collection[str]) -> Any:
        """Remove all other tools, those that the service runs itself included."""
        self._api_for_request(request)
        request = self._without_service_fields(request, names)
        tools = get(self._options(request), "tools")
        if tools is None:
            return request
        limited = [self._limited_tool(tool, names) for tool in items(tools)]
        limited = [tool for tool in limited if tool is not None]
        if is_list(tools) and list(map(id, limited)) == list(map(id, tools)):
            return request
        return self._with_tools(request, limited)

    def assemble_response(self, chunks: Iterable[Any]) -> Any:
        """Assemble the whole response from the chunks of a stream."""
        try:
            with unknown_values_allowed():
                checked = list(chunks)
                for at, chunk in enumerate(checked):
                    if not self._is_chunk(chunk):
                        raise unexpected(f"chunks[{at}]", self.chunk_type, chunk)
                if not checked:
                    raise TranslationError("chunks: expected at least one, got none")
                return self.assembled(checked)
        except _UNREADABLE as error:
            # Without its text, which may quote the answer.
            name = type(error).__name__
            raise TranslationError(f"chunks: cannot be assembled: {name}") from error

    def _is_chunk(self, chunk: Any) -> bool:
        return is_record(chunk)

    def api_for(self, request: Any) -> SdkTranslator:
        """Choose the API that a request belongs to; this one if it is unreadable."""
        with suppress(TranslationError):
            return self._api_for_request(request)
        return self

    def _api_for_request(self, request: Any) -> SdkTranslator:
        """Check the type of a request and choose the API that it belongs to."""
        if not isinstance(request, Mapping):
            raise unexpected("request", self.request_type, request)
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

    def _entries(self, request: Any) -> list[Entry]:
        """Read the history, entries without text included."""
        field = self.messages_field
        if field not in request:
            raise unexpected("request", self.request_type, request)
        raws = as_list(get(request, field), field)
        return [self._entry(raw, f"{field}[{at}]") for at, raw in enumerate(raws)]

    @abstractmethod
    def _entry(self, raw: Any, place: str) -> Entry:
        """Read one entry of the history."""

    def _message(self, role: str, texts: list[str]) -> LLMMessage | None:
        """Make the message that hooks see; None without text."""
        text = "".join(texts)
        return LLMMessage(self.roles.get(role, role), text) if text else None

    def _config(self, request: Any) -> dict[str, Any]:
        """Read the settings that hooks may see, in stable spelling."""
        config = {key: get(request, *names) for key, names in self.settings.items()}
        return {key: setting for key, setting in config.items() if setting is not None}

    def _with_config(self, request: Any, key: str, value: Any) -> Any:
        """Change one setting (None removes it); return None for an unknown one."""
        names = self.settings.get(key)
        return with_field(request, value, *names) if names else None

    def _options(self, request: Any) -> Any:
        """Return what holds the settings, the tools and the choice of tools."""
        return request

    def _with_option(self, request: Any, value: Any, *names: str) -> Any:
        """Change one of them; None removes it."""
        return with_field(request, value, *names)

    def _empty_request(self) -> Any:
        """Make a request without messages."""
        return {"model": "", self.messages_field: []}

    def _with_text(self, raw: Any, text: str | None) -> Any:
        """Put a text into the first text part of an entry and drop the other ones.

        None drops all; the entry holds more than text then.
        """
        content = self._replace_text(get(raw, "content"), text)
        return with_field(raw, content, "content")

    def _new_entry(self, message: LLMMessage, request: Any) -> Any:
        """Make an entry of the same kind as those of the request."""
        role = "assistant" if message.role == "model" else message.role
        return {"role": role, "content": message.content}

    def _with_entries(self, request: Any, raws: list[Any], *, added: bool) -> Any:
        """Change the history; ``added`` if there are new entries in it."""
        return with_field(request, raws, self.messages_field)

    def _with_system(self, request: Any, texts: Sequence[str]) -> Any:
        """Append to the system instruction, if it is a field of its own."""
        raise AssertionError(f"{self.name} has system messages: {request} {texts}")

    @abstractmethod
    def _new_tool_choice(self, tool_config: HookToolConfig, request: Any) -> Any:
        """Write which tools may be called, as ``to_hook_tool_config`` reads it."""

    @abstractmethod
    def _names_in(self, tool: Any) -> list[str]:
        """List the names of the functions in one tool, none if the service runs it."""

    def _limited_tool(self, tool: Any, names: Collection[str]) -> Any:
        """Remove all other functions from a tool; None if nothing is left."""
        functions = self._names_in(tool)
        return tool if functions and all(name in names for name in functions) else None

    def _without_service_fields(self, request: Any, names: Collection[str]) -> Any:
        """Remove tools that a request offers in fields other than ``tools``."""
        return request

    def _with_tools(self, request: Any, tools: list[Any]) -> Any:
        """Change the tools that a request offers."""
        if tools:
            return {**request, "tools": tools}
        return {k: v for k, v in request.items() if k not in self.tool_fields}

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
        choice = get(self._options(request), *self.tool_choice_fields)
        tool_config = None
        if choice is not None:
            # It holds nothing that a guard looks for: one that is unreadable is no
            # reason to keep the messages from it.
            with suppress(TranslationError):
                tool_config = self.to_hook_tool_config(choice)
        return LLMRequest(
            string_of(get(request, "model")) or "",
            [entry.message for entry in entries if entry.message is not None],
            self._config(request) or None,
            tool_config,
        )

    def _with_messages(
        self, request: Any, entries: list[Entry], messages: list[LLMMessage]
    ) -> Any:
        with_messages = [at for at, entry in enumerate(entries) if entry.message]
        before = [entry.message for entry in entries if entry.message]
        changed: dict[int, LLMMessage] = {}
        added: dict[int, list[Any]] = defaultdict(list)
        system: list[str] = []
        place = len(entries)
        origins = align(before, messages)
        for origin, message in reversed(list(zip(origins, messages, strict=True))):
            if origin is not None:
                place = with_messages[origin]
                changed[place] = message
                # Services refuse a call that is not followed by its result at once.
                while place < len(entries) and entries[place].has_results:
                    place += 1
            elif self.separate_system and message.role == "system":
                system.insert(0, message.content)
            else:
                added[place].insert(0, self._new_entry(message, request))
        raws: list[Any] = []
        for at, entry in enumerate(entries):
            raws += added.get(at, ())
            new_message = changed.get(at)
            if new_message == entry.message:
                raws.append(entry.raw)
            elif new_message and new_message.content:
                raws.append(self._with_text(entry.raw, new_message.content))
            elif entry.has_calls or (new_message and entry.has_others):
                raws.append(self._with_text(entry.raw, None))
            elif new_message:
                raws.append(self._with_text(entry.raw, ""))
        raws += added.get(len(entries), ())
        if list(map(id, raws)) != [id(entry.raw) for entry in entries]:
            request = self._with_entries(request, raws, added=bool(added))
        return self._with_system(request, system) if system else request

    def _read_blocks(self, content: Any, place: str) -> tuple[list[str], list[str]]:
        """Read the texts of a message's content, and the types of its other blocks."""
        if content is None:
            return [], []
        if isinstance(content, str):
            return [str.__str__(content)], []
        if not is_list(content):
            raise unexpected(place, "a string or a list", content)
        texts: list[str] = []
        other_types: list[str] = []
        for at, block in enumerate(content):
            where = f"{place}[{at}]"
            if isinstance(block, str):
                texts.append(str.__str__(block))
            elif self._is_text(block):
                texts.append(text_or_none(get(block, "text"), f"{where}.text") or "")
            else:
                kind = get(as_record(block, where), "type")
                other_types.append(text_or_none(kind, f"{where}.type") or "")
        return texts, other_types

    def _replace_text(self, content: Any, text: str | None) -> Any:
        """Put a text into the first text block and drop the others; None drops all."""
        if content is None or isinstance(content, str):
            return text
        texts = [block for block in content if self._is_text(block)]
        edited: list[Any] = []
        if text is not None:
            edited = [text]
            if not isinstance(texts[0], str):
                edited = [with_field(texts[0], text, "text")]
                marks = [
                    mark
                    for block in texts
                    if not isinstance(block, str)
                    and (mark := get(block, self.cache_field))
                ]
                if marks and get(edited[0], self.cache_field) is None:
                    # It stands at the end of the cached text, which is now this block.
                    edited = [with_field(edited[0], marks[-1], self.cache_field)]
        blocks: list[Any] = []
        for block in content:
            if self._is_text(block):
                blocks += edited
                edited = []
            else:
                blocks.append(block)
        return blocks if text is not None else blocks or None

    def _is_text(self, block: Any) -> bool:
        if isinstance(block, str):
            return True
        kind = string_of(get(block, "type"))
        if kind in self.text_types:
            return True
        # No new or misspelt type hides text from hooks.
        return kind not in _THOUGHTS and plain_text(get(block, "text")) is not None

    def _candidate(
        self, texts: list[str], reason: Any, index: int | None = 0
    ) -> LLMCandidate:
        name = string_of(reason)
        stable_name = self.finish_reasons.get(name or "", name)
        return LLMCandidate(LLMContent("model", texts), stable_name, index)

    def _own_reason(self, reason: str | None, before: Any) -> Any:
        """Choose the reason of a rebuilt response, which has no calls."""
        if reason is None and before not in (None, *self.call_reasons):
            return before
        return own_name(self.finish_reasons, "STOP" if reason is None else reason)


def own_name(names: Mapping[str, str], stable_name: str) -> str:
    """Translate a stable name back; an unknown one passes."""
    return next(
        (name for name, stable in names.items() if stable == stable_name), stable_name
    )


def new_candidates(parts: Mapping[str, Any], before: LLMResponse) -> list[LLMCandidate]:
    """Decide the text of each candidate: a hook may change them or ``text``.

    What it returned unchanged does not count beside what it changed.
    """
    candidates = [
        LLMCandidate(
            candidate.content, index=at if candidate.index is None else candidate.index
        )
        for at, candidate in enumerate(before.candidates)
    ]
    if "candidates" in parts:
        # An answer without candidates is an empty one: callers read the first.
        returned = parts["candidates"] or [{"content": {"parts": []}}]
        candidates = []
        for at, fields in enumerate(returned):
            reason = fields.get("finishReason")
            is_known = at < len(before.candidates)
            if is_known and reason == before.candidates[at].finish_reason:
                reason = None
            candidates.append(
                LLMCandidate(
                    LLMContent("model", list(fields["content"]["parts"])),
                    reason,
                    fields.get("index") or at,
                    msgspec.convert(
                        fields.get("safetyRatings"), list[LLMSafetyRating] | None
                    ),
                )
            )
        if not _is_same_text(candidates, before.candidates):
            return candidates
    text = parts.get("text")
    first = first_candidate(candidates)
    if text is None or "".join(first.content.parts) == text:
        return candidates
    content = LLMContent("model", [text] if text else [])
    # It is the whole answer: the other candidates may hold what was taken out.
    return [msgspec.structs.replace(first, content=content)]


def first_candidate(candidates: Sequence[LLMCandidate]) -> LLMCandidate:
    """Return the first candidate, or an empty one."""
    return next(iter(candidates), LLMCandidate(LLMContent("model", []), index=0))


def read_ratings(ratings: Any) -> list[LLMSafetyRating] | None:
    """Read the safety ratings of a candidate."""
    if not is_list(ratings):
        return None
    return [
        LLMSafetyRating(
            string_of(get(rating, "category")), string_of(get(rating, "probability"))
        )
        for rating in ratings
        if is_record(rating)
    ]


def _is_same_text(a: list[LLMCandidate], b: list[LLMCandidate]) -> bool:
    """Whether two answers are the same; none at all is an empty one."""
    texts = [
        ["".join(candidate.content.parts) for candidate in candidates] or [""]
        for candidates in (a, b)
    ]
    return texts[0] == texts[1]


def merged_tool_config(
    before: HookToolConfig | None, changes: Any
) -> HookToolConfig | None:
    """Complete a hook's choice of tools from the request's; None if nothing changes."""
    if changes is None:
        return None
    before, change = before or HookToolConfig(), tool_config_parts(changes)
    names = change.allowed_function_names
    if names is None:
        names = before.allowed_function_names
    merged = HookToolConfig(change.mode or before.mode, names)
    return None if merged == before else merged


def _warn(hook_name: str | None, problem: str) -> None:
    hook = f"hook {hook_name!r}" if hook_name else "a hook"
    logger.warning("%s %s", hook, problem)
