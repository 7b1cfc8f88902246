"""Hooks for tests that name functions in settings."""

from __future__ import annotations

from typing import Any

NOT = "a function"


async def guard(event: dict[str, Any]) -> dict[str, Any]:
    return {"decision": "block", "reason": event["tool_name"]}
