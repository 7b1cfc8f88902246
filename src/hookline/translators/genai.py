"""The translator of google-genai.

Its objects have ``snake_case`` fields; dicts may also use the ``camelCase`` of the
service, and keep the spelling that they have.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from itertools import groupby, zip_longest
from typing import Any

import msgspec
from msgspec import Struct

from .base import Entry, SdkTranslator, read_ratings
from .shape import (
    HookToolConfig,
    LLMCandidate,
    LLMContent,
    LLMMessage,
    LLMUsage,
    ToolConfigParts,
    to_wire,
    tool_config_parts,
    whole_number,
)
from .streams import assemble_genai
from .values import (
    as_list,
    as_record,
    genai_types,
    get,
    is_list,
    is_mapping,
    is_record,
    items,
    names_or_none,
    string_of,
    text_or_none,
    unexpected,
    unknown_values_allowed,
    with_field,
)


@lru_cache(maxsize=256)
def _camel(name: str) -> str:
    head, *words = name.split("_")
    return head + "".join(word.capitalize() for word in words)


def _snake(name: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name)


def _spellings(name: str) -> tuple[str, str]:
    return name, _camel(name)


def _both(*names: str) -> tuple[str, ...]:
    return tuple(spelling for name in names for spelling in _spellings(name))


def _field(value: Any, name: str) -> Any:
    # An object has the one spelling only, and asking it for another is slow.
    return get(value, name, _camel(name)) if is_mapping(value) else get(value, name)


def _with_field(value: Any, new: Any, name: str) -> Any:
    return with_field(value, new, *_spellings(name))


_PART_FIELDS = _both(
    "text", "thought", "inline_data", "file_data", "function_call", "executable_code",
    "function_response", "code_execution_result", "tool_call", "tool_response",
    "file_uri",
)  # fmt: skip
_NO_PARTS = (type(None), int, float, bytes, list, tuple)
_DECLARATIONS = "function_declarations"
_CALLS = ("function_call", "tool_call")
_RESULTS = ("function_response", "tool_response")
# Settings that hooks neither see nor change.
_HIDDEN_CONFIG = frozenset(
    {
        "systemInstruction", "tools", "toolConfig", "safetySettings", "cachedContent",
        "httpOptions", "automaticFunctionCalling", "labels", "shouldReturnHttpResponse",
        "continuationToken",
    }
)  # fmt: skip
# The service refuses names under any other mode.
_MODES_WITH_NAMES = ("ANY", "VALIDATED")


class GenerateContentRequest(Struct, frozen=True):
    """The arguments of ``generate_content``, which the SDK has no type for."""

    model: str
    contents: Any
    config: Any = None

    def model_copy(self, *, update: dict[str, Any]) -> GenerateContentRequest:
        """Copy it with some fields changed."""
        return msgspec.structs.replace(self, **update)


class GenAITranslator(SdkTranslator):
    """The ``HookTranslator`` of google-genai."""

    name = "google-genai"
    separate_system = True
    response_type = "a GenerateContentResponse"
    response_fields = _both(
        "candidates", "usage_metadata", "prompt_feedback", "model_version",
        "response_id",
    )  # fmt: skip
    usage_fields = _spellings("usage_metadata")
    counts = tuple(map(_spellings, LLMUsage.__struct_fields__))
    tool_choice_fields = _spellings("tool_config")
    chunk_type = "a GenerateContentResponse"
    assembled = staticmethod(assemble_genai)

    def _api_for_request(self, request: Any) -> SdkTranslator:
        as_record(request, "request")
        return self

    def _entries(self, request: Any) -> list[Entry]:
        contents = get(request, "contents")
        if contents is None:
            raise unexpected("contents", "a Content, a Part, a string or a list", None)
        if is_list(contents):
            raws = enumerate(contents)
            return [self._entry(raw, f"contents[{at}]") for at, raw in raws]
        return [self._entry(contents, "contents")]

    def _entry(self, raw: Any, place: str) -> Entry:
        role = "user"
        if isinstance(raw, str):
            return Entry(raw, LLMMessage(role, str.__str__(raw)) if raw else None)
        if is_list(raw):
            parts = list(raw)
        elif isinstance(raw, _NO_PARTS):
            raise unexpected(place, "a Content, a Part or a string", raw)
        elif not is_record(raw):
            return Entry(raw, has_others=True)  # an image or a file, as the SDK takes
        elif _is_part(raw):
            parts = [raw]
            role = "model" if _field(raw, "function_call") is not None else role
        else:
            parts = as_list(get(raw, "parts"), f"{place}.parts")
            # The service treats a Content without a role as the user's.
            role = text_or_none(get(raw, "role"), f"{place}.role") or role
            place = f"{place}.parts"
        text = ""
        other_parts: list[Any] = []
        for at, part in enumerate(parts):
            if self._is_text(part):
                text += _text(part, place)
            elif isinstance(part, _NO_PARTS):
                raise unexpected(f"{place}[{at}]", "a Part", part)
            else:
                other_parts.append(part)
        has_calls, has_results = (
            any(_field(part, key) is not None for part in other_parts for key in keys)
            for keys in (_CALLS, _RESULTS)
        )
        return Entry(
            raw,
            LLMMessage(role, text) if text else None,
            bool(other_parts),
            has_calls or has_results,
            has_results,
        )

    def _config(self, request: Any) -> dict[str, Any]:
        config = get(request, "config")
        if not is_record(config):
            return {}
        settings = {
            _camel(str(key)): _plain_setting(value)
            for key, value in dict(config).items()
            if value is not None
        }
        return {
            key: value
            for key, value in settings.items()
            if value is not None and key not in _HIDDEN_CONFIG
        }

    def _with_config(self, request: Any, key: str, value: Any) -> Any:
        if key in _HIDDEN_CONFIG:
            return None
        name, kind = _snake(key), type(_config_or_new(request))
        if hasattr(kind, "model_fields"):  # a dict takes every setting
            if name not in kind.model_fields:
                return None
            try:
                with unknown_values_allowed():
                    kind.model_validate({name: value})
            except ValueError:  # of which pydantic's error is one
                return None
        return self._with_option(request, value, name, key)

    def _options(self, request: Any) -> Any:
        return get(request, "config")

    def _with_option(self, request: Any, value: Any, *names: str) -> Any:
        changed = with_field(_config_or_new(request), value, *names)
        return with_field(request, changed, "config")

    def _empty_request(self) -> Any:
        return GenerateContentRequest("", [])

    def _is_text(self, block: Any) -> bool:
        """Tell a text part from others; a thought is not text."""
        if isinstance(block, str):
            return True
        return get(block, "text") is not None and not get(block, "thought")

    def _with_text(self, raw: Any, text: str | None) -> Any:
        if isinstance(raw, str) or is_list(raw):
            return self._replace_text(raw, text)
        if _is_part(raw):
            return with_field(raw, text, "text")
        return with_field(raw, self._replace_text(get(raw, "parts"), text), "parts")

    def _new_entry(self, message: LLMMessage, request: Any) -> Any:
        role = "model" if message.role == "assistant" else message.role
        return _new_content(role, [message.content], request)

    def _with_entries(self, request: Any, raws: list[Any], *, added: bool) -> Any:
        was_list = is_list(get(request, "contents"))
        if not was_list and len(raws) == 1 and not added:
            return with_field(request, raws[0], "contents")
        if not added:
            return with_field(request, raws, "contents")
        # The SDK groups bare parts into one Content and puts it after a dict that
        # follows them, so no part may be bare next to an added message.
        contents: list[Any] = []
        for is_bare, run in groupby(raws, _is_bare):
            parts = list(run)
            if not is_bare:
                contents += parts
            elif all(isinstance(part, str) for part in parts):
                contents.append(_new_content("user", parts, request))
            else:
                contents.append(parts)
        return with_field(request, contents, "contents")

    def _with_system(self, request: Any, texts: Sequence[str]) -> Any:
        names = _spellings("system_instruction")
        instruction = get(get(request, "config"), *names)
        parts = get(instruction, "parts") if is_record(instruction) else None
        if instruction is None or isinstance(instruction, str):
            before = [instruction] if instruction else []
            instruction = "\n\n".join([*before, *texts])
        elif is_list(instruction):
            instruction = [*instruction, *texts]
        elif parts is None:
            instruction = [instruction, *texts]
        else:
            added: list[Any] = [{"text": text} for text in texts]
            if not isinstance(instruction, Mapping):
                added = [genai_types().Part(text=text) for text in texts]
            instruction = with_field(instruction, [*parts, *added], "parts")
        return self._with_option(request, instruction, *names)

    def to_hook_tool_config(self, tool_config: Any) -> HookToolConfig:
        """Read a ToolConfig or its dict."""
        as_record(tool_config, "toolConfig")
        calling = _field(tool_config, "function_calling_config")
        if not is_record(calling):
            return HookToolConfig()
        names = _field(calling, "allowed_function_names")
        return HookToolConfig(string_of(get(calling, "mode")), names_or_none(names))

    def from_hook_tool_config(
        self, hook_tool_config: ToolConfigParts, base_request: Any = None
    ) -> Any:
        """Write a hook's tool config; names only under a mode that takes them.

        It is a dict where ``base_request`` is one.
        """
        base = _new("ToolConfig", base_request)
        return _changed_tool_config(base, tool_config_parts(hook_tool_config))

    def _new_tool_choice(self, tool_config: HookToolConfig, request: Any) -> Any:
        config = _config_or_new(request)
        base = _field(config, "tool_config")
        if base is None:
            base = _new("ToolConfig", config)
        return _changed_tool_config(base, tool_config)

    def carries_names(self, hook_tool_config: ToolConfigParts) -> bool:
        """Whether the API can restrict a call to the names in a hook's tool config."""
        return tool_config_parts(hook_tool_config).mode in _MODES_WITH_NAMES

    def _is_chunk(self, chunk: Any) -> bool:
        return isinstance(chunk, genai_types().GenerateContentResponse)

    def _names_in(self, tool: Any) -> list[str]:
        if not is_record(tool):
            name = getattr(tool, "__name__", None)
            return [name] if isinstance(name, str) else []
        functions = items(_field(tool, _DECLARATIONS))
        names = (string_of(get(function, "name")) for function in functions)
        return [name for name in names if name]

    def _limited_tool(self, tool: Any, names: Collection[str]) -> Any:
        if not is_record(tool):
            # A callable, or an MCP session, whose calls pass the hooks one by one.
            return tool if all(name in names for name in self._names_in(tool)) else None
        functions = items(_field(tool, _DECLARATIONS))
        allowed = [
            function
            for function in functions
            if string_of(get(function, "name")) in names
        ]
        other_keys = [key for key in dict(tool) if key not in _spellings(_DECLARATIONS)]
        if not allowed:
            return None
        if allowed == functions and all(get(tool, key) is None for key in other_keys):
            return tool
        limited = _with_field(tool, allowed, _DECLARATIONS)
        if is_mapping(limited):
            return {key: limited[key] for key in limited if key not in other_keys}
        return limited.model_copy(update=dict.fromkeys(other_keys))

    def _with_tools(self, request: Any, tools: list[Any]) -> Any:
        return self._with_option(request, tools or None, "tools")

    def _candidates(self, response: Any) -> list[LLMCandidate]:
        if get(_field(response, "sdk_http_response"), "body") is not None:
            problem = "no body: unset should_return_http_response, hooks cannot read it"
            raise unexpected("sdk_http_response", problem, response)
        stable: list[LLMCandidate] = []
        candidates = as_list(get(response, "candidates"), "candidates")
        for at, candidate in enumerate(candidates):
            place = f"candidates[{at}].content"
            content = get(as_record(candidate, f"candidates[{at}]"), "content")
            as_record({} if content is None else content, place)
            parts = as_list(get(content, "parts"), f"{place}.parts")
            texts = [
                _text(part, f"{place}.parts[{number}]")
                for number, part in enumerate(parts)
                if self._is_text(as_record(part, f"{place}.parts[{number}]"))
            ]
            stable.append(
                LLMCandidate(
                    LLMContent("model", texts),
                    string_of(_field(candidate, "finish_reason")),
                    whole_number(get(candidate, "index")),
                    read_ratings(_field(candidate, "safety_ratings")),
                )
            )
        return stable

    def _calls(self, response: Any) -> list[str]:
        return [
            str(get(call, "name"))
            for candidate in items(get(response, "candidates"))
            for part in items(get(get(candidate, "content"), "parts"))
            if (call := _field(part, "function_call")) is not None
        ]

    def _new_response(
        self, candidates: Sequence[LLMCandidate], usage: LLMUsage | None, base: Any
    ) -> Any:
        new: list[Any] = []
        old_candidates = items(get(base, "candidates"))
        for candidate, old in zip_longest(candidates, old_candidates):
            if candidate is None:
                break
            fields = {
                "finishReason": _field(old, "finish_reason") or "STOP",
                "safetyRatings": _field(old, "safety_ratings"),
                **to_wire(candidate),
            }
            parts = [{"text": text} for text in candidate.content.parts]
            fields["content"] = {"role": "model", "parts": parts}
            new.append({key: fields[key] for key in fields if fields[key] is not None})
        counts = {} if usage is None else msgspec.structs.asdict(usage)
        # The counts that a hook set: the others stay.
        counts = {name: count for name, count in counts.items() if count is not None}
        if isinstance(base, Mapping):
            response = with_field(base, new, "candidates")
            if usage is None:
                return response
            before = _field(base, "usage_metadata")
            wire_usage = before if is_mapping(before) else {}
            for name, count in counts.items():
                wire_usage = with_field(wire_usage, count, _camel(name), name)
            return _with_field(response, wire_usage, "usage_metadata")
        types = genai_types()
        with unknown_values_allowed():
            new = [types.Candidate.model_validate(fields) for fields in new]
        # What was parsed from the old text would contradict the new one.
        changes: dict[str, Any] = {"candidates": new, "parsed": None}
        if usage is not None:
            kind = types.GenerateContentResponseUsageMetadata
            before = get(base, "usage_metadata") or kind()
            changes["usage_metadata"] = before.model_copy(update=counts)
        response = types.GenerateContentResponse() if base is None else base
        return response.model_copy(update=changes)


def _is_part(raw: Any) -> bool:
    """Tell a Part from a Content."""
    if not is_mapping(raw):
        return not hasattr(raw, "parts")  # The SDK takes a File as a part too.
    if "parts" in raw or "role" in raw:
        return False
    return any(name in raw for name in _PART_FIELDS)


def _is_bare(raw: Any) -> bool:
    return not is_list(raw) and (not is_record(raw) or _is_part(raw))


def _text(part: Any, place: str) -> str:
    text = part if isinstance(part, str) else get(part, "text")
    if not isinstance(text, str):
        raise unexpected(f"{place}.text", "a string", text)
    return str.__str__(text)


def _new_content(role: str, texts: Sequence[str], request: Any) -> Any:
    """Make a Content, an object if the request is made of objects."""
    content = {"role": role, "parts": [{"text": text} for text in texts]}
    contents = get(request, "contents")
    records = filter(is_record, contents if is_list(contents) else [contents])
    if is_mapping(next(records, request)):
        return content
    return genai_types().Content.model_validate(content)


def _config_or_new(request: Any) -> Any:
    config = get(request, "config")
    return config if is_record(config) else _new("GenerateContentConfig", request)


def _new(kind: str, like: Any) -> Any:
    """Make an empty object, or a dict if a value next to it is one."""
    return {} if isinstance(like, Mapping) else getattr(genai_types(), kind)()


def _plain_setting(value: Any) -> Any:
    """Return a setting that is plain data; None for any other."""
    if isinstance(value, str):
        return string_of(value)
    if isinstance(value, int | float):
        return getattr(value, "value", value)
    if is_list(value):
        return list(value) if all(isinstance(item, str) for item in value) else None
    return None


def _changed_tool_config(base: Any, tool_config: HookToolConfig) -> Any:
    mode: Any = tool_config.mode or "AUTO"
    names = tool_config.allowed_function_names if mode in _MODES_WITH_NAMES else None
    calling = _field(base, "function_calling_config")
    if calling is None:
        calling = _new("FunctionCallingConfig", base)
    if not is_mapping(calling):
        with unknown_values_allowed():
            mode = genai_types().FunctionCallingConfigMode(mode)
    calling = with_field(calling, mode, "mode")
    calling = _with_field(calling, names or None, "allowed_function_names")
    return _with_field(base, calling, "function_calling_config")
