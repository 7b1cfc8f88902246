"""Requests of google-genai: SDK objects, plain dicts, or both mixed.

Reading needs no SDK. Each entry of ``contents`` is one message, be it a Content, a
Part or a string, so that every one of them keeps its place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from msgspec import Struct

from hookline.translators.fields import (
    get,
    is_mapping,
    is_record,
    items_of,
    put,
    record,
    text_or_none,
    wrong,
)
from hookline.translators.requests import Entry
from hookline.translators.stable import HookToolConfig, LLMMessage

from .names import camel, field, snake, spellings
from .parts import edited_parts, is_part, is_text, part_text
from .sdk import types_of
from .tools import read_tool_config, write_tool_config

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
    return {} if isinstance(request, Mapping) else types_of().GenerateContentConfig()


def _content(role: str, parts: list[Any], request: Any) -> Any:
    content = {"role": role, "parts": parts}
    if has_objects(request):
        return types_of().Content.model_validate(content)
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
    return [types_of().Part(text=text) for text in texts]
