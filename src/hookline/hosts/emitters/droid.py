"""Droid, by Factory: the shape of Claude Code, and fewer answers.

Written by its documentation alone: it was not run (docs/how-to/hosts/droid.md), and
everybody who uses it is told so.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import structs

from hookline.hosts.host import Answer, HostEvent, HostFiles, end, json_answer
from hookline.hosts.host_verdict import (
    NO_CLEAR,
    ONLY_REFUSED,
    RESULT_SHOWN,
    Effect,
    HostVerdict,
    Limits,
)
from hookline.hosts.tools import Tool, tool_names
from hookline.protocol.dialects import CLAUDE_EVENTS
from hookline.protocol.events import HookEventName

from .claude import TOOLS, ClaudeHost

_E = HookEventName
LIMITS: Limits = {
    _E.BeforeTool: {Effect.CONTEXT: ONLY_REFUSED, Effect.MESSAGE: ONLY_REFUSED},
    _E.AfterTool: {
        Effect.WITHHOLD: "the run ends before the model sees the result",
        Effect.SUPPRESS: RESULT_SHOWN,
    },
    _E.AfterAgent: {Effect.CLEAR: NO_CLEAR},
    _E.SubagentStop: {Effect.CLEAR: NO_CLEAR},
}


class DroidHost(ClaudeHost):
    """Droid."""

    name = "droid"
    files = HostFiles(
        project=".factory/hooks.json",
        user="~/.factory/hooks.json",
        keys=(),
        extra={"type": "command"},
    )
    places = r"\.factory/[^/]+"
    title = "Droid"
    tested: str | None = None
    events: Mapping[str, HookEventName] = {
        name: event for name, event in CLAUDE_EVENTS.items() if name != "SubagentStart"
    }
    ignored = frozenset({"PermissionRequest"})
    tools: Mapping[str, str] = TOOLS | tool_names(
        {
            Tool.SHELL: "Execute",
            Tool.WRITE: "Create",
            Tool.PATCH: "ApplyPatch",
            Tool.FETCH: "FetchUrl",
        }
    )
    project_variables: tuple[str, ...] = ("FACTORY_PROJECT_DIR",)
    limits = LIMITS

    def write(self, event: HostEvent, verdict: HostVerdict) -> Answer:
        """Write what the hooks said."""
        if event.event is _E.AfterTool and verdict.withheld:
            return json_answer(end(verdict.refusal()))
        if event.event is not _E.BeforeTool:
            return super().write(event, verdict)
        if verdict.ends:
            expressed = frozenset({Effect.CONTEXT, Effect.MESSAGE})
            answer = super().write(event, verdict)
            return structs.replace(answer, expressed=expressed)
        texts = filter(None, [verdict.message, verdict.notice])
        notice = "\n".join(texts)
        verdict = structs.replace(verdict, context="", message="", notice=notice)
        return super().write(event, verdict)


HOST = DroidHost()
