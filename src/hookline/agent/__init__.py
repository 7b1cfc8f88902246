"""Agents that obey their hooks: the callers, who await the verdict and apply it.

The names below are loaded on first use; an SDK is imported only by what needs it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .backends.anthropic import AnthropicModel as AnthropicModel
    from .backends.genai import GenAIModel as GenAIModel
    from .backends.openai import OpenAIModel as OpenAIModel
    from .backends.scripted import Says as Says
    from .backends.scripted import ScriptedModel as ScriptedModel
    from .chat import ChatChunk as ChatChunk
    from .chat import ChatReply as ChatReply
    from .chat import ChatSession as ChatSession
    from .conversation import ModelClient as ModelClient
    from .conversation import Role as Role
    from .conversation import ToolAnswer as ToolAnswer
    from .conversation import ToolCall as ToolCall
    from .conversation import ToolSpec as ToolSpec
    from .conversation import Turn as Turn
    from .decorator import hooked_tool as hooked_tool
    from .firer import HookFirer as HookFirer
    from .functions import Tool as Tool
    from .hookedclient import hooked as hooked
    from .lifecycle import fire_after_agent_hook as fire_after_agent_hook
    from .lifecycle import fire_before_agent_hook as fire_before_agent_hook
    from .lifecycle import fire_notification_hook as fire_notification_hook
    from .lifecycle import fire_pre_compress_hook as fire_pre_compress_hook
    from .lifecycle import fire_session_end_hook as fire_session_end_hook
    from .lifecycle import fire_session_start_hook as fire_session_start_hook
    from .loop import Agent as Agent
    from .models import AfterModelHookResult as AfterModelHookResult
    from .models import BeforeModelHookResult as BeforeModelHookResult
    from .models import BeforeToolSelectionHookResult as BeforeToolSelectionHookResult
    from .models import fire_after_model_hook as fire_after_model_hook
    from .models import fire_before_model_hook as fire_before_model_hook
    from .models import (
        fire_before_tool_selection_hook as fire_before_tool_selection_hook,
    )
    from .outcome import AgentResult as AgentResult
    from .outcome import Ending as Ending
    from .scheduler import CallStatus as CallStatus
    from .scheduler import ToolBatch as ToolBatch
    from .scheduler import ToolScheduler as ToolScheduler
    from .streaming import StreamMode as StreamMode
    from .toolresults import ToolResult as ToolResult
    from .tools import Confirmation as Confirmation
    from .tools import execute_tool_with_hooks as execute_tool_with_hooks
    from .tools import fire_after_tool_hook as fire_after_tool_hook
    from .tools import fire_before_tool_hook as fire_before_tool_hook

_HOMES = {
    "backends.anthropic": ("AnthropicModel",),
    "backends.genai": ("GenAIModel",),
    "backends.openai": ("OpenAIModel",),
    "backends.scripted": ("Says", "ScriptedModel"),
    "chat": ("ChatChunk", "ChatReply", "ChatSession"),
    "conversation": (
        "ModelClient", "Role", "ToolAnswer", "ToolCall", "ToolSpec", "Turn",
    ),
    "decorator": ("hooked_tool",),
    "firer": ("HookFirer",),
    "functions": ("Tool",),
    "hookedclient": ("hooked",),
    "lifecycle": (
        "fire_after_agent_hook", "fire_before_agent_hook", "fire_notification_hook",
        "fire_pre_compress_hook", "fire_session_end_hook", "fire_session_start_hook",
    ),
    "loop": ("Agent",),
    "models": (
        "AfterModelHookResult", "BeforeModelHookResult",
        "BeforeToolSelectionHookResult", "fire_after_model_hook",
        "fire_before_model_hook", "fire_before_tool_selection_hook",
    ),
    "outcome": ("AgentResult", "Ending"),
    "scheduler": ("CallStatus", "ToolBatch", "ToolScheduler"),
    "streaming": ("StreamMode",),
    "toolresults": ("ToolResult",),
    "tools": (
        "Confirmation", "execute_tool_with_hooks", "fire_after_tool_hook",
        "fire_before_tool_hook",
    ),
}  # fmt: skip
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME_OF)  # noqa: PLE0605 - a list of the strings above


def __getattr__(name: str) -> Any:
    try:
        home = _HOME_OF[name]
    except KeyError:
        raise AttributeError(
            f"module 'hookline.agent' has no attribute {name!r}"
        ) from None
    from importlib import import_module

    value = getattr(import_module(f"hookline.agent.{home}"), name)
    globals()[name] = value
    return value
