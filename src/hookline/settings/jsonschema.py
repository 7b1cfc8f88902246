"""The JSON Schema of the settings, for editors; from the tables that reading uses."""

from __future__ import annotations

from typing import Any

from hookline.events import TRAITS, HookEventName, Matching

from .fields import (
    GROUP_FIELDS,
    HOOK_FIELDS,
    OPTION_FIELDS,
    ROOT_FIELDS,
    object_schema,
)
from .schema import HookType

DRAFT = "https://json-schema.org/draft/2020-12/schema"


def settings_schema() -> dict[str, Any]:
    """Describe everything that a settings file may hold."""
    schema = object_schema(ROOT_FIELDS)
    properties = schema["properties"]
    properties["$schema"]["type"] = "string"
    properties["hooks"].update(
        type="object",
        additionalProperties=False,
        properties={event.value: _event_schema(event) for event in HookEventName},
    )
    properties["hooksConfig"] |= object_schema(OPTION_FIELDS)
    return {
        "$schema": DRAFT,
        "title": "Hookline settings",
        **schema,
        "$defs": {"group": _group_schema(), "hook": _hook_schema()},
    }


def _event_schema(event: HookEventName) -> dict[str, Any]:
    traits = TRAITS[event]
    about = {
        Matching.REGEX: f"The matcher is searched in {traits.matched_field}.",
        Matching.EXACT: f"The matcher is compared with {traits.matched_field}.",
        Matching.NOTHING: "It takes no matcher.",
    }[traits.matching]
    return {"description": about, "type": "array", "items": {"$ref": "#/$defs/group"}}


def _group_schema() -> dict[str, Any]:
    schema = object_schema(GROUP_FIELDS)
    schema["properties"]["hooks"].update(type="array", items={"$ref": "#/$defs/hook"})
    return {**schema, "required": ["hooks"]}


def _hook_schema() -> dict[str, Any]:
    return {
        **object_schema(HOOK_FIELDS),
        "required": ["type"],
        "allOf": [
            _needs([HookType.COMMAND, HookType.WORKER], "command"),
            _needs([HookType.PYTHON], "function"),
        ],
    }


def _needs(types: list[HookType], key: str) -> dict[str, Any]:
    names = [kind.value for kind in types]
    condition = {"properties": {"type": {"enum": names}}, "required": ["type"]}
    return {"if": condition, "then": {"required": [key]}}
