"""Fire events for a config; never raises (PROTOCOL section 10)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

from hookline.config import Config
from hookline.engine.handler import HookEventHandler
from hookline.engine.on_error import BrokenSystem, apply_policy_to_envelope
from hookline.log import logger
from hookline.protocol.events import (
    HookEventName,
    NotificationType,
    PreCompressTrigger,
    SessionEndReason,
    SessionStartSource,
)
from hookline.protocol.inputs import EventFirer
from hookline.protocol.results import (
    FailureMeta,
    ProcessedHookResult,
    Stage,
    build_failure_envelope,
    process_common_hook_output_fields,
)

HookFirer = EventFirer

_WORD = re.compile(r"(?<!^)(?=[A-Z])")
_METHODS = {
    event: f"fire_{_WORD.sub('_', event.value).lower()}_event"
    for event in HookEventName
}


async def fire(
    config: Config, event: HookEventName, *args: Any, **fields: Any
) -> ProcessedHookResult | None:
    """Fire with the arguments of the event's method on ``HookFirer``.

    None if no hook returned an output, or the hooks are unreachable.
    """
    try:
        firer = await _firer_of(config)
        if firer is None:
            return None
        method = getattr(firer, _METHODS[event])
        result: ProcessedHookResult = await method(*args, **fields)
    # The second documented edge: whatever fails in the hooks, the agent goes on.
    except Exception as error:  # noqa: BLE001
        result = _failed(config, event, error)
    return None if result.aggregated.final_output is None else result


async def has_hooks_for(config: Config, event: HookEventName) -> bool:
    """Whether a hook may run on an event; always true for hooks on a bus."""
    try:
        firer = await _firer_of(config)
        if firer is None:
            return False
        return not isinstance(firer, HookEventHandler) or firer.has_hooks_for(event)
    # As above; the caller then waits for an answer before it shows anything.
    except Exception as error:  # noqa: BLE001
        logger.warning("cannot tell whether hooks listen: %r", error)
        return True


async def _firer_of(config: Config) -> HookFirer | None:
    if config.remote_hooks is not None:
        return cast("HookFirer", config.remote_hooks)
    system = config.get_hook_system()
    if system is None:
        return None
    await system.initialize()
    return system.event_handler


def _failed(
    config: Config, event: HookEventName, error: Exception
) -> ProcessedHookResult:
    """Go on without hooks, or block if a hook of the event asks for that."""
    logger.warning("%s hooks did not run: %r", event.value, error)
    meta = FailureMeta(event_name=event)
    envelope = build_failure_envelope(error, Stage.INTERNAL, meta)
    is_closed = event in BrokenSystem(error, config.settings).closed
    envelope = apply_policy_to_envelope(envelope, event, (), always=is_closed)
    return process_common_hook_output_fields(envelope, event)


async def fire_session_start_hook(
    config: Config, source: SessionStartSource | str = SessionStartSource.Startup
) -> ProcessedHookResult | None:
    """A session starts: additional context is for the model."""
    return await fire(config, HookEventName.SessionStart, source)


async def fire_session_end_hook(
    config: Config, reason: SessionEndReason | str = SessionEndReason.Exit
) -> ProcessedHookResult | None:
    """A session ends."""
    return await fire(config, HookEventName.SessionEnd, reason)


async def fire_before_agent_hook(
    config: Config, prompt: str
) -> ProcessedHookResult | None:
    """A turn is about to start: hooks may block it or add context."""
    return await fire(config, HookEventName.BeforeAgent, prompt)


async def fire_after_agent_hook(
    config: Config, prompt: str, prompt_response: str, stop_hook_active: bool = False
) -> ProcessedHookResult | None:
    """A turn has an answer: a block rejects it."""
    return await fire(
        config, HookEventName.AfterAgent, prompt, prompt_response, stop_hook_active
    )


async def fire_subagent_start_hook(
    config: Config, agent_id: str, agent_type: str, *, prompt: str | None = None
) -> ProcessedHookResult | None:
    """A subagent is about to start: hooks may block it or add context."""
    return await fire(
        config, HookEventName.SubagentStart, agent_id, agent_type, prompt=prompt
    )


async def fire_subagent_stop_hook(
    config: Config,
    agent_id: str,
    agent_type: str,
    *,
    prompt: str | None = None,
    prompt_response: str | None = None,
    stop_hook_active: bool = False,
) -> ProcessedHookResult | None:
    """A subagent has an answer: a block rejects it."""
    return await fire(
        config,
        HookEventName.SubagentStop,
        agent_id,
        agent_type,
        prompt=prompt,
        prompt_response=prompt_response,
        stop_hook_active=stop_hook_active,
    )


async def fire_notification_hook(
    config: Config,
    message: str,
    *,
    notification_type: NotificationType | str = NotificationType.ToolPermission,
    details: Mapping[str, Any] | None = None,
    level: str | None = None,
) -> ProcessedHookResult | None:
    """The host notifies its user."""
    return await fire(
        config,
        HookEventName.Notification,
        message,
        notification_type=notification_type,
        details=details,
        level=level,
    )


async def fire_pre_compress_hook(
    config: Config, trigger: PreCompressTrigger | str = PreCompressTrigger.Auto
) -> ProcessedHookResult | None:
    """The history is about to be compressed."""
    return await fire(config, HookEventName.PreCompress, trigger)
