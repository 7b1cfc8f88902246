"""Rows that translate: values of an SDK in, what hooks see and what goes back out.

Each value is translated twice, as the plain data of the row and as objects of the SDK.
What becomes of the objects is recorded only where it says something else.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from anthropic import types as anthropic_types
from google.genai import types as genai_types
from msgspec import Struct
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import BaseModel, TypeAdapter

from hookline.errors import TranslationError
from hookline.translators import HookTranslator, pick_translator, to_wire
from hookline.translators.genai import GenerateContentRequest

from .pins import Row
from .recorded_events import warnings_of

_SAMPLE_FILE = Path(__file__).parents[1] / "translators" / "samples.json"


def samples(text: str = "hi") -> dict[str, Any]:
    """One conversation in the plain data of each SDK, with a text for its responses."""
    found: dict[str, Any] = json.loads(_SAMPLE_FILE.read_text().replace("<text>", text))
    return found


SAMPLES = samples()
_NAMES = ("genai", "openai", "anthropic", "stable")
_WHOLE = ("changed", "limited", "replaced")
_CLOCK_FIELDS = ("created", "created_at")


def translate_row(row: Row) -> Row:
    """Show the ``request`` or the ``response`` of a row, and apply its ``change``.

    ``sdk`` names the translator, else the value is recognised. ``limit`` leaves only
    these tools, ``replace`` builds a response that has nothing of the original. The
    value may be the name of one of the ``SAMPLES``.
    """
    field = "request" if "request" in row else "response"
    value = row[field]
    if isinstance(value, str) and value in SAMPLES:
        value = SAMPLES[value]
    steps = _steps(row, field, value)
    recorded = {
        step: _recorded(value, result) if step in _WHOLE else result
        for step, result in steps.items()
    }
    name = row.get("sdk") or steps.get("sdk")
    objects = sdk_objects(name, field, value) if isinstance(value, dict) else None
    if objects is None:
        return recorded
    with_objects = _steps(row, field, objects)
    differing = {
        step: dumped(with_objects.get(step))
        for step in {**steps, **with_objects}
        if not _is_same(
            step, *_compared(name, field, value, objects, steps, with_objects, step)
        )
    }
    return {**recorded, "objects": differing} if differing else recorded


def _recorded(value: Any, result: Any) -> Any:
    if result is value:
        return "not at all"
    return difference(dumped(value), dumped(result))


def _compared(
    name: str | None,
    field: str,
    value: Any,
    objects: Any,
    plain: Row,
    other: Row,
    step: str,
) -> tuple[Any, Any]:
    """A result of dicts and one of objects, so that the same ones are equal."""
    of_dicts, of_objects = plain.get(step), other.get(step)
    if step not in _WHOLE:
        return of_dicts, of_objects
    if of_dicts is value or of_objects is objects:
        return of_dicts is value, of_objects is objects
    made = sdk_objects(name, field, of_dicts) if isinstance(of_dicts, dict) else None
    return dumped(of_dicts if made is None else made), dumped(of_objects)


def _is_same(step: str, of_dicts: Any, of_objects: Any) -> bool:
    if step == "refused":  # the error names the class
        return (of_dicts is None) == (of_objects is None)
    return bool(of_dicts == of_objects)


def difference(base: Any, changed: Any) -> Any:
    """The parts of a changed value that are not as in the base.

    Entries of a list that the base has too are named by their place there.
    """
    if isinstance(base, dict) and isinstance(changed, dict):
        parts = {
            key: difference(base.get(key), entry)
            for key, entry in changed.items()
            if key not in base or entry != base[key]
        }
        return parts | {key: "<removed>" for key in base if key not in changed}
    if isinstance(base, list) and isinstance(changed, list):
        return [
            f"<{base.index(entry)}>" if entry in base else entry for entry in changed
        ]
    return changed


def _steps(row: Row, field: str, value: Any) -> Row:
    """Everything that the row asks for, with the changed values as they are."""
    steps: Row = {}
    with warnings_of() as messages:
        try:
            translator = pick_translator(value, row.get("sdk", "auto"))
            if "sdk" not in row:
                steps["sdk"] = _name_of(translator)
            _translate(row, field, value, translator, steps)
        except TranslationError as error:
            steps["refused"] = str(error)
    return {**steps, "warnings": messages} if messages else steps


def _translate(
    row: Row, field: str, value: Any, translator: HookTranslator, steps: Row
) -> None:
    show = getattr(translator, f"to_hook_llm_{field}")
    apply = getattr(translator, f"from_hook_llm_{field}")
    if "replace" in row:  # also a response that cannot be shown
        steps["replaced"] = translator.replaced_response(row["replace"], value)
        return
    if value is not None:
        steps["shown"] = to_wire(show(value))
    if "change" in row:
        changed = apply(row["change"], value, hook_name=row.get("hook"))
        steps["changed"] = changed
        # What was shown is recorded where nothing changes it.
        steps["shown"] = to_wire(show(changed))
    elif field == "request" and value is not None:
        if names := translator.tool_names(value):
            steps["tools"] = names
        if "limit" in row:
            limited = translator.limit_tools(value, row["limit"])
            steps["limited"] = limited
            steps["tools"] = translator.tool_names(limited)
            del steps["shown"]


def _name_of(translator: HookTranslator) -> str:
    return next(n for n in _NAMES if type(pick_translator({}, n)) is type(translator))


def choice_row(row: Row) -> Row:
    """Read a ``choice`` of tools, or write a ``toolConfig`` as one."""
    translator = pick_translator({}, row["sdk"])
    try:
        if "choice" in row:
            return to_wire(translator.to_hook_tool_config(row["choice"]))
        config = row["toolConfig"]
        choice = translator.from_hook_tool_config(config, row.get("request"))
        return {
            "choice": dumped(choice),
            "carries_names": translator.carries_names(config),
            "read_again": to_wire(translator.to_hook_tool_config(choice)),
        }
    except TranslationError as error:
        return {"refused": str(error)}


def stream_row(row: Row) -> Row:
    """Assemble the ``chunks`` of a stream, as dicts and as objects of the SDK."""
    translator = pick_translator({}, row["sdk"])

    def assembled(chunks: list[Any]) -> Row:
        with warnings_of() as messages:
            try:
                whole = translator.assemble_response(iter(chunks))
            except TranslationError as error:
                return {"refused": str(error)}
        result = {
            "response": dumped(whole),
            "shown": to_wire(translator.to_hook_llm_response(whole)),
        }
        return {**result, "warnings": messages} if messages else result

    try:
        objects = chunk_objects(row["sdk"], row["chunks"])
    except (ValueError, KeyError):
        return assembled(row["chunks"])
    with_objects = assembled(objects)
    if row["sdk"] == "genai":  # it takes only objects
        return with_objects
    plain = assembled(row["chunks"])
    same = plain == with_objects or ("refused" in plain and "refused" in with_objects)
    return plain if same else {**plain, "objects": with_objects}


def sdk_objects(name: str | None, field: str, value: Row) -> Any:
    """The same value in the objects of its SDK; None where it has none for it."""
    make = _OBJECTS.get((name or "", field))
    if make is None:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of google-genai about unknown words
            return make(value)
    except (ValueError, TypeError, AttributeError, LookupError):
        return None  # the SDK itself does not take it


def _genai_request(value: Row) -> GenerateContentRequest:
    contents, config = value["contents"], value.get("config")
    if isinstance(contents, list):
        contents = [_genai_content(entry) for entry in contents]
    if config is not None:
        config = genai_types.GenerateContentConfig.model_validate(config)
    model = value.get("model", "")
    return GenerateContentRequest(model, _genai_content(contents), config)


def _genai_content(entry: Any) -> Any:
    if not isinstance(entry, dict):
        return entry
    kind: Any = genai_types.Part
    if "parts" in entry or "role" in entry:
        kind = genai_types.Content
    return kind.model_validate(entry)


def _openai_response(value: Row) -> Any:
    # As the SDK makes objects of what a service sends, whatever that is.
    kind: Any = ChatCompletion if "choices" in value else Response
    return kind.construct(**value)


def _anthropic_message(value: Row) -> Any:
    return anthropic_types.Message.construct(**value)


_OBJECTS: dict[tuple[str, str], Callable[[Row], Any]] = {
    ("genai", "request"): _genai_request,
    ("genai", "response"): genai_types.GenerateContentResponse.model_validate,
    ("openai", "response"): _openai_response,
    ("anthropic", "response"): _anthropic_message,
}
_CHUNKS: dict[str, TypeAdapter[Any]] = {
    "genai": TypeAdapter(genai_types.GenerateContentResponse),
    "openai": TypeAdapter(ChatCompletionChunk | ResponseStreamEvent),
    "anthropic": TypeAdapter(anthropic_types.RawMessageStreamEvent),
}


def chunk_objects(name: str, chunks: list[Any]) -> list[Any]:
    """The chunks of a stream in the objects of its SDK."""
    return [_CHUNKS[name].validate_python(chunk) for chunk in chunks]


def dumped(value: Any) -> Any:
    """Objects of an SDK as plain data, without unset fields and the time."""
    if isinstance(value, Struct):
        fields = {name: getattr(value, name) for name in value.__struct_fields__}
        return dumped({name: one for name, one in fields.items() if one is not None})
    if isinstance(value, BaseModel):
        return dumped(
            value.model_dump(
                mode="json", by_alias=True, exclude_none=True, warnings=False
            )
        )
    if isinstance(value, dict):
        return {
            key: "<now>" if _is_now(key, entry) else dumped(entry)
            for key, entry in value.items()
        }
    return [dumped(entry) for entry in value] if isinstance(value, list) else value


def _is_now(key: str, value: Any) -> bool:
    return key in _CLOCK_FIELDS and isinstance(value, int | float) and value > 1e9
