"""Assemble one whole response from the chunks that an SDK streams.

Strings that arrive in pieces are joined once, so that the cost stays linear. Whatever
text a chunk holds is in the response: hooks judge the response, people see the chunks.
Other values of the wrong type are ignored. The accumulator that openai publishes fails
for parallel calls in one chunk and for odd chunks, and takes eight times as long.
"""

from __future__ import annotations

import json
import logging
import re
from itertools import groupby, zip_longest
from typing import Any

from hookline.errors import TranslationError

from .shape import whole_number
from .values import (
    anthropic_types,
    chat_types,
    get,
    is_mapping,
    is_record,
    items,
    responses_types,
    string_of,
    to_dict,
)

logger = logging.getLogger("hookline")


def _index(value: Any) -> int:
    return whole_number(get(value, "index")) or 0


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


def assemble_genai(chunks: list[Any]) -> Any:
    """Assemble a GenerateContentResponse."""
    by_index: dict[int, list[Any]] = {}
    for chunk in chunks:
        for candidate in chunk.candidates or []:
            by_index.setdefault(_index(candidate), []).append(candidate)
    candidates: list[Any] = []
    for _, pieces in sorted(by_index.items()):
        changes: dict[str, Any] = {}
        contents = [piece.content for piece in pieces if piece.content is not None]
        if contents:
            parts = [part for content in contents for part in content.parts or []]
            changes["content"] = _merged(contents, parts=_genai_parts(parts))
        cited = [piece.citation_metadata for piece in pieces if piece.citation_metadata]
        if citations := [c for metadata in cited for c in metadata.citations or []]:
            metadata = cited[-1].model_copy(update={"citations": citations})
            changes["citation_metadata"] = metadata
        candidates.append(_merged(pieces, **changes))
    return _merged(chunks, candidates=candidates or None)


def _merged(values: list[Any], **changes: Any) -> Any:
    """Copy the last object with the last value of each field, and some changes."""
    fields: dict[str, Any] = {}
    for value in values:
        fields |= {name: field for name, field in value if field is not None}
    return values[-1].model_copy(update=fields | changes)


def _genai_parts(parts: list[Any]) -> list[Any]:
    """Join texts, and calls with arguments that arrived in pieces."""
    parts_with_calls: list[Any] = []
    pieces: list[Any] = []
    for part in parts:
        call = part.function_call
        if call is None or not (pieces or call.will_continue):
            parts_with_calls.append(part)
            continue
        pieces.append(part)
        if not call.will_continue:
            parts_with_calls.append(_genai_call(pieces))
            pieces = []
    if pieces:
        parts_with_calls.append(_genai_call(pieces))
    joined: list[Any] = []
    for is_thought, run in groupby(parts_with_calls, _is_thought):
        if is_thought is None:
            joined += run
        else:
            texts = list(run)
            joined.append(_merged(texts, text="".join(part.text for part in texts)))
    return joined


def _is_thought(part: Any) -> bool | None:
    """Tell thought (True) from plain text (False) and other parts (None)."""
    fields = (field for name, field in part if name not in _TEXT_FIELDS)
    if part.text is None or any(field is not None for field in fields):
        return None
    return bool(part.thought)


def _genai_call(pieces: list[Any]) -> Any:
    calls = [piece.function_call for piece in pieces]
    arguments: dict[str, Any] = {}
    texts: dict[str, list[str]] = {}
    values: list[tuple[str, Any]] = []
    for call in calls:
        arguments |= call.args or {}
        for partial in call.partial_args or []:
            path = partial.json_path or "$"
            value = partial.bool_value
            if value is None:
                value = partial.number_value
            if partial.string_value is not None:
                texts.setdefault(path, []).append(partial.string_value)
            elif value is not None or partial.null_value is not None:
                values.append((path, value))
    values += [(path, "".join(text_pieces)) for path, text_pieces in texts.items()]
    for path, value in values:
        try:
            _set_argument(arguments, path, value)
        except (AttributeError, LookupError, TypeError) as error:
            logger.warning("streamed argument %.80r is ignored: %s", path, error)
    call = _merged(calls, args=arguments, partial_args=None, will_continue=None)
    text = "".join(piece.text or "" for piece in pieces)
    return _merged(pieces, function_call=call, text=text or None)


def _set_argument(arguments: dict[str, Any], path: str, value: Any) -> None:
    """Set a value at its JSON path."""
    place: Any = arguments
    steps: list[Any] = [
        int(number[:10]) if number else name or single or double
        for name, number, single, double in _GENAI_STEP.findall(path)[: _MAX_STEPS + 1]
    ]
    if len(steps) > _MAX_STEPS:
        raise LookupError(f"more than {_MAX_STEPS} steps")
    for step, following in zip_longest(steps, steps[1:]):
        if isinstance(place, list):
            if step - len(place) > _MAX_GAP:
                raise LookupError(f"index {step} in an array of {len(place)}")
            place.extend([None] * (step - len(place) + 1))
        if following is None:
            place[step] = value
        elif (place[step] if isinstance(place, list) else place.get(step)) is None:
            place[step] = [] if isinstance(following, int) else {}
        place = place[step]


# Complete in every chunk that has them; other strings are continued.
_COMPLETE = frozenset({"id", "type", "role", "name", "finish_reason", "index"})


def assemble_openai(events: list[Any]) -> Any:
    """Assemble a ChatCompletion from chunks, or a Response from events."""
    # The events of .stream() hold the chunk of create(stream=True).
    chunks = [get(event, "chunk") or event for event in events]
    completions = [chunk for chunk in chunks if get(chunk, "choices") is not None]
    return _completion(completions) if completions else _response(chunks)


def _completion(chunks: list[Any]) -> Any:
    whole: dict[str, Any] = {}
    by_index: dict[int, dict[str, Any]] = {}
    for chunk in chunks:
        fields = {k: v for k, v in to_dict(chunk).items() if v is not None}
        for choice in fields.pop("choices"):
            message = choice.get("delta") or choice.get("message") or {}
            piece = {**choice, "delta": None, "message": message, "index": None}
            index = _index(choice)
            _extend(by_index.setdefault(index, {"index": index}), piece)
        whole |= fields
    choices: list[dict[str, Any]] = []
    for index in sorted(by_index):
        choice = {"finish_reason": None, "logprobs": None, **_joined(by_index[index])}
        message = {"content": None, "refusal": None, **choice["message"]}
        if message.get("tool_calls"):
            calls = filter(is_mapping, items(message["tool_calls"]))
            message["tool_calls"] = [
                {"type": "function", **{k: v for k, v in call.items() if k != "index"}}
                for call in sorted(calls, key=_index)
            ]
        choices.append({**choice, "message": {**message, "role": "assistant"}})
    whole.pop("obfuscation", None)
    whole |= {"object": "chat.completion", "choices": choices}
    return chat_types().ChatCompletion.model_construct(**whole)


def _extend(target: dict[str, Any], piece: dict[str, Any]) -> None:
    for key, value in piece.items():
        if isinstance(value, dict):
            _extend(target.setdefault(key, {}), value)
        elif isinstance(value, list):
            entries = target.setdefault(key, [])
            for item in value:
                index = item.get("index") if isinstance(item, dict) else None
                if whole_number(index) is None:
                    entries.append(item)
                    continue
                same_index = (e for e in reversed(entries) if get(e, "index") == index)
                if (entry := next(same_index, None)) is None:
                    entries.append(entry := {})
                _extend(entry, item)
        elif isinstance(value, str) and key not in _COMPLETE:
            target.setdefault(key, _Pieces()).append(value)
        elif value is not None and value != "":
            target[key] = value


def _response(events: list[Any]) -> Any:
    whole: Any = None
    output: dict[int, Any] = {}
    texts: dict[int, list[str]] = {}
    for event in events:
        whole = get(event, "response") or whole
        kind, at = get(event, "type"), whole_number(get(event, "output_index")) or 0
        if kind == "response.output_item.done":
            output[at] = get(event, "item")
        elif kind == "response.output_text.delta":
            texts.setdefault(at, []).append(string_of(get(event, "delta")) or "")
    if whole is None:
        raise TranslationError(
            "chunks: expected chunks of a chat completion or events of a response"
        )
    types = responses_types()
    if is_mapping(whole):
        whole = types.Response.model_construct(**whole)
    if items(get(whole, "output")):
        return whole
    # The stream was cut, or the server does not repeat the output at the end.
    for at, pieces in texts.items():
        if at not in output:
            content = types.ResponseOutputText.model_construct(
                type="output_text", text="".join(pieces), annotations=[]
            )
            output[at] = types.ResponseOutputMessage.model_construct(
                id="msg_hookline",
                type="message",
                role="assistant",
                status="incomplete",
                content=[content],
            )
    if not output:
        return whole
    return whole.model_copy(update={"output": [output[at] for at in sorted(output)]})


_DELTA_FIELDS = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "input_json_delta": "partial_json",
}


def assemble_anthropic(events: list[Any]) -> Any:
    """Assemble a Message."""
    message: dict[str, Any] | None = None
    blocks: dict[int, dict[str, Any]] = {}
    for event in events:
        kind, at, delta = get(event, "type"), _index(event), get(event, "delta")
        if kind == "message_start":
            message = to_dict(get(event, "message"))
            content = enumerate(items(message.get("content")))
            blocks |= {index: to_dict(block) for index, block in content}
        elif kind == "content_block_start":
            blocks[at] = _joined(to_dict(get(event, "content_block")))
        elif kind == "content_block_delta":
            _extend_block(blocks.setdefault(at, {"type": "text"}), delta)
        elif kind == "message_delta" and message is not None:
            for name in ("stop_reason", "stop_sequence", "stop_details", "container"):
                if (value := get(delta, name)) is not None:
                    message[name] = to_dict(value) if is_record(value) else value
            counts, usage = get(event, "usage"), message.get("usage")
            message["usage"] = dict(usage) if isinstance(usage, dict) else {}
            for name, count in to_dict(counts).items() if is_record(counts) else ():
                if count is not None:
                    message["usage"][name] = count
    if message is None:
        raise TranslationError("chunks: expected a message_start event, got none")
    message["content"] = [_joined(blocks[index]) for index in sorted(blocks)]
    for block in message["content"]:
        text = block.pop("partial_json", None)
        if text is not None:
            arguments = _arguments(text) if text.strip() else block.get("input") or {}
            block["input"] = arguments
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
