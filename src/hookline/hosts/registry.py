"""All hosts, by the names that the command line takes; one is loaded when it is asked.

``hookline bridge`` runs at every step of an agent and needs one of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module

from hookline.errors import HooklineError, nearest

from .host import Host
from .host_verdict import Wire

ROWS = [
    *("claude", "gemini", "llxprt", "codex", "copilot", "qwen", "opencode", "cursor"),
    *("vscode", "droid", "goose", "kiro", "windsurf", "cline"),
]
"""A new host is a row here, and a file of this name in ``emitters`` with its HOST."""


class _Hosts(Mapping[str, Host]):
    def __init__(self) -> None:
        self._loaded: dict[str, Host] = {}

    def __getitem__(self, name: str) -> Host:
        host = self._loaded.get(name)
        if host is None:
            if name not in ROWS:
                raise KeyError(name)
            host = import_module(f"hookline.hosts.emitters.{name}").HOST
            self._loaded[name] = host
        return host

    def __iter__(self) -> Iterator[str]:
        return iter(ROWS)

    def __len__(self) -> int:
        return len(ROWS)


HOSTS = _Hosts()


def host_of(name: str) -> Host:
    """The host of a name; raises for an unknown one."""
    if name in ROWS:
        return HOSTS[name]
    near = nearest(name, ROWS)
    hint = f"did you mean {near!r}?" if near else f"known: {', '.join(ROWS)}"
    raise HooklineError(f"unknown host {name!r}: {hint}")


def real_host(called: Host, payload: Wire, env: Mapping[str, str]) -> Host:
    """The host that calls, where one reads the settings of another.

    hosts/README.md#rules 9. Cursor and VS Code are known by their JSON, Copilot by its
    variable; where one agent runs the other, by the time that Claude Code never sends.
    """
    name = called.name
    if name == "claude" and "cursor_version" in payload:
        name = "cursor"
    elif "hookEventName" in payload:
        name = "vscode" if name in ("claude", "copilot") else name
    elif name in ("claude", "vscode") and "COPILOT_CLI" in env:
        is_certain = "CLAUDECODE" not in env or "timestamp" in payload
        name = "copilot" if is_certain else name
    return HOSTS[name]
