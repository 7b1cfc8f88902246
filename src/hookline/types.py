"""Types for hook authors: the input of each event, and the output of a hook.

For annotations only; nothing in Hookline imports this module::

    if TYPE_CHECKING:
        from hookline.types import BeforeToolInput, HookOutput

    def no_env_files(event: BeforeToolInput) -> HookOutput | None: ...
"""

from __future__ import annotations

from typing import Any, Literal, TypedDict

from .protocol.inputs import (
    AfterAgentInput,
    AfterModelInput,
    AfterToolInput,
    BaseInput,
    BeforeAgentInput,
    BeforeModelInput,
    BeforeToolInput,
    BeforeToolSelectionInput,
    HookInput,
    NotificationInput,
    PreCompressInput,
    SessionEndInput,
    SessionStartInput,
    SubagentStartInput,
    SubagentStopInput,
)

__all__ = [
    "AfterAgentInput",
    "AfterModelInput",
    "AfterToolInput",
    "BaseInput",
    "BeforeAgentInput",
    "BeforeModelInput",
    "BeforeToolInput",
    "BeforeToolSelectionInput",
    "Decision",
    "HookInput",
    "HookOutput",
    "HookSpecificOutput",
    "NotificationInput",
    "PreCompressInput",
    "SessionEndInput",
    "SessionStartInput",
    "SubagentStartInput",
    "SubagentStopInput",
    "ToolConfig",
]

Decision = Literal["allow", "approve", "ask", "block", "deny"]


class ToolConfig(TypedDict, total=False):
    """A restriction of the tools for a model call."""

    mode: Literal["NONE", "ANY", "AUTO"]
    allowedFunctionNames: list[str]


class HookSpecificOutput(TypedDict, total=False):
    """The part of an output that depends on the event."""

    hookEventName: str
    additionalContext: str
    tool_input: dict[str, Any]
    replacesToolInput: bool
    permissionDecision: Decision
    permissionDecisionReason: str
    withholdResult: bool
    clearContext: bool
    llm_request: dict[str, Any]
    llm_response: dict[str, Any]
    toolConfig: ToolConfig


# ``continue`` is a keyword and cannot be declared in a class.
_Continue = TypedDict("_Continue", {"continue": bool}, total=False)


class HookOutput(_Continue, TypedDict, total=False):
    """What a hook returns or prints as JSON; every field is optional."""

    decision: Decision | None
    reason: str
    stopReason: str
    suppressOutput: bool
    systemMessage: str
    hookSpecificOutput: HookSpecificOutput
