"""The two spellings of google-genai's fields: ``snake_case`` and ``camelCase``."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from typing import Any

from msgspec import Struct

from .formats import (
    Draft,
    Entry,
    change_request,
    change_response,
    show_request,
    show_response,
)
from .sdk_objects import (
    count_or_none,
    genai_types,
    get,
    is_mapping,
    is_record,
    items_of,
    put,
    record,
    text_or_none,
    unknown_values_allowed,
    wrong,
)
from .stable import (
    HookToolConfig,
    LLMCandidate,
    LLMContent,
    LLMMessage,
    LLMRequest,
    LLMResponse,
    LLMSafetyRating,
    LLMUsage,
    to_wire,
    tool_config_parts,
)
from .streams import assemble_genai


@lru_cache(maxsize=256)
def camel(name: str) -> str:
    """Spell a field as on the wire."""
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)


def snake(name: str) -> str:
    """Spell a field as in Python."""
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name)


def spellings(name: str) -> tuple[str, str]:
    """Give both spellings of a field."""
    return name, camel(name)


def field(value: Any, name: str) -> Any:
    """Read a field in either spelling."""
    # An object has the one spelling only, and asking it for another is slow.
    return get(value, name, camel(name)) if is_mapping(value) else get(value, name)


_PART_FIELDS = (
    "text", "thought", "inline_data", "inlineData", "file_data", "fileData",
    "function_call", "functionCall", "function_response", "functionResponse",
    "executable_code", "executableCode", "code_execution_result",
    "codeExecutionResult", "tool_call", "toolCall", "tool_response", "toolResponse",
    "file_uri", "fileUri",
)  # fmt: skip


def is_text(part: Any) -> bool:
    """Tell a text part from others; a thought is no text."""
    if isinstance(part, str):
        return True
    return get(part, "text") is not None and not get(part, "thought")


def part_text(part: Any, place: str) -> str:
    """Read the text of a text part."""
    text = part if isinstance(part, str) else get(part, "text")
    if not isinstance(text, str):
        raise wrong(f"{place}.text", "a string", text)
    return text


def is_part(raw: Any) -> bool:
    """Tell a loose part from a Content."""
    if not is_mapping(raw):
        return not hasattr(raw, "parts")  # a Part, or a File, which is one to the SDK
    if "parts" in raw or "role" in raw:
        return False
    return any(name in raw for name in _PART_FIELDS)


def edited_parts(parts: list[Any], text: str) -> list[Any]:
    """Put a text into the first text part; the other text parts go."""
    first = next(at for at, part in enumerate(parts) if is_text(part))
    head = parts[first]
    edited = text if isinstance(head, str) else put(head, text, "text")
    rest = [part for part in parts[first + 1 :] if not is_text(part)]
    return [*parts[:first], edited, *rest]


def read_tool_config(tool_config: Any) -> HookToolConfig:
    """Read a ToolConfig or its dict."""
    place = "toolConfig.functionCallingConfig"
    calling = field(record(tool_config, "toolConfig"), "function_calling_config")
    if calling is None:
        return HookToolConfig()
    mode = text_or_none(get(record(calling, place), "mode"), f"{place}.mode")
    names = field(calling, "allowed_function_names")
    if names is not None:
        place = f"{place}.allowedFunctionNames"
        names = [_name(name, place) for name in items_of(names, place)]
    return HookToolConfig(mode, names)


def write_tool_config(tool_config: HookToolConfig, base: Any, plain: bool) -> Any:
    """Write a ToolConfig, on top of what the base has beside it."""
    mode: Any = tool_config.mode or "AUTO"
    # The service refuses names under any other mode; who restricts tools under AUTO
    # has to leave the others out of the request.
    names = tool_config.allowed_function_names if carries_names(mode) else None
    if base is None:
        base = {} if plain else genai_types().ToolConfig()
    calling = field(base, "function_calling_config")
    if calling is None:
        is_dict = isinstance(base, Mapping)
        calling = {} if is_dict else genai_types().FunctionCallingConfig()
    if not isinstance(calling, Mapping):
        with unknown_values_allowed():
            mode = genai_types().FunctionCallingConfigMode(mode)
    calling = put(calling, mode, "mode")
    calling = put(calling, names or None, *spellings("allowed_function_names"))
    return put(base, calling, *spellings("function_calling_config"))


def carries_names(mode: str | None) -> bool:
    """Whether allowed names are heeded under a mode."""
    return mode in ("ANY", "VALIDATED")


def function_names(request: Any) -> list[str]:
    """Name the functions that a request offers."""
    return [name for tool in _tools(request) for name in _names_in(tool)]


def limit_functions(request: Any, names: Collection[str]) -> Any:
    """Leave out all functions but some; tools that are no functions stay."""
    tools = _tools(request)
    kept = [left for tool in tools if (left := _limited(tool, names)) is not None]
    if len(kept) == len(tools) and all(map(_is, kept, tools)):
        return request
    return put(request, put(get(request, "config"), kept or None, "tools"), "config")


def _is(a: Any, b: Any) -> bool:
    return a is b


def _tools(request: Any) -> list[Any]:
    return items_of(get(get(request, "config"), "tools"), "config.tools")


def _names_in(tool: Any) -> list[str]:
    if not is_record(tool):
        name = getattr(tool, "__name__", None)
        return [name] if isinstance(name, str) else []
    declared = items_of(field(tool, "function_declarations"), "functionDeclarations")
    return [name for one in declared if isinstance(name := get(one, "name"), str)]


def _limited(tool: Any, names: Collection[str]) -> Any:
    inside = _names_in(tool)
    if all(name in names for name in inside):
        return tool
    if not is_record(tool):
        return None
    declared = field(tool, "function_declarations")
    kept = [one for one in declared if get(one, "name") in names]
    if not kept and not _has_more(tool):
        return None
    return put(tool, kept or None, *spellings("function_declarations"))


def _has_more(tool: Any) -> bool:
    return any(
        value is not None and name not in spellings("function_declarations")
        for name, value in dict(tool).items()
    )


def _name(value: Any, place: str) -> str:
    if not isinstance(value, str):
        raise wrong(place, "a list of strings", value)
    return value


_CALLS = ("function_call", "tool_call")
_ANSWERS = ("function_response", "tool_response")
# What a hook neither sees nor sets: the SDK's own business, or the agent's.
_NOT_CONFIG = frozenset(
    {
        "systemInstruction", "tools", "toolConfig", "safetySettings", "cachedContent",
        "httpOptions", "automaticFunctionCalling", "labels", "shouldReturnHttpResponse",
        "continuationToken",
    }
)  # fmt: skip
# The roles of the stable shape are google-genai's own; hooks from elsewhere may differ.
_ROLES = {"assistant": "model"}


class GenerateContentRequest(Struct, frozen=True):
    """The arguments of ``generate_content``, which the SDK has no type for."""

    model: str
    contents: Any
    config: Any = None

    def model_copy(self, *, update: dict[str, Any]) -> GenerateContentRequest:
        """Copy it with some fields changed."""
        fields = {name: getattr(self, name) for name in self.__struct_fields__}
        return GenerateContentRequest(**(fields | update))


class GenAIRequests:
    """The ``RequestFormat`` of google-genai."""

    name = "google-genai"
    system_apart = True

    def model(self, request: Any) -> str:
        """Read the model's name; a request may leave it to the client."""
        return text_or_none(get(record(request, "request"), "model"), "model") or ""

    def entries(self, request: Any) -> list[Entry]:
        """Read ``contents`` in all the forms that the SDK takes."""
        contents = get(request, "contents")
        if contents is None:
            raise wrong("contents", "a Content, a Part, a string or a list", None)
        if isinstance(contents, list | tuple):
            return [_entry(raw, f"contents[{at}]") for at, raw in enumerate(contents)]
        return [_entry(contents, "contents")]

    def config(self, request: Any) -> dict[str, Any]:
        """Read the plain settings, in camelCase."""
        config = get(request, "config")
        if config is None:
            return {}
        pairs = dict(record(config, "config")).items()
        read = {camel(str(key)): plain(value) for key, value in pairs}
        return {
            key: value
            for key, value in read.items()
            if value is not None and key not in _NOT_CONFIG
        }

    def tool_config(self, request: Any) -> HookToolConfig | None:
        """Read ``config.tool_config``."""
        found = field(get(request, "config"), "tool_config")
        return None if found is None else read_tool_config(found)

    def blank(self) -> Any:
        """Start a request from nothing."""
        return GenerateContentRequest("", [])

    def edited(self, raw: Any, text: str) -> Any:
        """Put a new text in place of all the text of an entry."""
        if isinstance(raw, str):
            return text
        if isinstance(raw, list | tuple):
            return edited_parts(list(raw), text)
        if is_part(raw):
            return put(raw, text, "text")
        return put(raw, edited_parts(list(get(raw, "parts")), text), "parts")

    def emptied(self, raw: Any) -> Any:
        """Take the text out of an entry."""
        if isinstance(raw, list | tuple):
            return [part for part in raw if not is_text(part)]
        return put(raw, [p for p in get(raw, "parts") if not is_text(p)], "parts")

    def created(self, message: LLMMessage, request: Any) -> Any:
        """Make a Content, or a dict where the request is made of dicts."""
        role = _ROLES.get(message.role, message.role)
        return _content(role, [{"text": message.content}], request)

    def with_model(self, request: Any, model: str) -> Any:
        """Change the model."""
        return put(request, model, "model")

    def with_entries(self, request: Any, raws: list[Any], *, added: bool) -> Any:
        """Change ``contents``, as a list where it was one or has to be."""
        was_list = isinstance(get(request, "contents"), list | tuple)
        if not was_list and len(raws) == 1 and not added:
            return put(request, raws[0], "contents")
        # The SDK gathers loose parts into one Content, and puts that after a dict
        # which follows them; so nothing may be loose next to an added message.
        contents = list(_gathered(raws, request)) if added else raws
        return put(request, contents, "contents")

    def with_system(self, request: Any, texts: Sequence[str]) -> Any:
        """Append to the system instruction, in the form that it has."""
        config = _config(request)
        found = field(config, "system_instruction")
        return put(
            request,
            put(config, _extended(found, texts), *spellings("system_instruction")),
            "config",
        )

    def takes_config(self, request: Any, key: str) -> bool:
        """Only settings that the SDK knows can be set on its own object."""
        if key in _NOT_CONFIG:
            return False
        fields = getattr(type(_config(request)), "model_fields", None)
        return fields is None or snake(key) in fields

    def with_config(self, request: Any, key: str, value: Any) -> Any:
        """Change one setting."""
        changed = put(_config(request), value, snake(key), key)
        return put(request, changed, "config")

    def with_tool_config(self, request: Any, tool_config: HookToolConfig) -> Any:
        """Change which functions may be called, and nothing else of the tool config."""
        config = _config(request)
        found = field(config, "tool_config")
        changed = write_tool_config(tool_config, found, isinstance(config, Mapping))
        return put(request, put(config, changed, *spellings("tool_config")), "config")


def has_objects(request: Any) -> bool:
    """Whether a request is made of SDK objects, so that additions should be too."""
    contents = get(request, "contents")
    for entry in contents if isinstance(contents, list | tuple) else [contents]:
        if is_record(entry):
            return not is_mapping(entry)
    return not is_mapping(request)


def plain(value: Any) -> Any:
    """Keep a setting that is plain data; None for anything else."""
    if isinstance(value, str | int | float):
        return getattr(value, "value", value)
    if isinstance(value, list | tuple):
        return list(value) if all(isinstance(item, str) for item in value) else None
    return None


def _entry(raw: Any, place: str) -> Entry:
    if isinstance(raw, str):
        return Entry(raw, LLMMessage("user", raw) if raw else None)
    if isinstance(raw, list | tuple):
        return _read(raw, list(raw), "user", place)
    if raw is None or isinstance(raw, bool | int | float | bytes):
        raise wrong(place, "a Content, a Part or a string", raw)
    if not is_record(raw):
        return Entry(raw, has_others=True)  # an image or a file, as the SDK takes them
    if is_part(raw):
        role = "model" if field(raw, "function_call") is not None else "user"
        return _read(raw, [raw], role, place)
    parts = items_of(get(raw, "parts"), f"{place}.parts")
    return _read(raw, parts, _role(raw, place), f"{place}.parts")


def _role(content: Any, place: str) -> str:
    role = text_or_none(get(content, "role"), f"{place}.role")
    if role is None and isinstance(content, Mapping):
        raise wrong(f"{place}.role", "a string", None)
    return role or "user"  # which is what the service makes of a Content without one


def _read(raw: Any, parts: list[Any], role: str, place: str) -> Entry:
    texts: list[str] = []
    others: list[Any] = []
    for at, part in enumerate(parts):
        if not isinstance(part, str) and not is_record(part):
            _insist_on_part(part, f"{place}[{at}]")
        if is_text(part):
            texts.append(part_text(part, place))
        else:
            others.append(part)
    text = "".join(texts)
    answers = _holds(others, _ANSWERS)
    return Entry(
        raw,
        LLMMessage(role, text) if text else None,
        bool(others),
        answers or _holds(others, _CALLS),
        answers,
    )


def _insist_on_part(part: Any, place: str) -> None:
    if part is None or isinstance(part, bool | int | float | bytes | list | tuple):
        raise wrong(place, "a Part", part)


def _holds(parts: list[Any], names: Sequence[str]) -> bool:
    return any(field(part, name) is not None for part in parts for name in names)


def _config(request: Any) -> Any:
    found = get(request, "config")
    if found is not None:
        return found
    return {} if isinstance(request, Mapping) else genai_types().GenerateContentConfig()


def _content(role: str, parts: list[Any], request: Any) -> Any:
    content = {"role": role, "parts": parts}
    if has_objects(request):
        return genai_types().Content.model_validate(content)
    return content


def _gathered(raws: list[Any], request: Any) -> Iterator[Any]:
    for loose, run in groupby(raws, _is_loose):
        if not loose:
            yield from run
            continue
        parts = list(run)
        if all(isinstance(part, str) for part in parts):
            yield _content("user", [{"text": part} for part in parts], request)
        else:
            yield parts


def _is_loose(raw: Any) -> bool:
    return not isinstance(raw, list | tuple) and (not is_record(raw) or is_part(raw))


def _extended(found: Any, texts: Sequence[str]) -> Any:
    if found is None or isinstance(found, str):
        return "\n\n".join([*([found] if found else []), *texts])
    if isinstance(found, list | tuple):
        return [*found, *texts]
    if is_record(found) and get(found, "parts") is not None:
        return put(found, [*get(found, "parts"), *_text_parts(found, texts)], "parts")
    return [found, *texts]


def _text_parts(content: Any, texts: Sequence[str]) -> list[Any]:
    if isinstance(content, Mapping):
        return [{"text": text} for text in texts]
    return [genai_types().Part(text=text) for text in texts]


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
    types = genai_types()
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


_REQUESTS = GenAIRequests()
_RESPONSES = GenAIResponses()


class GenAITranslator:
    """The ``HookTranslator`` of google-genai."""

    def to_hook_llm_request(self, request: Any) -> LLMRequest:
        """Show a ``GenerateContentRequest`` or the same as a dict."""
        return show_request(_REQUESTS, request)

    def from_hook_llm_request(
        self,
        hook_request: LLMRequest | dict[str, Any],
        base_request: Any = None,
        *,
        hook_name: str | None = None,
    ) -> Any:
        """Apply what a hook changed."""
        return change_request(_REQUESTS, hook_request, base_request, hook_name)

    def to_hook_llm_response(self, response: Any) -> LLMResponse:
        """Show a ``GenerateContentResponse`` or the same as a dict."""
        return show_response(_RESPONSES, response)

    def from_hook_llm_response(
        self,
        hook_response: LLMResponse | dict[str, Any],
        base_response: Any = None,
        *,
        hook_name: str | None = None,
    ) -> Any:
        """Build the response that a hook wants."""
        return change_response(_RESPONSES, hook_response, base_response, hook_name)

    def to_hook_tool_config(self, tool_config: Any) -> HookToolConfig:
        """Show a ``ToolConfig``."""
        return read_tool_config(tool_config)

    def from_hook_tool_config(
        self,
        hook_tool_config: HookToolConfig | dict[str, Any],
        base_request: Any = None,
    ) -> Any:
        """Write a ``ToolConfig``; names go in only where the service heeds them."""
        found = tool_config_parts(hook_tool_config)
        return write_tool_config(found, None, isinstance(base_request, dict))

    def carries_names(self, hook_tool_config: HookToolConfig | dict[str, Any]) -> bool:
        """Only under ``ANY`` does the service heed allowed names."""
        return carries_names(tool_config_parts(hook_tool_config).mode)

    def tool_names(self, request: Any) -> list[str]:
        """Name the functions that a request offers."""
        return function_names(request)

    def limit_tools(self, request: Any, names: Collection[str]) -> Any:
        """Leave all other functions out."""
        return limit_functions(request, names)

    def assemble_response(self, chunks: Iterable[Any]) -> Any:
        """Make one response of the chunks of ``generate_content_stream``."""
        return assemble_genai(chunks)
