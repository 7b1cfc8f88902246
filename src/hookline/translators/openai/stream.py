"""One whole ChatCompletion or Response of what the openai package streams.

Takes the chunks of ``create(stream=True)`` and the events of ``.stream()`` alike.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hookline.errors import TranslationError
from hookline.translators.fields import get, is_record, wrong

from .sdk import chat_types, responses_types

# Said whole, even where a server says them in every chunk; other strings grow.
_SAID_WHOLE = frozenset({"id", "type", "role", "name", "finish_reason", "index"})
_ENDINGS = frozenset(
    {"response.completed", "response.incomplete", "response.failed"}
)  # fmt: skip
_PROGRESS = frozenset(
    {"response.created", "response.queued", "response.in_progress"}
)  # fmt: skip


def assemble(chunks: Iterable[Any]) -> Any:
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
        said = {key: value for key, value in _plain(chunk).items() if value is not None}
        for choice in said.pop("choices"):
            grown = choices.setdefault(choice["index"], {})
            _grow(grown, {**choice, "message": choice.get("delta") or {}})
        whole |= said
    built = [_choice(choices[index]) for index in sorted(choices)]
    whole |= {"object": "chat.completion", "choices": built}
    whole.pop("obfuscation", None)
    return chat_types().ChatCompletion.model_construct(**whole)


def _plain(value: Any) -> dict[str, Any]:
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
