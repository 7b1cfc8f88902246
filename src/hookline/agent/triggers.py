"""Fire events for a config or a session; never raises (protocol.md#callers)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hookline.protocol.events import (
    NotificationType,
    PreCompressTrigger,
    SessionEndReason,
    SessionStartSource,
)
from hookline.protocol.inputs import EventFirer
from hookline.protocol.results import ProcessedHookResult

from .firing import ConfigOrEvents, events_of, said

HookFirer = EventFirer
"""What has the ``fire_*_event`` methods: a handler, a session, ``RemoteHooks``."""


async def fire_session_start_hook(
    config: ConfigOrEvents,
    source: SessionStartSource | str = SessionStartSource.Startup,
) -> ProcessedHookResult | None:
    """A session starts: additional context is for the model."""
    return said(await events_of(config).fire_session_start_event(source))


async def fire_session_end_hook(
    config: ConfigOrEvents, reason: SessionEndReason | str = SessionEndReason.Exit
) -> ProcessedHookResult | None:
    """A session ends."""
    return said(await events_of(config).fire_session_end_event(reason))


async def fire_before_agent_hook(
    config: ConfigOrEvents, prompt: str
) -> ProcessedHookResult | None:
    """A turn is about to start: hooks may block it or add context."""
    return said(await events_of(config).fire_before_agent_event(prompt))


async def fire_after_agent_hook(
    config: ConfigOrEvents,
    prompt: str,
    prompt_response: str,
    stop_hook_active: bool = False,
) -> ProcessedHookResult | None:
    """A turn has an answer: a block rejects it."""
    return said(
        await events_of(config).fire_after_agent_event(
            prompt, prompt_response, stop_hook_active
        )
    )


async def fire_subagent_start_hook(
    config: ConfigOrEvents,
    agent_id: str,
    agent_type: str,
    *,
    prompt: str | None = None,
) -> ProcessedHookResult | None:
    """A subagent is about to start: hooks may block it or add context."""
    return said(
        await events_of(config).fire_subagent_start_event(
            agent_id, agent_type, prompt=prompt
        )
    )


async def fire_subagent_stop_hook(
    config: ConfigOrEvents,
    agent_id: str,
    agent_type: str,
    *,
    prompt: str | None = None,
    prompt_response: str | None = None,
    stop_hook_active: bool = False,
) -> ProcessedHookResult | None:
    """A subagent has an answer: a block rejects it."""
    return said(
        await events_of(config).fire_subagent_stop_event(
            agent_id,
            agent_type,
            prompt=prompt,
            prompt_response=prompt_response,
            stop_hook_active=stop_hook_active,
        )
    )


async def fire_notification_hook(
    config: ConfigOrEvents,
    message: str,
    *,
    notification_type: NotificationType | str = NotificationType.ToolPermission,
    details: Mapping[str, Any] | None = None,
    level: str | None = None,
) -> ProcessedHookResult | None:
    """The host notifies its user."""
    return said(
        await events_of(config).fire_notification_event(
            message,
            notification_type=notification_type,
            details=details,
            level=level,
        )
    )


async def fire_pre_compress_hook(
    config: ConfigOrEvents, trigger: PreCompressTrigger | str = PreCompressTrigger.Auto
) -> ProcessedHookResult | None:
    """The history is about to be compressed."""
    return said(await events_of(config).fire_pre_compress_event(trigger))
