"""The events as the Try view offers them: what they are, their fields, a sample."""

from __future__ import annotations

from typing import Any, NotRequired, get_origin, get_type_hints

from hookline.hosts.tools import Tool
from hookline.protocol import inputs
from hookline.protocol.events import TRAITS, HookEventName
from hookline.protocol.inputs import AgentInput, HostInput

TOOL_INPUTS: dict[str, dict[str, Any]] = {
    Tool.SHELL: {"command": "ls -l"},
    Tool.READ: {"path": "README.md"},
    Tool.WRITE: {"path": "notes.txt", "content": "Hello\n"},
    Tool.REPLACE: {"path": "notes.txt", "old_string": "Hello", "new_string": "Hi"},
    Tool.DELETE: {"path": "notes.txt"},
    Tool.GLOB: {"pattern": "**/*.py", "path": "."},
    Tool.GREP: {"pattern": "TODO", "path": "."},
    Tool.LIST: {"path": "."},
    Tool.FETCH: {"url": "https://example.com/"},
    Tool.SEARCH: {"query": "hook systems"},
    Tool.TASK: {"prompt": "Find the tests that fail"},
}
"""A sample input for each of our tools (hosts/README.md#what-a-hook-sees)."""

_REQUEST = {
    "model": "my-model",
    "messages": [{"role": "user", "content": "Why does the build fail?"}],
    "config": {"temperature": 0.2},
}
_ANSWER = "A test expects the old name."
_RESPONSE = {
    "text": _ANSWER,
    "candidates": [
        {"content": {"role": "model", "parts": [_ANSWER]}, "finishReason": "STOP"}
    ],
}
_SAMPLES: dict[HookEventName, dict[str, Any]] = {
    HookEventName.BeforeTool: {"tool_input": {}},
    HookEventName.AfterTool: {
        "tool_input": {},
        "tool_response": {"llmContent": "done", "returnDisplay": "done"},
    },
    HookEventName.BeforeAgent: {"prompt": "Fix the failing test"},
    HookEventName.AfterAgent: {
        "prompt": "Fix the failing test",
        "prompt_response": "It is fixed.",
        "stop_hook_active": False,
    },
    HookEventName.BeforeModel: {"llm_request": _REQUEST},
    HookEventName.AfterModel: {"llm_request": _REQUEST, "llm_response": _RESPONSE},
    HookEventName.BeforeToolSelection: {
        "llm_request": _REQUEST,
        "available_tools": [{"name": Tool.READ}, {"name": Tool.SHELL}],
    },
    HookEventName.SessionStart: {"source": "startup"},
    HookEventName.SessionEnd: {"reason": "exit"},
    HookEventName.Notification: {
        "message": "May I run this command?",
        "notification_type": "ToolPermission",
        "details": {},
    },
    HookEventName.PreCompress: {"trigger": "auto"},
    HookEventName.SubagentStart: {
        "agent_id": "agent-1",
        "agent_type": "reviewer",
        "prompt": "Review the change",
    },
    HookEventName.SubagentStop: {
        "agent_id": "agent-1",
        "agent_type": "reviewer",
        "prompt_response": "It looks good.",
        "stop_hook_active": False,
    },
}


_OF_AGENTS = (HookEventName.SubagentStart, HookEventName.SubagentStop)
"""Here the fields of agents are what the event is about."""


def describe_events() -> list[dict[str, Any]]:
    """Every event, with its own fields and a sample of its input."""
    return [_describe(event) for event in HookEventName]


def _describe(event: HookEventName) -> dict[str, Any]:
    traits, hints = TRAITS[event], _own_fields(event)
    choices = {} if traits.choices is None else {traits.matched_field: traits.choices}
    return {
        "name": event.value,
        "description": _shape(event).__doc__,
        "takes_tool": traits.matched_field == "tool_name",
        "fields": [
            {
                "name": name,
                "required": get_origin(hint) is not NotRequired,
                "choices": list(choices.get(name, ())),
            }
            for name, hint in hints.items()
        ],
        "sample": _SAMPLES[event],
    }


def _own_fields(event: HookEventName) -> dict[str, Any]:
    """The fields of this kind of event, without those that all events can have."""
    shape = _shape(event)
    shared = HostInput if event in _OF_AGENTS else AgentInput
    hints = get_type_hints(shape, include_extras=True)
    return {k: hint for k, hint in hints.items() if k not in shared.__annotations__}


def _shape(event: HookEventName) -> Any:
    return getattr(inputs, f"{event.value}Input")
