"""Triggers for what happens around the work: sessions, turns, notices, compression.

They return None where no hook has spoken, and never raise, but for cancellation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hookline.config import Config
from hookline.events import (
    NotificationType,
    PreCompressTrigger,
    SessionEndReason,
    SessionStartSource,
)
from hookline.results import ProcessedHookResult

from .firer import fire


async def fire_session_start_hook(
    config: Config, source: SessionStartSource | str = SessionStartSource.Startup
) -> ProcessedHookResult | None:
    """A session starts: additional context is for the model."""
    return await fire(config, lambda firer: firer.fire_session_start_event(source))


async def fire_session_end_hook(
    config: Config, reason: SessionEndReason | str = SessionEndReason.Exit
) -> ProcessedHookResult | None:
    """A session ends."""
    return await fire(config, lambda firer: firer.fire_session_end_event(reason))


async def fire_before_agent_hook(
    config: Config, prompt: str
) -> ProcessedHookResult | None:
    """A turn is about to start: it may be blocked, or given context."""
    return await fire(config, lambda firer: firer.fire_before_agent_event(prompt))


async def fire_after_agent_hook(
    config: Config, prompt: str, prompt_response: str, stop_hook_active: bool = False
) -> ProcessedHookResult | None:
    """A turn has an answer: a block rejects it."""
    return await fire(
        config,
        lambda firer: firer.fire_after_agent_event(
            prompt, prompt_response, stop_hook_active
        ),
    )


async def fire_notification_hook(
    config: Config,
    message: str,
    *,
    notification_type: NotificationType | str = NotificationType.ToolPermission,
    details: Mapping[str, Any] | None = None,
    level: str | None = None,
) -> ProcessedHookResult | None:
    """The host tells its user something."""
    return await fire(
        config,
        lambda firer: firer.fire_notification_event(
            message,
            notification_type=notification_type,
            details=details,
            level=level,
        ),
    )


async def fire_pre_compress_hook(
    config: Config, trigger: PreCompressTrigger | str = PreCompressTrigger.Auto
) -> ProcessedHookResult | None:
    """The history is about to be compressed."""
    return await fire(config, lambda firer: firer.fire_pre_compress_event(trigger))
