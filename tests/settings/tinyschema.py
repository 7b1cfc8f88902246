"""As much of JSON Schema as the settings' own schema uses."""

from __future__ import annotations

import re
from typing import Any

_TYPES: dict[str, Any] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "number": int | float,
    "integer": int | float,
}


class TinySchema:
    """Validates values; raises for a keyword that it does not know."""

    def __init__(self, root: dict[str, Any]) -> None:
        self._root = root

    def fits(self, value: Any) -> bool:
        return self._fits(self._root, value)

    def _fits(self, schema: dict[str, Any], value: Any) -> bool:
        checks = (
            getattr(self, f"_{key.strip('$')}")(schema, value)
            for key in schema
            if key not in {"$schema", "title", "description", "$defs", "then"}
        )
        return all(checks)

    def _ref(self, schema: dict[str, Any], value: Any) -> bool:
        name = schema["$ref"].removeprefix("#/$defs/")
        return self._fits(self._root["$defs"][name], value)

    def _type(self, schema: dict[str, Any], value: Any) -> bool:
        names = schema["type"]
        names = names if isinstance(names, list) else [names]
        return any(self._is(name, value) for name in names)

    def _is(self, name: str, value: Any) -> bool:
        if isinstance(value, bool):
            return name == "boolean"
        if name == "integer" and isinstance(value, float):
            return value.is_integer()
        return isinstance(value, _TYPES[name])

    def _enum(self, schema: dict[str, Any], value: Any) -> bool:
        return value in schema["enum"]

    def _minimum(self, schema: dict[str, Any], value: Any) -> bool:
        return not self._is("number", value) or value >= schema["minimum"]

    def _maximum(self, schema: dict[str, Any], value: Any) -> bool:
        return not self._is("number", value) or value <= schema["maximum"]

    def _exclusiveMinimum(self, schema: dict[str, Any], value: Any) -> bool:  # noqa: N802 - the keyword's own spelling
        return not self._is("number", value) or value > schema["exclusiveMinimum"]

    def _pattern(self, schema: dict[str, Any], value: Any) -> bool:
        pattern = schema["pattern"].replace("$", r"\Z")
        return not isinstance(value, str) or re.search(pattern, value) is not None

    def _properties(self, schema: dict[str, Any], value: Any) -> bool:
        known = schema["properties"]
        return not isinstance(value, dict) or all(
            self._fits(known[key], item) for key, item in value.items() if key in known
        )

    def _additionalProperties(self, schema: dict[str, Any], value: Any) -> bool:  # noqa: N802 - the keyword's own spelling
        if not isinstance(value, dict):
            return True
        more = [v for k, v in value.items() if k not in schema.get("properties", {})]
        rule = schema["additionalProperties"]
        return not more if rule is False else all(self._fits(rule, v) for v in more)

    def _propertyNames(self, schema: dict[str, Any], value: Any) -> bool:  # noqa: N802 - the keyword's own spelling
        return not isinstance(value, dict) or all(
            self._fits(schema["propertyNames"], key) for key in value
        )

    def _required(self, schema: dict[str, Any], value: Any) -> bool:
        return not isinstance(value, dict) or set(schema["required"]) <= set(value)

    def _items(self, schema: dict[str, Any], value: Any) -> bool:
        return not isinstance(value, list) or all(
            self._fits(schema["items"], item) for item in value
        )

    def _anyOf(self, schema: dict[str, Any], value: Any) -> bool:  # noqa: N802 - the keyword's own spelling
        return any(self._fits(option, value) for option in schema["anyOf"])

    def _allOf(self, schema: dict[str, Any], value: Any) -> bool:  # noqa: N802 - the keyword's own spelling
        return all(self._fits(part, value) for part in schema["allOf"])

    def _if(self, schema: dict[str, Any], value: Any) -> bool:
        return not self._fits(schema["if"], value) or self._fits(schema["then"], value)
