"""Assemble one whole response from the chunks that an SDK streams.

Strings that arrive in pieces are joined once, so that the cost stays linear. Whatever
text a chunk holds is in the response: hooks judge the response, people see the chunks.
Other values of the wrong type are ignored.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterable
from functools import wraps
from itertools import groupby, pairwise
from typing import Any, TypeVar, cast

from hookline.errors import TranslationError

from .shape import whole_number
from .values import (
    anthropic_types,
    chat_types,
    genai_types,
    get,
    is_mapping,
    is_record,
    items,
    responses_types,
    string_of,
    to_dict,
    unexpected,
    unknown_values_allowed,
)

logger = logging.getLogger("hookline")
_UNREADABLE = (AttributeError, LookupError, TypeError, ValueError, RecursionError)

_Assemble = TypeVar("_Assemble", bound=Callable[[Iterable[Any]], Any])


def _translating_errors(assemble: _Assemble) -> _Assemble:
    @wraps(assemble)
    def checked(chunks: Iterable[Any]) -> Any:
        try:
            with unknown_values_allowed():
                return assemble(chunks)
        except _UNREADABLE as error:
            # Without its text, which may quote the answer.
            name = type(error).__name__
            raise TranslationError(f"chunks: cannot be assembled: {name}") from error

    return cast("_Assemble", checked)


def _index(value: Any) -> int:
    return whole_number(get(value, "index")) or 0


def _checked(
    chunks: Iterable[Any], fits: Callable[[Any], bool], expected: str
) -> list[Any]:
    found = list(chunks)
    for at, chunk in enumerate(found):
        if not fits(chunk):
            raise unexpected(f"chunks[{at}]", expected, chunk)
    if not found:
        raise TranslationError("chunks: expected at least one, got none")
    return found


class _Pieces(list[str]):
    """A string that is still arriving."""


def _joined(value: Any) -> Any:
    """Copy JSON data with all pieces joined."""
    if isinstance(value, _Pieces):
        return "".join(value)
    if isinstance(value, dict):
        return {key: _joined(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_joined(item) for item in value]
    return value


_GENAI_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]|\['([^']*)'\]|\[\"([^\"]*)\"\]")
_TEXT_FIELDS = ("text", "thought", "thought_signature")
# Items of an array arrive in order: a larger gap is a mistake, or an attack on memory.
_MAX_GAP = 100
_MAX_STEPS = 100


@_translating_errors
def assemble_genai(chunks: Iterable[Any]) -> Any:
    """Assemble a GenerateContentResponse."""
    kind = genai_types().GenerateContentResponse
    found = _checked(
        chunks, lambda chunk: isinstance(chunk, kind), "a GenerateContentResponse"
    )
    by_index: dict[int, list[Any]] = {}
    for chunk in found:
        for candidate in chunk.candidates or []:
            by_index.setdefault(_index(candidate), []).append(candidate)
    candidates = [_genai_candidate(by_index[index]) for index in sorted(by_index)]
    return _merged(found, candidates=candidates or None)


def _merged(values: list[Any], **changes: Any) -> Any:
    """Copy the last object with the last value of each field, and some changes."""
    fields: dict[str, Any] = {}
    for value in values:
        fields |= {name: new for name, new in value if new is not None}
    return values[-1].model_copy(update=fields | changes)


def _genai_candidate(pieces: list[Any]) -> Any:
    changes: dict[str, Any] = {}
    contents = [piece.content for piece in pieces if piece.content is not None]
    if contents:
        parts = [part for content in contents for part in content.parts or []]
        changes["content"] = _merged(contents, parts=_genai_parts(parts))
    cited = [piece.citation_metadata for piece in pieces if piece.citation_metadata]
    citations = [one for metadata in cited for one in metadata.citations or []]
    if citations:
        metadata = cited[-1].model_copy(update={"citations": citations})
        changes["citation_metadata"] = metadata
    return _merged(pieces, **changes)


def _genai_parts(parts: list[Any]) -> list[Any]:
    joined: list[Any] = []
    for is_thought, run in groupby(_genai_calls(parts), _is_thought):
        if is_thought is None:
            joined += run
        else:
            texts = list(run)
            joined.append(_merged(texts, text="".join(part.text for part in texts)))
    return joined


def _is_thought(part: Any) -> bool | None:
    """Tell thought (True) from plain text (False) and other parts (None)."""
    others = (value for name, value in part if name not in _TEXT_FIELDS)
    if part.text is None or any(value is not None for value in others):
        return None
    return bool(part.thought)


def _genai_calls(parts: list[Any]) -> list[Any]:
    """Join calls with arguments that arrived in pieces."""
    whole: list[Any] = []
    pieces: list[Any] = []
    for part in parts:
        call = part.function_call
        if call is None or not (pieces or call.will_continue):
            whole.append(part)
            continue
        pieces.append(part)
        if not call.will_continue:
            whole.append(_genai_call(pieces))
            pieces = []
    return [*whole, _genai_call(pieces)] if pieces else whole


def _genai_call(pieces: list[Any]) -> Any:
    calls = [piece.function_call for piece in pieces]
    arguments: dict[str, Any] = {}
    texts: dict[str, _Pieces] = {}
    for call in calls:
        arguments |= call.args or {}
        for partial in call.partial_args or []:
            _add_argument(arguments, texts, partial)
    for path, found in texts.items():
        _set_path(arguments, path, _joined(found))
    call = _merged(calls, args=arguments, partial_args=None, will_continue=None)
    return _merged(pieces, function_call=call)


def _add_argument(
    arguments: dict[str, Any], texts: dict[str, _Pieces], partial: Any
) -> None:
    path = partial.json_path or "$"
    if partial.string_value is not None:
        texts.setdefault(path, _Pieces()).append(partial.string_value)
        return
    value = partial.bool_value
    if value is None:
        value = partial.number_value
    if value is not None or partial.null_value is not None:
        _set_path(arguments, path, value)


def _set_path(arguments: dict[str, Any], path: str, value: Any) -> None:
    steps = [
        int(number[:10]) if number else name or single or double
        for name, number, single, double in _GENAI_STEP.findall(path)[: _MAX_STEPS + 1]
    ]
    try:
        if len(steps) > _MAX_STEPS:
            raise IndexError(f"more than {_MAX_STEPS} steps")
        _set_at(arguments, steps, value)
    except (LookupError, TypeError) as error:
        logger.warning("streamed argument %.80r is ignored: %s", path, error)


def _set_at(arguments: dict[str, Any], steps: list[Any], value: Any) -> None:
    place: Any = arguments
    for step, following in pairwise(steps):
        place = _step_into(place, step, [] if isinstance(following, int) else {})
    if steps:
        _step_into(place, steps[-1], value, replace=True)


def _step_into(place: Any, step: Any, value: Any, *, replace: bool = False) -> Any:
    if isinstance(place, list):
        gap = step - len(place)
        if gap > _MAX_GAP:
            raise IndexError(f"index {step} in an array of {len(place)}")
        place.extend([None] * (gap + 1))
        if replace or place[step] is None:
            place[step] = value
    elif replace or step not in place:
        place[step] = value
    return place[step]


# Complete in every chunk that has them; other strings are continued.
_COMPLETE = frozenset({"id", "type", "role", "name", "finish_reason", "index"})


@_translating_errors
def assemble_openai(chunks: Iterable[Any]) -> Any:
    """Assemble a ChatCompletion from chunks, or a Response from events."""
    events = _checked(chunks, is_record, "a chunk or an event of openai")
    # The events of .stream() hold the chunk of create(stream=True).
    found = [get(event, "chunk") or event for event in events]
    completions = [chunk for chunk in found if get(chunk, "choices") is not None]
    return _completion(completions) if completions else _response(found)


def _completion(chunks: list[Any]) -> Any:
    whole: dict[str, Any] = {}
    choices: dict[int, dict[str, Any]] = {}
    for chunk in chunks:
        fields = {k: v for k, v in to_dict(chunk).items() if v is not None}
        for choice in fields.pop("choices"):
            message = choice.get("delta") or choice.get("message") or {}
            piece = {**choice, "delta": None, "message": message, "index": None}
            index = _index(choice)
            _extend(choices.setdefault(index, {"index": index}), piece)
        whole |= fields
    whole.pop("obfuscation", None)
    whole["object"] = "chat.completion"
    whole["choices"] = [_choice(_joined(choices[index])) for index in sorted(choices)]
    return chat_types().ChatCompletion.model_construct(**whole)


def _extend(target: dict[str, Any], piece: dict[str, Any]) -> None:
    for key, value in piece.items():
        if isinstance(value, dict):
            _extend(target.setdefault(key, {}), value)
        elif isinstance(value, list):
            _extend_list(target.setdefault(key, []), value)
        elif isinstance(value, str) and key not in _COMPLETE:
            target.setdefault(key, _Pieces()).append(value)
        elif value is not None and value != "":
            target[key] = value


def _extend_list(target: list[Any], pieces: list[Any]) -> None:
    for piece in pieces:
        if isinstance(piece, dict) and whole_number(piece.get("index")) is not None:
            same = (e for e in reversed(target) if get(e, "index") == piece["index"])
            if (entry := next(same, None)) is None:
                target.append(entry := {})
            _extend(entry, piece)
        else:
            target.append(piece)


def _choice(choice: dict[str, Any]) -> dict[str, Any]:
    message = {"content": None, "refusal": None, **choice["message"]}
    message["role"] = "assistant"
    if message.get("tool_calls"):
        calls = filter(is_mapping, items(message["tool_calls"]))
        message["tool_calls"] = [
            {"type": "function", **{k: v for k, v in call.items() if k != "index"}}
            for call in sorted(calls, key=_index)
        ]
    return {"finish_reason": None, "logprobs": None, **choice, "message": message}


def _response(events: list[Any]) -> Any:
    whole: Any = None
    done: dict[int, Any] = {}
    texts: dict[int, _Pieces] = {}
    for event in events:
        whole = get(event, "response") or whole
        kind, at = get(event, "type"), whole_number(get(event, "output_index")) or 0
        if kind == "response.output_item.done":
            done[at] = get(event, "item")
        elif kind == "response.output_text.delta":
            texts.setdefault(at, _Pieces()).append(string_of(get(event, "delta")) or "")
    if whole is None:
        raise TranslationError(
            "chunks: expected chunks of a chat completion or events of a response"
        )
    if is_mapping(whole):
        whole = responses_types().Response.model_construct(**whole)
    if items(get(whole, "output")):
        return whole
    # The stream was cut, or the server does not repeat the output at the end.
    found = {at: _text_item(text) for at, text in texts.items()} | done
    output = [found[at] for at in sorted(found)]
    return whole.model_copy(update={"output": output}) if output else whole


def _text_item(text: _Pieces) -> Any:
    content = {"type": "output_text", "text": "".join(text), "annotations": []}
    return responses_types().ResponseOutputMessage.model_construct(
        id="msg_hookline",
        type="message",
        role="assistant",
        status="incomplete",
        content=[responses_types().ResponseOutputText.model_construct(**content)],
    )


_DELTA_FIELDS = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "input_json_delta": "partial_json",
}


@_translating_errors
def assemble_anthropic(chunks: Iterable[Any]) -> Any:
    """Assemble a Message."""
    message: dict[str, Any] | None = None
    blocks: dict[int, dict[str, Any]] = {}
    for event in _checked(chunks, is_record, "an event of anthropic"):
        kind, at = get(event, "type"), _index(event)
        if kind == "message_start":
            message = to_dict(get(event, "message"))
            given = enumerate(items(message.get("content")))
            blocks |= {index: to_dict(block) for index, block in given}
        elif kind == "content_block_start":
            blocks[at] = _joined(to_dict(get(event, "content_block")))
        elif kind == "content_block_delta":
            _extend_block(blocks.setdefault(at, {"type": "text"}), get(event, "delta"))
        elif kind == "message_delta" and message is not None:
            _extend_message(message, event)
    if message is None:
        raise TranslationError("chunks: expected a message_start event, got none")
    message["content"] = [_block(_joined(blocks[index])) for index in sorted(blocks)]
    return anthropic_types().Message.model_construct(**message)


def _extend_block(block: dict[str, Any], delta: Any) -> None:
    kind = get(delta, "type")
    if name := _DELTA_FIELDS.get(kind):
        if not isinstance(block.get(name), _Pieces):
            block[name] = _Pieces([string_of(block.get(name)) or ""])
        block[name].append(string_of(get(delta, name)) or "")
    elif kind == "signature_delta":
        block["signature"] = get(delta, "signature")
    elif kind == "citations_delta":
        if not block.get("citations"):
            block["citations"] = []
        block["citations"].append(to_dict(get(delta, "citation")))


def _extend_message(message: dict[str, Any], event: Any) -> None:
    for name in ("stop_reason", "stop_sequence", "stop_details", "container"):
        value = get(get(event, "delta"), name)
        if value is not None:
            message[name] = to_dict(value) if is_record(value) else value
    counts, before = get(event, "usage"), message.get("usage")
    found = to_dict(counts).items() if is_record(counts) else ()
    changed = {name: count for name, count in found if count is not None}
    message["usage"] = {**(before if isinstance(before, dict) else {}), **changed}


def _block(block: dict[str, Any]) -> dict[str, Any]:
    text = block.pop("partial_json", None)
    if text is not None:
        block["input"] = _arguments(text) if text.strip() else block.get("input") or {}
    return block


def _arguments(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        from jiter import from_json

    try:
        # The SDK also reads arguments that were cut off as far as they go.
        return from_json(text.encode(), partial_mode=True)
    except ValueError:
        return {}
