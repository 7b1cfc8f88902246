"""Droid, by Factory: the shape of Claude Code, and fewer answers.

Written by its documentation alone: it was not run (docs/how-to/hosts/droid.md), and
everybody who uses it is told so.
"""

from __future__ import annotations

from hookline.hosts import effects, verbs
from hookline.hosts.effects import Effect
from hookline.hosts.host import HostEvent, HostFiles
from hookline.hosts.host_verdict import Answer, HostVerdict, Wire
from hookline.hosts.tools import Tool, tool_names
from hookline.protocol.dialects import CLAUDE_EVENTS
from hookline.protocol.events import HookEventName

from .claude import ClaudeHost

_E = HookEventName


class DroidHost(ClaudeHost):
    """Droid."""

    name = "droid"
    title = "Droid"
    tested = None
    files = HostFiles(
        project=".factory/hooks.json",
        user="~/.factory/hooks.json",
        keys=(),
        extra={"type": "command"},
    )
    places = r"\.factory/[^/]+"
    project_variables = ("FACTORY_PROJECT_DIR",)
    events = {
        name: CLAUDE_EVENTS[name] for name in CLAUDE_EVENTS if name != "SubagentStart"
    }
    ignored = frozenset({"PermissionRequest"})
    tools = ClaudeHost.tools | tool_names(
        {
            Tool.SHELL: "Execute",
            Tool.WRITE: "Create",
            Tool.PATCH: "ApplyPatch",
            Tool.FETCH: "FetchUrl",
        }
    )
    limits = {
        _E.BeforeTool: effects.ONLY_REFUSED,
        _E.AfterTool: {
            Effect.WITHHOLD: "the run ends before the model sees the result"
        },
    }

    def answer(self, event: HostEvent, verdict: HostVerdict) -> Wire | Answer:
        """What to write."""
        match event.event:
            case _E.AfterTool if verdict.withheld:
                return verbs.end(verdict.refusal())
            case _E.BeforeTool if not verdict.ends:
                values = verbs.question(verdict) | {"updatedInput": verdict.tool_input}
                return verbs.specific(event.name, **values) | verbs.show(
                    verdict.message
                )
        return super().answer(event, verdict)


HOST = DroidHost()
