"""Assemble one whole response from the chunks that an SDK streams."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from itertools import groupby, pairwise
from typing import Any

from hookline.errors import TranslationError

from .sdk_objects import (
    anthropic_types,
    chat_types,
    genai_types,
    get,
    is_record,
    responses_types,
    wrong,
)

_GROWING = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "input_json_delta": "partial_json",
}


def assemble_anthropic(chunks: Iterable[Any]) -> Any:
    """Make one Message of many events."""
    message: dict[str, Any] | None = None
    blocks: dict[int, _Block] = {}
    for at, event in enumerate(chunks):
        if not is_record(event):
            raise wrong(f"chunks[{at}]", "an event of anthropic", event)
        kind = get(event, "type")
        if kind == "message_start":
            message = _plain(get(event, "message"))
        elif kind == "content_block_start":
            blocks[get(event, "index")] = _Block(_plain(get(event, "content_block")))
        elif kind == "content_block_delta" and get(event, "index") in blocks:
            blocks[get(event, "index")].grow(get(event, "delta"))
        elif kind == "message_delta" and message is not None:
            _finish(message, event)
    if message is None:
        raise TranslationError("chunks: expected a message_start event, got none")
    message["content"] = [blocks[index].whole() for index in sorted(blocks)]
    return anthropic_types().Message.model_construct(**message)


class _Block:
    """A content block that is still arriving: joined once, so the cost is linear."""

    def __init__(self, start: dict[str, Any]) -> None:
        self._start = start
        self._pieces: dict[str, list[str]] = {}
        self._citations: list[Any] = []

    def grow(self, delta: Any) -> None:
        """Take in one delta."""
        kind = get(delta, "type")
        if kind in _GROWING:
            name = _GROWING[kind]
            self._pieces.setdefault(name, []).append(get(delta, name) or "")
        elif kind == "signature_delta":
            self._start["signature"] = get(delta, "signature")
        elif kind == "citations_delta":
            self._citations.append(_plain(get(delta, "citation")))

    def whole(self) -> dict[str, Any]:
        """Give the finished block."""
        block = dict(self._start)
        for name, pieces in self._pieces.items():
            if name == "partial_json":
                block["input"] = _arguments("".join(pieces), block.get("input"))
            else:
                block[name] = (block.get(name) or "") + "".join(pieces)
        if self._citations:
            block["citations"] = [*(block.get("citations") or []), *self._citations]
        return block


def _arguments(text: str, before: Any) -> Any:
    if not text.strip():
        return before or {}
    try:
        return json.loads(text)
    except ValueError:
        return _arguments_so_far(text)


def _arguments_so_far(text: str) -> Any:
    """Read arguments that were cut off, as far as they go, as the SDK does."""
    from jiter import from_json

    try:
        return from_json(text.encode(), partial_mode=True)
    except ValueError:
        return {}


def _finish(message: dict[str, Any], event: Any) -> None:
    for name in ("stop_reason", "stop_sequence", "stop_details", "container"):
        value = get(get(event, "delta"), name)
        if value is not None:
            message[name] = _plain(value) if is_record(value) else value
    counts = _plain(get(event, "usage") or {})
    said = {name: count for name, count in counts.items() if count is not None}
    message["usage"] = {**(message.get("usage") or {}), **said}


def _plain(value: Any) -> dict[str, Any]:
    return dict(value if isinstance(value, dict) else value.to_dict())


_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]|\['([^']*)'\]|\[\"([^\"]*)\"\]")


def assemble_genai(chunks: Iterable[Any]) -> Any:
    """Make one GenerateContentResponse of many."""
    types = genai_types()
    found = list(chunks)
    for at, chunk in enumerate(found):
        if not isinstance(chunk, types.GenerateContentResponse):
            raise wrong(f"chunks[{at}]", "a GenerateContentResponse", chunk)
    if not found:
        raise TranslationError("chunks: expected at least one, got none")
    by_index: dict[int, list[Any]] = {}
    for chunk in found:
        for candidate in chunk.candidates or []:
            by_index.setdefault(candidate.index or 0, []).append(candidate)
    candidates = [_candidate(by_index[index]) for index in sorted(by_index)]
    return _last_said(found).model_copy(update={"candidates": candidates or None})


def _last_said(values: list[Any]) -> Any:
    said: dict[str, Any] = {}
    for value in values:
        said |= {name: new for name, new in value if new is not None}
    return values[-1].model_copy(update=said)


def _candidate(pieces: list[Any]) -> Any:
    contents = [piece.content for piece in pieces if piece.content is not None]
    whole = _last_said(pieces)
    if contents:
        parts = [part for content in contents for part in content.parts or []]
        content = _last_said(contents).model_copy(update={"parts": _parts(parts)})
        whole = whole.model_copy(update={"content": content})
    return _with_citations(whole, pieces)


def _with_citations(whole: Any, pieces: list[Any]) -> Any:
    found = [piece.citation_metadata for piece in pieces if piece.citation_metadata]
    citations = [one for metadata in found for one in metadata.citations or []]
    if not citations:
        return whole
    metadata = found[-1].model_copy(update={"citations": citations})
    return whole.model_copy(update={"citation_metadata": metadata})


def _parts(parts: list[Any]) -> list[Any]:
    joined: list[Any] = []
    for kind, run in groupby(_calls(parts), _text_kind):
        if kind is None:
            joined += run
        else:
            joined.append(_joined(list(run)))
    return joined


def _text_kind(part: Any) -> bool | None:
    """Tell plain text (False) and thought (True) from all other parts (None)."""
    others = (
        value
        for name, value in part
        if name not in ("text", "thought", "thought_signature")
    )
    if part.text is None or any(value is not None for value in others):
        return None
    return bool(part.thought)


def _joined(run: list[Any]) -> Any:
    text = "".join(part.text for part in run)
    return _last_said(run).model_copy(update={"text": text})


def _calls(parts: list[Any]) -> list[Any]:
    """Put calls whose arguments came in pieces together."""
    whole: list[Any] = []
    open_pieces: list[Any] = []
    for part in parts:
        call = part.function_call
        if call is None or not (open_pieces or call.will_continue):
            whole.append(part)
            continue
        open_pieces.append(part)
        if not call.will_continue:
            whole.append(_whole_call(open_pieces))
            open_pieces = []
    if open_pieces:
        whole.append(_whole_call(open_pieces))
    return whole


def _whole_call(pieces: list[Any]) -> Any:
    calls = [piece.function_call for piece in pieces]
    arguments: dict[str, Any] = {}
    texts: dict[str, list[str]] = {}
    for call in calls:
        arguments |= call.args or {}
        for partial in call.partial_args or []:
            _note(arguments, texts, partial)
    for path, found in texts.items():
        _place(arguments, path, "".join(found))
    changes = {"args": arguments, "partial_args": None, "will_continue": None}
    call = _last_said(calls).model_copy(update=changes)
    return _last_said(pieces).model_copy(update={"function_call": call})


def _note(arguments: dict[str, Any], texts: dict[str, list[str]], partial: Any) -> None:
    path = partial.json_path or "$"
    if partial.string_value is not None:
        texts.setdefault(path, []).append(partial.string_value)
    elif partial.bool_value is not None:
        _place(arguments, path, partial.bool_value)
    elif partial.number_value is not None:
        _place(arguments, path, partial.number_value)
    elif partial.null_value is not None:
        _place(arguments, path, None)


def _place(arguments: dict[str, Any], path: str, value: Any) -> None:
    steps: list[Any] = [
        int(number) if number else name or single or double
        for name, number, single, double in _STEP.findall(path)
    ]
    place: Any = arguments
    for step, following in pairwise(steps):
        place = _step_into(place, step, [] if isinstance(following, int) else {})
    if steps:
        _step_into(place, steps[-1], value, replace=True)


def _step_into(place: Any, step: Any, value: Any, *, replace: bool = False) -> Any:
    if isinstance(place, list):
        place.extend([None] * (step + 1 - len(place)))
        if replace or place[step] is None:
            place[step] = value
    elif replace or step not in place:
        place[step] = value
    return place[step]


# Said whole, even where a server says them in every chunk; other strings grow.
_SAID_WHOLE = frozenset({"id", "type", "role", "name", "finish_reason", "index"})
_ENDINGS = frozenset(
    {"response.completed", "response.incomplete", "response.failed"}
)  # fmt: skip
_PROGRESS = frozenset(
    {"response.created", "response.queued", "response.in_progress"}
)  # fmt: skip


def assemble_openai(chunks: Iterable[Any]) -> Any:
    """Make one response of many chunks, in the API that they are of."""
    found = [_unwrapped(chunk, at) for at, chunk in enumerate(chunks)]
    if not found:
        raise TranslationError("chunks: expected at least one, got none")
    completions = [chunk for chunk in found if get(chunk, "choices") is not None]
    if completions:
        return _completion(completions)
    return _response(found)


def _unwrapped(chunk: Any, at: int) -> Any:
    if not is_record(chunk):
        raise wrong(f"chunks[{at}]", "a chunk or an event of openai", chunk)
    inner = get(chunk, "chunk")  # an event of .stream(), with the chunk inside
    return chunk if inner is None else inner


def _completion(chunks: list[Any]) -> Any:
    whole: dict[str, Any] = {}
    choices: dict[int, dict[str, Any]] = {}
    for chunk in chunks:
        said = {
            key: value
            for key, value in _openai_dict(chunk).items()
            if value is not None
        }
        for choice in said.pop("choices"):
            grown = choices.setdefault(choice["index"], {})
            _grow(grown, {**choice, "message": choice.get("delta") or {}})
        whole |= said
    built = [_choice(choices[index]) for index in sorted(choices)]
    whole |= {"object": "chat.completion", "choices": built}
    whole.pop("obfuscation", None)
    return chat_types().ChatCompletion.model_construct(**whole)


def _openai_dict(value: Any) -> dict[str, Any]:
    plain: dict[str, Any] = value if isinstance(value, dict) else value.to_dict()
    return dict(plain)


def _grow(grown: dict[str, Any], piece: dict[str, Any]) -> None:
    for key, value in piece.items():
        if value is None or key == "delta":
            continue
        if isinstance(value, dict):
            _grow(grown.setdefault(key, {}), value)
        elif isinstance(value, list):
            _grow_list(grown.setdefault(key, []), value)
        elif isinstance(value, str) and key not in _SAID_WHOLE:
            grown.setdefault(key, _Pieces()).append(value)
        elif value != "":
            grown[key] = value


class _Pieces(list[str]):
    """A string that is still arriving: joined once, so that the cost is linear."""


def _grow_list(grown: list[Any], pieces: list[Any]) -> None:
    for piece in pieces:
        if isinstance(piece, dict) and isinstance(piece.get("index"), int):
            same = (
                one for one in reversed(grown) if one.get("index") == piece["index"]
            )
            entry = next(same, None)
            if entry is None:
                entry = {}
                grown.append(entry)
            _grow(entry, piece)
        else:
            grown.append(piece)


def _grown_up(value: Any) -> Any:
    if isinstance(value, _Pieces):
        return "".join(value)
    if isinstance(value, dict):
        return {key: _grown_up(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_grown_up(item) for item in value]
    return value


def _choice(grown: dict[str, Any]) -> dict[str, Any]:
    choice: dict[str, Any] = _grown_up(grown)
    message = {"content": None, "refusal": None, **choice["message"]}
    message["role"] = "assistant"
    calls = message.get("tool_calls") or []
    if calls:
        calls = sorted(calls, key=lambda call: int(call.get("index") or 0))
        message["tool_calls"] = [
            {"type": "function", **{k: v for k, v in call.items() if k != "index"}}
            for call in calls
        ]
    return {"finish_reason": None, "logprobs": None, **choice, "message": message}


def _response(events: list[Any]) -> Any:
    whole: Any = None
    done: dict[int, Any] = {}
    for event in events:
        kind = get(event, "type")
        if kind in _ENDINGS or kind in _PROGRESS:
            whole = get(event, "response")
        elif kind == "response.output_item.done":
            done[int(get(event, "output_index") or 0)] = get(event, "item")
    if whole is None:
        raise TranslationError(
            "chunks: expected chunks of a chat completion or events of a response"
        )
    if isinstance(whole, dict):
        whole = responses_types().Response.model_construct(**whole)
    if done and not whole.output:
        # A stream that was cut, or a server that repeats nothing at the end.
        items = [done[index] for index in sorted(done)]
        return whole.model_copy(update={"output": items})
    return whole
