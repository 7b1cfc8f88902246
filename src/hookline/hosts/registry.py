"""All hosts, by the names that the command line takes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from hookline.errors import HooklineError, nearest

from .emitters.claude import ClaudeHost
from .emitters.cline import ClineHost
from .emitters.codex import CodexHost
from .emitters.copilot import CopilotHost, own_event
from .emitters.cursor import CursorHost
from .emitters.droid import DroidHost
from .emitters.gemini import GeminiHost, LlxprtHost
from .emitters.goose import GooseHost, KiroHost, WindsurfHost
from .emitters.opencode import OpenCodeHost
from .emitters.qwen import QwenHost
from .emitters.vscode import VSCodeHost
from .host import Host, HostName
from .host_files import is_installed
from .host_verdict import Wire

_HOSTS: tuple[Host, ...] = (
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


@cache
def all_hosts() -> Mapping[HostName, Host]:
    """Every host, in the order of ``HostName``."""
    return {host.name: host for host in _HOSTS}


def host_of(name: str) -> Host:
    """The host of a name; raises for an unknown one."""
    if name in all_hosts():
        return all_hosts()[HostName(name)]
    near = nearest(name, list(HostName))
    hint = f"did you mean {near!r}?" if near else f"known: {', '.join(HostName)}"
    raise HooklineError(f"unknown host {name!r}: {hint}")


def real_host(named: Host, given: Wire, env: Mapping[str, str]) -> Host:
    """The host that calls, where one reads the settings of another.

    hosts/README.md#rules 9. Cursor and VS Code are known by their JSON, Copilot by its
    variable.
    """
    if named.name is HostName.CLAUDE and "cursor_version" in given:
        return all_hosts()[HostName.CURSOR]
    if named.name in (HostName.CLAUDE, HostName.COPILOT) and "hookEventName" in given:
        return all_hosts()[HostName.VSCODE]
    others = (HostName.CLAUDE, HostName.VSCODE)
    if named.name in others and "hookEventName" not in given and "COPILOT_CLI" in env:
        return _copilot(named, given, env)
    return named


def _copilot(named: Host, given: Wire, env: Mapping[str, str]) -> Host:
    """Copilot, silent where it calls the bridge by itself as well.

    One agent may run the other: then both variables are there, and nobody is silent.
    """
    is_certain = "CLAUDECODE" not in env
    copilot = all_hosts()[HostName.COPILOT]
    # Claude Code sends no time, and Copilot always does.
    if not is_certain:
        return copilot if "timestamp" in given else named
    event = own_event(copilot.event_name(given, None))
    folder = env.get("COPILOT_PROJECT_DIR") or str(given.get("cwd") or "")
    is_silent = bool(folder) and is_installed(HostName.COPILOT, folder, event)
    return CopilotHost(is_silent=is_silent)
