"""All hosts, by the names that the command line takes."""

from __future__ import annotations

from collections.abc import Mapping

from hookline.errors import HooklineError, nearest

from .emitters.claude import ClaudeHost
from .emitters.cline import ClineHost
from .emitters.codex import CodexHost
from .emitters.copilot import CopilotHost
from .emitters.cursor import CursorHost
from .emitters.droid import DroidHost
from .emitters.gemini import GeminiHost, LlxprtHost
from .emitters.goose import GooseHost
from .emitters.kiro import KiroHost
from .emitters.opencode import OpenCodeHost
from .emitters.qwen import QwenHost
from .emitters.vscode import VSCodeHost
from .emitters.windsurf import WindsurfHost
from .host import Host, HostName
from .host_verdict import Wire

HOSTS: Mapping[HostName, Host] = {
    host.name: host
    for host in (
        ClaudeHost(),
        GeminiHost(),
        LlxprtHost(),
        CodexHost(),
        CopilotHost(),
        QwenHost(),
        OpenCodeHost(),
        CursorHost(),
        VSCodeHost(),
        DroidHost(),
        GooseHost(),
        KiroHost(),
        WindsurfHost(),
        ClineHost(),
    )
}
"""A new one is a row here, and a file in ``emitters``."""


def host_of(name: str) -> Host:
    """The host of a name; raises for an unknown one."""
    if name in HOSTS:
        return HOSTS[HostName(name)]
    near = nearest(name, list(HostName))
    hint = f"did you mean {near!r}?" if near else f"known: {', '.join(HostName)}"
    raise HooklineError(f"unknown host {name!r}: {hint}")


def real_host(named: Host, payload: Wire, env: Mapping[str, str]) -> Host:
    """The host that calls, where one reads the settings of another.

    hosts/README.md#rules 9. Cursor and VS Code are known by their JSON, Copilot by its
    variable; where one agent runs the other, by the time that Claude Code never sends.
    """
    name = named.name
    if name is HostName.CLAUDE and "cursor_version" in payload:
        name = HostName.CURSOR
    elif "hookEventName" in payload:
        name = HostName.VSCODE if name in (HostName.CLAUDE, HostName.COPILOT) else name
    elif name in (HostName.CLAUDE, HostName.VSCODE) and "COPILOT_CLI" in env:
        is_certain = "CLAUDECODE" not in env or "timestamp" in payload
        name = HostName.COPILOT if is_certain else name
    return HOSTS[name]
