"""One whole response of the chunks that google-genai streams.

Texts that follow each other become one part, calls keep their place among them, and
of everything that is said again in each chunk the last word counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby, pairwise
from typing import Any

from hookline.errors import TranslationError
from hookline.translators.fields import wrong

from .sdk import types_of

_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]|\['([^']*)'\]|\[\"([^\"]*)\"\]")


def assemble(chunks: Iterable[Any]) -> Any:
    """Make one GenerateContentResponse of many."""
    types = types_of()
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
