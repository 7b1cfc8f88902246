"""The JSON Schema of settings files, made from their Structs.

The description of a key is the docstring below its field.
"""

from __future__ import annotations

import ast
import inspect
from itertools import pairwise
from typing import Any

import msgspec

from hookline.protocol.convert import keys_of
from hookline.protocol.events import TRAITS, HookEventName, Matching

from . import model
from .model import REQUIRED_BY_TYPE, Exporter, OnFailure, SettingsFile

_SHORT_FORMS: dict[str, Any] = {
    "onError": {"enum": list(OnFailure)},
    "policies": {"type": "string", "pattern": r"\S"},
    "telemetry": {"enum": list(Exporter)},
}
"""What ``parse.in_full`` accepts for a value beside its long form."""


def settings_schema() -> dict[str, Any]:
    """The JSON Schema of settings files."""
    schema: dict[str, Any] = _without_null(msgspec.json.schema(SettingsFile))
    definitions = schema["$defs"]
    _describe(definitions)
    definitions["HookGroup"]["required"] = ["hooks"]
    definitions["HookConfig"]["allOf"] = [
        {
            "if": {"properties": {"type": {"const": hook_type}}, "required": ["type"]},
            "then": {"required": [key]},
        }
        for hook_type, key in REQUIRED_BY_TYPE.items()
    ]
    for level in ("HookConfig", "HooksOptions"):
        properties = definitions[level]["properties"]
        for key in _SHORT_FORMS.keys() & properties.keys():
            description = properties[key].pop("description")
            forms = [_SHORT_FORMS[key], properties[key]]
            properties[key] = {"description": description, "anyOf": forms}
        for key in {"env", "headers"} & properties.keys():
            properties[key]["additionalProperties"] = {"type": ["string", "number"]}
    del definitions["HookEventName"]
    hooks = definitions["SettingsFile"]["properties"]["hooks"]
    groups = hooks["additionalProperties"]
    hooks["additionalProperties"] = False
    hooks.pop("propertyNames", None)
    hooks["properties"] = {
        event.value: {"description": _matching(event), **groups}
        for event in HookEventName
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **definitions.pop("SettingsFile"),
        "title": "Hookline settings",
        "$defs": definitions,
    }


def _describe(definitions: dict[str, Any]) -> None:
    """Take descriptions from the docstrings of fields, as far as there is source."""
    for part in ast.parse(inspect.getsource(model)).body:
        if not isinstance(part, ast.ClassDef) or part.name not in definitions:
            continue
        properties = definitions[part.name].get("properties", {})
        keys = keys_of(getattr(model, part.name)) if properties else {}
        names = {key.attribute: name for name, key in keys.items()}
        for statement, below in pairwise(part.body):
            match statement, below:
                case (
                    ast.AnnAssign(target=ast.Name(id=attribute)),
                    ast.Expr(value=ast.Constant(value=description)),
                ):
                    properties[names[attribute]]["description"] = description


def _matching(event: HookEventName) -> str:
    field = TRAITS[event].matched_field
    return {
        Matching.REGEX: f"The matcher is searched in {field}.",
        Matching.EXACT: f"The matcher is compared with {field}.",
        Matching.NOTHING: "No matcher.",
    }[TRAITS[event].matching]


def _without_null(schema: Any) -> Any:
    """Without null, which stands for an absent key and is no value for any."""
    if isinstance(schema, list):
        return [_without_null(item) for item in schema if item != {"type": "null"}]
    if not isinstance(schema, dict):
        return schema
    tidy = {key: _without_null(value) for key, value in schema.items()}
    if isinstance(tidy.get("default", {}), dict | list | None):
        tidy.pop("default", None)  # that of an absent key
    if len(tidy.get("anyOf", ())) == 1:
        tidy |= tidy.pop("anyOf")[0]
    return tidy
