"""Agents that obey their hooks: the callers, which await the hooks and apply them.

The names below are loaded on first use; an SDK is imported only by what needs it.
"""

from __future__ import annotations

_MODULES = {
    "agent.chat": "ChatChunk ChatReply ChatSession StreamMode",
    "agent.clients": "hooked",
    "agent.conversation": "ModelClient Role Tool ToolAnswer ToolCall ToolSpec Turn",
    "agent.decorator": "hooked_tool",
    "agent.loop": "Agent AgentResult Ending",
    "agent.model_calls": "AfterModelHookResult BeforeModelHookResult "
    "BeforeToolSelectionHookResult HookedModelCall ModelOutcome changes "
    "fire_after_model_hook fire_before_model_hook fire_before_tool_selection_hook",
    "agent.models": "AnthropicModel GenAIModel OpenAIModel",
    "agent.scheduler": "CallStatus ToolBatch ToolScheduler",
    "agent.session": "ConfigOrSession Session session_of",
    "agent.tool_calls": "Confirm Confirmation HookedToolCall ToolOutcome ToolResult "
    "execute_tool_with_hooks",
    "agent.triggers": "HookFirer fire_after_agent_hook fire_after_tool_hook "
    "fire_before_agent_hook fire_before_tool_hook "
    "fire_notification_hook fire_pre_compress_hook fire_session_end_hook "
    "fire_session_start_hook fire_subagent_start_hook fire_subagent_stop_hook",
    "agent.turn": "HookedRun HookedTurn",
    "testing.scripted": "Says ScriptedModel ScriptedReply",
}
_MODULE_OF = {
    name: module for module, names in _MODULES.items() for name in names.split()
}

__all__ = sorted(_MODULE_OF)  # noqa: PLE0605 - a list of the strings above


def __getattr__(name: str) -> object:
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module 'hookline.agent' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"hookline.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *globals()})
