"""The input that hooks get: base fields and those of the event.

Values that a host hands over by name are brought into the one spelling here; what the
hooks see does not depend on the way an event came in.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from hookline.log import logger

from .events import TRAITS, HookEventName, NotificationType

OWN_FIELDS = frozenset({"cwd", "hook_event_name", "timestamp"})
"""Always Hookline's own: nobody outside chooses where a process runs."""

_BASE_FIELDS = OWN_FIELDS | {"session_id", "transcript_path"}
_ALIASES = {"model_request": "llm_request", "model_response": "llm_response"}
_DEFAULTS: dict[HookEventName, dict[str, Any]] = {
    HookEventName.AfterAgent: {"stop_hook_active": False},
    HookEventName.Notification: {
        "notification_type": NotificationType.ToolPermission.value,
        "details": {},
    },
}


def base_fields(
    event: HookEventName, session_id: str, cwd: str, transcript_path: str
) -> dict[str, Any]:
    """The fields that every hook gets (HOOK-062)."""
    return {
        "session_id": session_id,
        "cwd": cwd,
        "hook_event_name": event.value,
        "timestamp": timestamp(time.time_ns() // 1_000_000),
        "transcript_path": transcript_path,
    }


def timestamp(milliseconds: int) -> str:
    """A point in time as hooks get it: ISO 8601, UTC, milliseconds, ``Z``."""
    seconds, rest = divmod(milliseconds, 1000)
    return f"{_to_the_second(seconds)}.{rest:03d}Z"


@lru_cache(maxsize=2)
def _to_the_second(seconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))


def event_fields(event: HookEventName, given: Mapping[str, Any]) -> dict[str, Any]:
    """The event's own fields; raises ``ValueError`` for a missing choice."""
    named = {_ALIASES.get(key, key): value for key, value in given.items()}
    fields = {k: v for k, v in named.items() if k not in _BASE_FIELDS}
    for name, default in _DEFAULTS.get(event, {}).items():
        if fields.get(name) is None:
            fields[name] = default
    _check_choice(event, fields)
    return fields


def _check_choice(event: HookEventName, fields: dict[str, Any]) -> None:
    traits = TRAITS[event]
    if traits.choices is None:
        return
    known = [choice.value for choice in traits.choices]
    value = fields.get(traits.matched_field)
    problem = (
        f"{event.value} input: {traits.matched_field}: "
        f"expected one of {', '.join(known)}, got {value!r}"
    )
    if not isinstance(value, str):
        raise ValueError(problem)  # noqa: TRY004 - a wrong value of an input, as others
    if value not in known:
        # A host may know more reasons than we do (V1: only the bus is strict); hooks
        # that take all of them should still run.
        logger.warning("%s", problem)
    fields[traits.matched_field] = str(value)
