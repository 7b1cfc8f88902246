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
from typing import Any

import msgspec
from msgspec import Struct

from .messages import BlockTypes, align, remove_text, replace_text
from .sdk_objects import (
    as_list,
    as_record,
    count_or_none,
    get,
    is_record,
    text_or_none,
    unexpected,
    with_field,
)
from .stable import (
    HookToolConfig,
    HookTranslator,
    LLMCandidate,
    LLMContent,
    LLMMessage,
    LLMRequest,
    LLMResponse,
    LLMSafetyRating,
    LLMUsage,
    messages_of,
    request_parts,
    response_parts,
    tool_config_parts,
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
    """The translator of one API. ``with_*`` methods return changed copies."""

    name: str
    """The name of the API in warnings."""
    response_type: str
    response_fields: tuple[str, ...]
    """Fields that tell a response from other dicts; an object has the first."""
    separate_system = False
    """The system instruction is a field of its own, not one of the messages."""

    def to_hook_llm_request(self, request: Any) -> LLMRequest:
        """Convert a request for hooks (HOOK-071, 072, 075, 076)."""
        api = self.api_for_request(request)
        return api.stable_request(request, api.entries(request))

    def from_hook_llm_request(
        self,
        hook_request: LLMRequest | dict[str, Any],
        base_request: Any = None,
        *,
        hook_name: str | None = None,
    ) -> Any:
        """Apply a hook's changes to a request (HOOK-078)."""
        parts = request_parts(hook_request)
        api, request = self, base_request
        if request is None:
            request = self.empty_request()
        else:
            api = self.api_for_request(request)
        entries = api.entries(request)
        seen = api.stable_request(request, entries)
        if parts.get("model") and parts["model"] != seen.model:
            request = with_field(request, parts["model"], "model")
        messages = messages_of(parts)
        if messages is not None and messages != seen.messages:
            request = _with_messages(api, request, entries, messages)
        config = parts.get("config") or {}
        request = _with_config(api, request, seen.config or {}, config, hook_name)
        return _with_tools(api, request, seen.tool_config, parts.get("toolConfig"))

    def to_hook_llm_response(self, response: Any) -> LLMResponse:
        """Convert a response for hooks (HOOK-073, 077)."""
        api = self.api_for_response(response)
        candidates = api.candidates(response)
        parts = candidates[0].content.parts if candidates else []
        text = "".join(parts) if parts else None
        return LLMResponse(candidates, text, api.usage(response))

    def from_hook_llm_response(
        self,
        hook_response: LLMResponse | dict[str, Any],
        base_response: Any = None,
        *,
        hook_name: str | None = None,
    ) -> Any:
        """Build the response that a hook returned, or keep the base (HOOK-079)."""
        parts = response_parts(hook_response)
        if base_response is None:
            nothing = LLMResponse([])
            candidates = new_candidates(parts, nothing)
            return self.build_response(candidates, _new_usage(parts, nothing), None)
        api = self.api_for_response(base_response)
        seen = api.to_hook_llm_response(base_response)
        candidates = new_candidates(parts, seen)
        if _texts(candidates) == _texts(seen.candidates):
            return base_response
        if calls := api.calls(base_response):
            logger.warning(
                "%s replaced a response: its tool calls are lost (%s)",
                _hook_label(hook_name),
                ", ".join(calls),
            )
        return api.build_response(candidates, _new_usage(parts, seen), base_response)

    def tool_names(self, request: Any) -> list[str]:
        """List the names of the functions that a request offers."""
        api = self.api_for_request(request)
        return [name for tool in api.tools(request) for name in api.names_in(tool)]

    def limit_tools(self, request: Any, names: Collection[str]) -> Any:
        """Remove all other functions; tools that are not functions stay."""
        api = self.api_for_request(request)
        tools = api.tools(request)
        limited = [api.limited_tool(tool, names) for tool in tools]
        kept = [tool for tool in limited if tool is not None]
        return request if kept == tools else api.with_tools(request, kept)

    def api_for_request(self, request: Any) -> SdkTranslator:
        """Check the type of a request and choose the API it belongs to."""
        as_record(request, "request")
        return self

    def api_for_response(self, response: Any) -> SdkTranslator:
        """Check the type of a response and choose the API it belongs to."""
        if not self.is_response(response):
            raise unexpected("response", self.response_type, response)
        return self

    def is_response(self, value: Any) -> bool:
        """Tell a response of this API from any other value."""
        if isinstance(value, Mapping):
            return any(name in value for name in self.response_fields)
        return is_record(value) and hasattr(value, self.response_fields[0])

    def stable_request(self, request: Any, entries: list[Entry]) -> LLMRequest:
        """Convert a request whose entries have been read."""
        choice = self.tool_choice(request)
        return LLMRequest(
            text_or_none(get(request, "model"), "model") or "",
            [entry.message for entry in entries if entry.message is not None],
            self.config(request) or None,
            None if choice is None else self.to_hook_tool_config(choice),
        )

    @abstractmethod
    def entries(self, request: Any) -> list[Entry]:
        """Read the history, with or without text, in order."""

    @abstractmethod
    def config(self, request: Any) -> dict[str, Any]:
        """Read the settings that hooks may see, in stable spelling."""

    @abstractmethod
    def tool_choice(self, request: Any) -> Any:
        """Read which tools may be called, as ``to_hook_tool_config`` takes it."""

    @abstractmethod
    def empty_request(self) -> Any:
        """Make a request without messages."""

    @abstractmethod
    def with_text(self, raw: Any, text: str) -> Any:
        """Put a text into the first text part of an entry; drop the other ones."""

    @abstractmethod
    def without_text(self, raw: Any) -> Any:
        """Drop the text of an entry that holds more than text."""

    @abstractmethod
    def new_entry(self, message: LLMMessage, request: Any) -> Any:
        """Make an entry of the same kind as those of the request."""

    @abstractmethod
    def with_entries(self, request: Any, raws: list[Any], *, added: bool) -> Any:
        """Change the history; ``added`` if there are new entries in it."""

    def with_system(self, request: Any, texts: Sequence[str]) -> Any:
        """Append to the system instruction, if it is a field of its own."""
        raise AssertionError(f"{self.name} has system messages: {request} {texts}")

    @abstractmethod
    def takes_config(self, request: Any, key: str) -> bool:
        """Whether the API has a setting of this name."""

    @abstractmethod
    def with_config(self, request: Any, key: str, value: Any) -> Any:
        """Change one setting; None removes it."""

    @abstractmethod
    def with_tool_config(self, request: Any, tool_config: HookToolConfig) -> Any:
        """Change which tools may be called."""

    @abstractmethod
    def tools(self, request: Any) -> list[Any]:
        """Read the tools that a request offers."""

    @abstractmethod
    def names_in(self, tool: Any) -> list[str]:
        """List the names of the functions in one tool."""

    @abstractmethod
    def limited_tool(self, tool: Any, names: Collection[str]) -> Any:
        """Remove all other functions from a tool; None if nothing is left."""

    @abstractmethod
    def with_tools(self, request: Any, tools: list[Any]) -> Any:
        """Change the tools that a request offers."""

    @abstractmethod
    def candidates(self, response: Any) -> list[LLMCandidate]:
        """Read the candidates of a response."""

    @abstractmethod
    def usage(self, response: Any) -> LLMUsage | None:
        """Read the token counts of a response."""

    @abstractmethod
    def calls(self, response: Any) -> list[str]:
        """List the tool calls that a rebuilt response would lose."""

    @abstractmethod
    def build_response(
        self, candidates: Sequence[LLMCandidate], usage: LLMUsage | None, base: Any
    ) -> Any:
        """Build a response from text; what is None in a candidate stays as it was."""


class MessageListTranslator(SdkTranslator):
    """The shared part of the OpenAI and Anthropic APIs, which take dicts."""

    blocks: BlockTypes
    messages_field = "messages"
    roles: Mapping[str, str] = {"assistant": "model"}
    """Roles of the API that have another name in the stable shape."""
    request_type = "a dict with messages"
    tool_fields: tuple[str, ...] = ("tools", "tool_choice")
    """Fields that the service refuses without tools."""

    def api_for_request(self, request: Any) -> MessageListTranslator:
        """Require the arguments of ``create`` as a dict."""
        if not isinstance(request, Mapping):
            raise unexpected("request", self.request_type, request)
        return self

    def entries(self, request: Any) -> list[Entry]:
        """Read the messages."""
        if self.messages_field not in request:
            raise unexpected("request", self.request_type, request)
        name = self.messages_field
        found = as_list(get(request, name), name)
        return [self.entry(raw, f"{name}[{at}]") for at, raw in enumerate(found)]

    @abstractmethod
    def entry(self, raw: Any, place: str) -> Entry:
        """Read one message."""

    def shown(self, role: str, texts: list[str]) -> LLMMessage | None:
        """Make the message that hooks see; None without text."""
        text = "".join(texts)
        return LLMMessage(self.roles.get(role, role), text) if text else None

    def tool_choice(self, request: Any) -> Any:
        """Read ``tool_choice``."""
        return get(request, "tool_choice")

    def empty_request(self) -> Any:
        """Make a request without messages."""
        return {"model": "", self.messages_field: []}

    def with_text(self, raw: Any, text: str) -> Any:
        """Replace the text of a message."""
        content = replace_text(get(raw, "content"), text, self.blocks)
        return with_field(raw, content, "content")

    def without_text(self, raw: Any) -> Any:
        """Drop the text of a message."""
        content = remove_text(get(raw, "content"), self.blocks)
        return with_field(raw, content, "content")

    def new_entry(self, message: LLMMessage, request: Any) -> Any:
        """Make a message."""
        del request
        role = "assistant" if message.role == "model" else message.role
        return {"role": role, "content": message.content}

    def with_entries(self, request: Any, raws: list[Any], *, added: bool) -> Any:
        """Change the messages."""
        del added
        return with_field(request, raws, self.messages_field)

    def from_hook_tool_config(
        self,
        hook_tool_config: HookToolConfig | dict[str, Any],
        base_request: Any = None,
    ) -> Any:
        """Write a ``tool_choice``."""
        api = self if base_request is None else self.api_for_request(base_request)
        return api.write_tool_choice(tool_config_parts(hook_tool_config), base_request)

    def with_tool_config(self, request: Any, tool_config: HookToolConfig) -> Any:
        """Change ``tool_choice``."""
        choice = self.write_tool_choice(tool_config, request)
        return with_field(request, choice, "tool_choice")

    @abstractmethod
    def write_tool_choice(self, tool_config: HookToolConfig, request: Any) -> Any:
        """Write a ``tool_choice`` for a request."""

    def tools(self, request: Any) -> list[Any]:
        """Read ``tools``."""
        return as_list(get(request, "tools"), "tools")

    def limited_tool(self, tool: Any, names: Collection[str]) -> Any:
        """Keep a tool without a name: the service runs it itself."""
        return tool if all(name in names for name in self.names_in(tool)) else None

    def with_tools(self, request: Any, tools: list[Any]) -> Any:
        """Change ``tools``; without any, remove what belongs to them too."""
        if tools:
            return {**request, "tools": tools}
        return {k: v for k, v in request.items() if k not in self.tool_fields}


def read_usage(usage: Any, place: str, *counts: tuple[str, ...]) -> LLMUsage | None:
    """Read the three token counts, each by its spellings."""
    if usage is None:
        return None
    as_record(usage, place)
    return LLMUsage(
        *(count_or_none(get(usage, *names), f"{place}.{names[0]}") for names in counts)
    )


def new_candidates(parts: Mapping[str, Any], seen: LLMResponse) -> list[LLMCandidate]:
    """Decide the text of each candidate: a hook may change them or ``text``."""
    returned = [
        _new_candidate(candidate, at, seen)
        for at, candidate in enumerate(parts.get("candidates") or [])
    ]
    found = returned or [
        LLMCandidate(one.content, index=at if one.index is None else one.index)
        for at, one in enumerate(seen.candidates)
    ]
    texts, text = _texts(found), parts.get("text")
    if text is None or texts[:1] == [text]:
        return found
    if returned and any(texts) and texts != _texts(seen.candidates):
        return found  # The hook changed both, and the candidates have more detail.
    content = LLMContent("model", [text])
    first = msgspec.structs.replace(first_candidate(found), content=content)
    return [first, *found[1:]]


def first_candidate(candidates: Sequence[LLMCandidate]) -> LLMCandidate:
    """Return the first candidate, or an empty one."""
    return (
        candidates[0] if candidates else LLMCandidate(LLMContent("model", []), None, 0)
    )


def _new_candidate(
    candidate: Mapping[str, Any], at: int, seen: LLMResponse
) -> LLMCandidate:
    before = seen.candidates[at] if at < len(seen.candidates) else None
    texts = (candidate.get("content") or {}).get("parts")
    if texts is None:
        texts = before.content.parts if before else []
    reason, ratings = candidate.get("finishReason"), candidate.get("safetyRatings")
    if ratings is not None:
        ratings = [
            LLMSafetyRating(one.get("category"), one.get("probability"))
            for one in ratings
        ]
    return LLMCandidate(
        LLMContent("model", list(texts)),
        None if before and reason == before.finish_reason else reason,
        candidate.get("index") or at,
        ratings,
    )


def _texts(candidates: Iterable[LLMCandidate]) -> list[str]:
    return ["".join(candidate.content.parts) for candidate in candidates]


def _new_usage(parts: Mapping[str, Any], seen: LLMResponse) -> LLMUsage | None:
    counts = parts.get("usageMetadata")
    if not counts:
        return None
    usage = LLMUsage(
        counts.get("promptTokenCount"),
        counts.get("candidatesTokenCount"),
        counts.get("totalTokenCount"),
    )
    return None if usage == seen.usage_metadata else usage


def _with_messages(
    api: SdkTranslator, request: Any, entries: list[Entry], messages: list[LLMMessage]
) -> Any:
    origins = _origins(entries, messages)
    kept = {
        at: m.content for at, m in zip(origins, messages, strict=True) if at is not None
    }
    added, system = _added(api, entries, origins, messages)
    raws: list[Any] = []
    for at, entry in enumerate(entries):
        raws += [api.new_entry(message, request) for message in added.get(at, ())]
        raws += _kept_entry(api, entry, kept.get(at))
    last = added.get(len(entries), ())
    raws += [api.new_entry(message, request) for message in last]
    if len(raws) != len(entries) or any(
        raw is not entry.raw for raw, entry in zip(raws, entries, strict=True)
    ):
        request = api.with_entries(request, raws, added=bool(added))
    return api.with_system(request, system) if system else request


def _origins(entries: list[Entry], messages: list[LLMMessage]) -> list[int | None]:
    """Give the index of the entry for each message; None for an added one."""
    visible = [at for at, entry in enumerate(entries) if entry.message is not None]
    shown = [entry.message for entry in entries if entry.message is not None]
    return [None if at is None else visible[at] for at in align(shown, messages)]


def _added(
    api: SdkTranslator,
    entries: list[Entry],
    origins: list[int | None],
    messages: list[LLMMessage],
) -> tuple[dict[int, list[LLMMessage]], list[str]]:
    """Split added messages into entries, by the entry they precede, and system text."""
    added: dict[int, list[LLMMessage]] = defaultdict(list)
    system: list[str] = []
    place = len(entries)
    for at, message in zip(reversed(origins), reversed(messages), strict=True):
        if at is not None:
            place = _after_results(entries, at)
        elif api.separate_system and message.role == "system":
            system.append(message.content)
        else:
            added[place].append(message)
    return {at: found[::-1] for at, found in added.items()}, system[::-1]


def _after_results(entries: list[Entry], place: int) -> int:
    # Services refuse a call that is not followed by its result at once.
    while place < len(entries) and entries[place].has_results:
        place += 1
    return place


def _kept_entry(api: SdkTranslator, entry: Entry, text: str | None) -> list[Any]:
    if entry.message is None or text == entry.message.content:
        return [entry.raw]
    if text:
        return [api.with_text(entry.raw, text)]
    if entry.has_calls or (text is not None and entry.has_others):
        return [api.without_text(entry.raw)]
    return [] if text is None else [api.with_text(entry.raw, text)]


def _with_config(
    api: SdkTranslator,
    request: Any,
    seen: Mapping[str, Any],
    wanted: Mapping[str, Any],
    hook_name: str | None,
) -> Any:
    for key, value in wanted.items():
        if _equal(seen.get(key), value):
            continue
        if api.takes_config(request, key):
            request = api.with_config(request, key, value)
        else:
            logger.warning(
                "%s set config.%s, which %s does not have: ignored",
                _hook_label(hook_name),
                key,
                api.name,
            )
    return request


def _equal(old: Any, new: Any) -> bool:
    return bool(old == new) and isinstance(old, bool) == isinstance(new, bool)


def _with_tools(
    api: SdkTranslator, request: Any, seen: HookToolConfig | None, wanted: Any
) -> Any:
    if wanted is None:
        return request
    seen = seen or HookToolConfig()
    new = tool_config_parts(wanted)
    names = new.allowed_function_names
    merged = HookToolConfig(
        new.mode or seen.mode, seen.allowed_function_names if names is None else names
    )
    return request if merged == seen else api.with_tool_config(request, merged)


def _hook_label(hook_name: str | None) -> str:
    return f"hook {hook_name!r}" if hook_name else "a hook"
