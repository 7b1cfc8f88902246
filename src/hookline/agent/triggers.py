"""Fire events for a config; never raises (PROTOCOL section 10)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol, cast

from hookline.config import Config
from hookline.log import logger
from hookline.protocol.events import (
    HookEventName,
    NotificationType,
    PreCompressTrigger,
    SessionEndReason,
    SessionStartSource,
)
from hookline.protocol.results import ProcessedHookResult


class HookFirer(Protocol):
    """The events as methods; ``HookEventHandler`` and ``RemoteHooks`` have them."""

    async def fire_before_tool_event(
        self,
        tool_name: str,
        tool_input: Mapping[str, Any],
        *,
        mcp_context: Mapping[str, Any] | None = None,
        original_request_name: str | None = None,
    ) -> ProcessedHookResult:
        """A tool is about to run."""
        ...

    async def fire_after_tool_event(
        self,
        tool_name: str,
        tool_input: Mapping[str, Any],
        tool_response: Mapping[str, Any],
        *,
        mcp_context: Mapping[str, Any] | None = None,
        original_request_name: str | None = None,
    ) -> ProcessedHookResult:
        """A tool has run."""
        ...

    async def fire_before_agent_event(self, prompt: str) -> ProcessedHookResult:
        """A turn is about to start."""
        ...

    async def fire_after_agent_event(
        self, prompt: str, prompt_response: str, stop_hook_active: bool = False
    ) -> ProcessedHookResult:
        """A turn has ended with an answer."""
        ...

    async def fire_before_model_event(self, llm_request: Any) -> ProcessedHookResult:
        """A model is about to be called."""
        ...

    async def fire_after_model_event(
        self, llm_request: Any, llm_response: Any
    ) -> ProcessedHookResult:
        """A model has answered."""
        ...

    async def fire_before_tool_selection_event(
        self, llm_request: Any, available_tools: list[Any] | None = None
    ) -> ProcessedHookResult:
        """The tools for a model call are about to be chosen."""
        ...

    async def fire_session_start_event(self, source: str) -> ProcessedHookResult:
        """A session starts."""
        ...

    async def fire_session_end_event(self, reason: str) -> ProcessedHookResult:
        """A session ends."""
        ...

    async def fire_notification_event(
        self,
        message: str,
        *,
        notification_type: str = ...,
        details: Mapping[str, Any] | None = None,
        level: str | None = None,
    ) -> ProcessedHookResult:
        """The host tells its user something."""
        ...

    async def fire_pre_compress_event(self, trigger: str) -> ProcessedHookResult:
        """The history is about to be compressed."""
        ...


async def firer_of(config: Config) -> HookFirer | None:
    """What to fire on; None where hooks are switched off."""
    if config.remote_hooks is not None:
        return cast("HookFirer", config.remote_hooks)
    system = config.get_hook_system()
    if system is None:
        return None
    await system.initialize()
    return system.event_handler


async def fire(
    config: Config, send: Callable[[HookFirer], Awaitable[ProcessedHookResult]]
) -> ProcessedHookResult | None:
    """Fire once; None where no hook has spoken or the hooks could not be reached."""
    try:
        firer = await firer_of(config)
        if firer is None:
            return None
        result = await send(firer)
    # The second documented edge: whatever fails in the hooks, the agent goes on.
    except Exception as error:  # noqa: BLE001
        logger.warning("hooks failed, going on without: %s", _described(error))
        return None
    return None if result.final_output is None else result


async def has_hooks_for(config: Config, event: HookEventName) -> bool:
    """Whether a hook may speak on an event; hooks that run elsewhere always may."""
    try:
        if config.remote_hooks is not None:
            return True
        system = config.get_hook_system()
        if system is None:
            return False
        await system.initialize()
        return system.event_handler.has_hooks_for(event)
    # As above: the agent goes on, and holds back what it is not sure about.
    except Exception as error:  # noqa: BLE001
        logger.warning("hooks failed, going on without: %s", _described(error))
        return True


def _described(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


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
