from hookline.testing.scripted import Says as Says
from hookline.testing.scripted import ScriptedModel as ScriptedModel
from hookline.testing.scripted import ScriptedReply as ScriptedReply

from .chat import ChatChunk as ChatChunk
from .chat import ChatReply as ChatReply
from .chat import ChatSession as ChatSession
from .chat import StreamMode as StreamMode
from .clients import hooked as hooked
from .conversation import ModelClient as ModelClient
from .conversation import Role as Role
from .conversation import Tool as Tool
from .conversation import ToolAnswer as ToolAnswer
from .conversation import ToolCall as ToolCall
from .conversation import ToolSpec as ToolSpec
from .conversation import Turn as Turn
from .decorator import hooked_tool as hooked_tool
from .loop import Agent as Agent
from .loop import AgentResult as AgentResult
from .loop import Ending as Ending
from .model_calls import AfterModelHookResult as AfterModelHookResult
from .model_calls import BeforeModelHookResult as BeforeModelHookResult
from .model_calls import (
    BeforeToolSelectionHookResult as BeforeToolSelectionHookResult,
)
from .model_calls import HookedModelCall as HookedModelCall
from .model_calls import ModelOutcome as ModelOutcome
from .model_calls import changes as changes
from .model_calls import fire_after_model_hook as fire_after_model_hook
from .model_calls import fire_before_model_hook as fire_before_model_hook
from .model_calls import (
    fire_before_tool_selection_hook as fire_before_tool_selection_hook,
)
from .models import AnthropicModel as AnthropicModel
from .models import GenAIModel as GenAIModel
from .models import OpenAIModel as OpenAIModel
from .scheduler import CallStatus as CallStatus
from .scheduler import ToolBatch as ToolBatch
from .scheduler import ToolScheduler as ToolScheduler
from .session import ConfigOrSession as ConfigOrSession
from .session import Session as Session
from .session import session_of as session_of
from .tool_calls import Confirm as Confirm
from .tool_calls import Confirmation as Confirmation
from .tool_calls import HookedToolCall as HookedToolCall
from .tool_calls import ToolOutcome as ToolOutcome
from .tool_calls import ToolResult as ToolResult
from .tool_calls import execute_tool_with_hooks as execute_tool_with_hooks
from .triggers import HookFirer as HookFirer
from .triggers import fire_after_agent_hook as fire_after_agent_hook
from .triggers import fire_after_tool_hook as fire_after_tool_hook
from .triggers import fire_before_agent_hook as fire_before_agent_hook
from .triggers import fire_before_tool_hook as fire_before_tool_hook
from .triggers import fire_notification_hook as fire_notification_hook
from .triggers import fire_pre_compress_hook as fire_pre_compress_hook
from .triggers import fire_session_end_hook as fire_session_end_hook
from .triggers import fire_session_start_hook as fire_session_start_hook
from .triggers import fire_subagent_start_hook as fire_subagent_start_hook
from .triggers import fire_subagent_stop_hook as fire_subagent_stop_hook
from .turn import HookedRun as HookedRun
from .turn import HookedTurn as HookedTurn

__all__ = [
    "AfterModelHookResult",
    "Agent",
    "AgentResult",
    "AnthropicModel",
    "BeforeModelHookResult",
    "BeforeToolSelectionHookResult",
    "CallStatus",
    "ChatChunk",
    "ChatReply",
    "ChatSession",
    "ConfigOrSession",
    "Confirm",
    "Confirmation",
    "Ending",
    "GenAIModel",
    "HookFirer",
    "HookedModelCall",
    "HookedRun",
    "HookedToolCall",
    "HookedTurn",
    "ModelClient",
    "ModelOutcome",
    "OpenAIModel",
    "Role",
    "Says",
    "ScriptedModel",
    "ScriptedReply",
    "Session",
    "StreamMode",
    "Tool",
    "ToolAnswer",
    "ToolBatch",
    "ToolCall",
    "ToolOutcome",
    "ToolResult",
    "ToolScheduler",
    "ToolSpec",
    "Turn",
    "changes",
    "execute_tool_with_hooks",
    "fire_after_agent_hook",
    "fire_after_model_hook",
    "fire_after_tool_hook",
    "fire_before_agent_hook",
    "fire_before_model_hook",
    "fire_before_tool_hook",
    "fire_before_tool_selection_hook",
    "fire_notification_hook",
    "fire_pre_compress_hook",
    "fire_session_end_hook",
    "fire_session_start_hook",
    "fire_subagent_start_hook",
    "fire_subagent_stop_hook",
    "hooked",
    "hooked_tool",
    "session_of",
]
