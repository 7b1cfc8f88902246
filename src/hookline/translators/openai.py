"""The translator of openai: Chat Completions and the Responses API.

A request goes to the Responses API if it has ``input`` or another field of that API and
no ``messages``. Chat Completions nests a tool's name (``{"function": {"name": ...}}``),
the Responses API does not. Both can restrict a call to a list of names in every mode.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Sequence
from itertools import chain, pairwise, repeat
from typing import Any

import msgspec

from .base import (
    Entry,
    SdkTranslator,
    first_candidate,
    own_name,
)
from .shape import (
    HookToolConfig,
    LLMCandidate,
    LLMMessage,
    LLMUsage,
    ToolConfigParts,
    tool_config_parts,
    whole_number,
)
from .streams import assemble_openai
from .values import (
    as_list,
    as_record,
    chat_types,
    get,
    is_list,
    is_mapping,
    is_record,
    items,
    rebuilt,
    responses_types,
    string_of,
    text_at,
    text_or_none,
    unexpected,
    with_field,
)

_MODES = {"none": "NONE", "auto": "AUTO", "required": "ANY"}
_ALLOWED_TOOLS = "allowed_tools"
_CALL_SUFFIX, _RESULT_SUFFIX = "_call", "_call_output"
# The service runs these calls itself: the agent does not answer them.
_HOSTED_CALLS = frozenset(
    {
        "file_search_call", "web_search_call", "code_interpreter_call",
        "image_generation_call", "mcp_call", "tool_search_call",
    }
)  # fmt: skip
_RESPONSES_FIELDS = frozenset(
    {"input", "instructions", "previous_response_id", "conversation", "prompt"}
)
# The agent runs these itself; any other tool is run by the service, or has no name.
_NAMED_TOOLS = ("function", "custom")
_ROLES = {"assistant": "model", "developer": "system"}
_RESULT_ROLES = frozenset({"tool", "function"})

_CHAT_SETTINGS = {
    "temperature": ("temperature",),
    "topP": ("top_p",),
    "maxOutputTokens": ("max_completion_tokens", "max_tokens"),
    "stopSequences": ("stop",),
    "frequencyPenalty": ("frequency_penalty",),
    "presencePenalty": ("presence_penalty",),
    "seed": ("seed",),
    "candidateCount": ("n",),
}
_CHAT_REASONS = {
    "stop": "STOP",
    "length": "MAX_TOKENS",
    "content_filter": "SAFETY",
    "tool_calls": "STOP",
    "function_call": "STOP",
}

_RESPONSES_SETTINGS = {
    "temperature": ("temperature",),
    "topP": ("top_p",),
    "maxOutputTokens": ("max_output_tokens",),
}
_RESPONSES_REASONS = {
    "completed": "STOP",
    "max_output_tokens": "MAX_TOKENS",
    "content_filter": "SAFETY",
}
_USAGE_DETAILS = {
    "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
    "output_tokens_details": {"reasoning_tokens": 0},
}


class OpenAIApi(SdkTranslator):
    """The shared part of both APIs."""

    roles = _ROLES
    request_type = "the arguments of create() as a dict with messages or input"
    tool_fields = ("tools", "tool_choice", "parallel_tool_calls")
    cache_field = "prompt_cache_breakpoint"
    nests_names: bool
    """Whether a tool's name is nested within its type."""
    chunk_type = "a chunk or an event of openai"
    assembled = staticmethod(assemble_openai)

    def _config(self, request: Any) -> dict[str, Any]:
        config = super()._config(request)
        if (stop := string_of(config.get("stopSequences"))) is not None:
            config["stopSequences"] = [stop]
        return config

    def to_hook_tool_config(self, tool_config: Any) -> HookToolConfig:
        """Read a ``tool_choice`` of either API; unknown modes pass as text."""
        word = string_of(tool_config)
        if word is not None:
            return HookToolConfig(_MODES.get(word, word))
        if not is_record(tool_config):
            raise unexpected("tool_choice", "a string or an object", tool_config)
        if string_of(get(tool_config, "type")) != _ALLOWED_TOOLS:
            return HookToolConfig("ANY", [_chosen_name(tool_config)])
        allowed = get(tool_config, _ALLOWED_TOOLS) or tool_config
        mode = string_of(get(allowed, "mode")) or "auto"
        tools = items(get(allowed, "tools"))
        return HookToolConfig(_MODES.get(mode, mode), list(map(_chosen_name, tools)))

    def _new_tool_choice(self, tool_config: HookToolConfig, request: Any) -> Any:
        mode, names = tool_config.mode or "AUTO", tool_config.allowed_function_names
        choice = own_name(_MODES, mode)
        if not names or mode == "NONE":
            return choice
        tools = items(get(request, "tools"))
        kinds = {name: kind for kind, name in map(_kind_and_name, tools)}
        chosen: list[dict[str, Any]] = []
        for name in names:
            kind = kinds.get(name, "function")
            fields = {kind: {"name": name}} if self.nests_names else {"name": name}
            chosen.append({"type": kind, **fields})
        if mode == "ANY" and len(chosen) == 1:
            return chosen[0]
        allowed = {"mode": choice, "tools": chosen}
        if self.nests_names:
            return {"type": _ALLOWED_TOOLS, _ALLOWED_TOOLS: allowed}
        return {"type": _ALLOWED_TOOLS, **allowed}

    def carries_names(self, hook_tool_config: ToolConfigParts) -> bool:
        """Whether the API can restrict a call to the names in a hook's tool config."""
        return tool_config_parts(hook_tool_config).mode != "NONE"

    def _names_in(self, tool: Any) -> list[str]:
        functions = map(_kind_and_name, _namespace(tool) or [tool])
        return [name for kind, name in functions if name and kind in _NAMED_TOOLS]

    def _limited_tool(self, tool: Any, names: Collection[str]) -> Any:
        inner = _namespace(tool)
        if inner is None:
            return super()._limited_tool(tool, names)
        limited = [self._limited_tool(inner_tool, names) for inner_tool in inner]
        limited = [inner_tool for inner_tool in limited if inner_tool is not None]
        return with_field(tool, limited, "tools") if limited else None

    def _new_usage(self, usage: LLMUsage | None, base: Any) -> dict[str, Any]:
        if usage is None:
            return {}
        before = get(base, "usage")
        if not is_mapping(before):
            before = before.model_dump(warnings=False) if is_record(before) else {}
        pairs = zip(self.counts, msgspec.structs.astuple(usage), strict=True)
        changed = {names[0]: count or 0 for names, count in pairs}
        return {"usage": {**before, **changed}}


def _namespace(tool: Any) -> list[Any] | None:
    if get(tool, "type") != "namespace":
        return None
    return items(get(tool, "tools"))


def _kind_and_name(tool: Any) -> tuple[str, str | None]:
    kind = string_of(get(tool, "type")) or "function"
    return kind, string_of(get(tool, "name") or get(get(tool, kind), "name"))


def _chosen_name(choice: Any) -> str:
    kind, name = _kind_and_name(choice)
    return name or str(get(choice, "server_label") or kind)


class ResponsesTranslator(OpenAIApi):
    """The Responses API, with items as input and output; one candidate."""

    name = "OpenAI Responses"
    messages_field = "input"
    response_type = "a Response"
    response_fields = ("output",)
    settings = _RESPONSES_SETTINGS
    finish_reasons = _RESPONSES_REASONS
    counts = (("input_tokens",), ("output_tokens",), ("total_tokens",))
    nests_names = False

    def _entries(self, request: Any) -> list[Entry]:
        text = get(request, "input")
        if not isinstance(text, str):
            return super()._entries({"input": text})
        message = LLMMessage("user", str.__str__(text)) if text else None
        return [Entry(text, message)]

    def _entry(self, raw: Any, place: str) -> Entry:
        kind = text_or_none(get(as_record(raw, place), "type"), f"{place}.type")
        content = get(raw, "content")
        if _is_message(raw) or (kind is None and content is not None):
            role = text_at(raw, "role", place)
            texts, other_types = self._read_blocks(content, f"{place}.content")
            return Entry(raw, self._message(role, texts), bool(other_types))
        is_result = (kind or "").endswith(_RESULT_SUFFIX)
        is_call = (kind or "").endswith(_CALL_SUFFIX)
        return Entry(raw, None, True, is_call or is_result, is_result)

    def _with_text(self, raw: Any, text: str | None) -> Any:
        if isinstance(raw, str):
            return text
        content = self._replace_text(get(raw, "content"), text)
        return with_field(raw, [] if content is None else content, "content")

    def _with_entries(self, request: Any, raws: list[Any], *, added: bool) -> Any:
        before = get(request, "input")
        if isinstance(before, str) and len(raws) == 1 and not added:
            return with_field(request, raws[0], "input")
        history = [
            {"role": "user", "content": raw} if isinstance(raw, str) else raw
            for raw in raws
        ]
        if is_list(before):
            history = _without_orphaned_reasoning(history, list(before))
        return with_field(request, history, "input")

    def _candidates(self, response: Any) -> list[LLMCandidate]:
        texts: list[str] = []
        for at, item in enumerate(as_list(get(response, "output"), "output")):
            place = f"output[{at}]"
            if _is_message(as_record(item, place)):
                content = get(item, "content")
                texts += self._read_blocks(content, f"{place}.content")[0]
        reason = get(get(response, "incomplete_details"), "reason")
        if reason is None:
            reason = get(response, "status")
        return [self._candidate(texts, reason)]

    def _calls(self, response: Any) -> list[str]:
        return [
            str(get(item, "name") or get(item, "type"))
            for item in items(get(response, "output"))
            if _kind(item).endswith(_CALL_SUFFIX) and _kind(item) not in _HOSTED_CALLS
        ]

    def _new_response(
        self, candidates: Sequence[LLMCandidate], usage: LLMUsage | None, base: Any
    ) -> Any:
        first = first_candidate(candidates)
        messages = filter(_is_message, items(get(base, "output")))
        first_id = get(next(messages, None), "id")
        message = {
            "id": first_id or "msg_hookline", "type": "message", "role": "assistant",
            "status": "completed",
            "content": [
                {"type": "output_text", "text": text, "annotations": []}
                for text in first.content.parts
            ],
        }  # fmt: skip
        changes: dict[str, Any] = {"output": [message]}
        if first.finish_reason == "STOP":
            changes |= {"status": "completed", "incomplete_details": None}
        elif first.finish_reason is not None:
            reason = own_name(_RESPONSES_REASONS, first.finish_reason)
            changes["status"] = "incomplete"
            changes["incomplete_details"] = {"reason": reason}
        if usage is not None:
            counts = self._new_usage(usage, base)["usage"]
            changes["usage"] = {**_USAGE_DETAILS, **counts}
        fields = base if is_mapping(base) else getattr(base, "model_extra", None)
        if "output_text" in (fields or ()):
            # Some services repeat the text here.
            changes["output_text"] = "".join(first.content.parts)
        defaults = {
            "id": "resp_hookline", "object": "response", "created_at": time.time(),
            "model": "", "status": "completed", "parallel_tool_calls": False,
            "tool_choice": "auto", "tools": [],
        }  # fmt: skip
        return rebuilt(lambda: responses_types().Response, base, changes, defaults)


def _is_message(item: Any) -> bool:
    # Nothing else has a role: no new or misspelt type hides its text from hooks.
    return _kind(item) == "message" or get(item, "role") is not None


def _kind(item: Any) -> str:
    return str(get(item, "type") or "")


def _without_orphaned_reasoning(items: list[Any], before: Sequence[Any]) -> list[Any]:
    """Drop the reasoning of an answer that was removed.

    The service refuses a reasoning item that no item of the model follows.
    """
    # Items are found by identity, except those that occur more than once.
    times = Counter(map(id, before))
    followers = {
        id(item): after for item, after in pairwise(before) if times[id(item)] == 1
    }
    return [
        item
        for item, after in pairwise([*items, None])
        if not (
            _kind(item) == "reasoning"
            and get(followers.get(id(item)), "role") == "assistant"
            and (after is None or get(after, "role") not in (None, "assistant"))
        )
    ]


_RESPONSES = ResponsesTranslator()


class OpenAITranslator(OpenAIApi):
    """The ``HookTranslator`` of openai; Chat Completions by default."""

    name = "OpenAI Chat Completions"
    response_type = "a ChatCompletion or a Response"
    response_fields = ("choices",)
    settings = _CHAT_SETTINGS
    finish_reasons = _CHAT_REASONS
    call_reasons = ("tool_calls", "function_call")
    counts = (("prompt_tokens",), ("completion_tokens",), ("total_tokens",))
    nests_names = True

    def _api_for_request(self, request: Any) -> SdkTranslator:
        super()._api_for_request(request)
        if "messages" in request or _RESPONSES_FIELDS.isdisjoint(request.keys()):
            return self
        return _RESPONSES

    def _api_for_response(self, response: Any) -> SdkTranslator:
        if self.is_response(response):
            return self
        if _RESPONSES.is_response(response):
            return _RESPONSES
        raise unexpected("response", self.response_type, response)

    def _entry(self, raw: Any, place: str) -> Entry:
        role = text_at(raw, "role", place)
        content = get(raw, "content")
        texts, other_types = self._read_blocks(content, f"{place}.content")
        if role in _RESULT_ROLES:
            return Entry(raw, has_others=True, has_calls=True, has_results=True)
        has_calls = bool(get(raw, "tool_calls") or get(raw, "function_call"))
        fields = (get(raw, name) for name in ("refusal", "audio"))
        has_others = has_calls or bool(other_types) or any(fields)
        return Entry(raw, self._message(role, texts), has_others, has_calls)

    def _without_service_fields(self, request: Any, names: Collection[str]) -> Any:
        request = with_field(request, None, "web_search_options")
        functions = get(request, "functions")  # the old field for tools
        if functions is None:
            return request
        allowed = [
            function
            for function in items(functions)
            if string_of(get(function, "name")) in names
        ]
        if not allowed:
            request = with_field(request, None, "function_call")
        return with_field(request, allowed or None, "functions")

    def _candidates(self, response: Any) -> list[LLMCandidate]:
        candidates: list[LLMCandidate] = []
        for at, choice in enumerate(as_list(get(response, "choices"), "choices")):
            place = f"choices[{at}]"
            message = get(as_record(choice, place), "message")
            content = get(as_record(message, f"{place}.message"), "content")
            texts, _ = self._read_blocks(content, f"{place}.message.content")
            reason, index = get(choice, "finish_reason"), get(choice, "index")
            texts = [text for text in texts if text]
            candidates.append(self._candidate(texts, reason, whole_number(index)))
        return candidates

    def _calls(self, response: Any) -> list[str]:
        functions: list[Any] = []
        for choice in items(get(response, "choices")):
            message = get(choice, "message")
            calls = items(get(message, "tool_calls"))
            functions += [get(call, "function", "custom") for call in calls]
            if (older_call := get(message, "function_call")) is not None:
                functions.append(older_call)
        return [str(get(function, "name")) for function in functions]

    def _new_response(
        self, candidates: Sequence[LLMCandidate], usage: LLMUsage | None, base: Any
    ) -> Any:
        choices: list[dict[str, Any]] = []
        old_choices = chain(items(get(base, "choices")), repeat(None))
        for candidate, old in zip(candidates, old_choices, strict=False):
            before = get(old, "finish_reason")
            reason = self._own_reason(candidate.finish_reason, before)
            text = "".join(candidate.content.parts)
            message = {"role": "assistant", "content": text, "refusal": None}
            head = {"finish_reason": reason, "index": candidate.index}
            choices.append({**head, "logprobs": None, "message": message})
        defaults = {
            "id": "chatcmpl-hookline", "object": "chat.completion", "model": "",
            "created": int(time.time()), "usage": None,
        }  # fmt: skip
        changes = {"choices": choices, **self._new_usage(usage, base)}
        return rebuilt(lambda: chat_types().ChatCompletion, base, changes, defaults)
