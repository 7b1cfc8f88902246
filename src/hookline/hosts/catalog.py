"""All hosts, by the names that the command line takes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from hookline.errors import HooklineError, nearest

from .claude import ClaudeHost
from .gemini import GeminiHost, LlxprtHost
from .host import Host, HostName, Wire
from .qwen import QwenHost


def _hosts() -> tuple[Host, ...]:
    return ClaudeHost(), GeminiHost(), LlxprtHost(), QwenHost()


@cache
def all_hosts() -> Mapping[HostName, Host]:
    """Every host, in the order of ``HostName``."""
    return {host.name: host for host in _hosts()}


def host_of(name: str) -> Host:
    """The host of a name; raises for an unknown one."""
    if name in all_hosts():
        return all_hosts()[HostName(name)]
    near = nearest(name, list(HostName))
    hint = f"did you mean {near!r}?" if near else f"known: {', '.join(HostName)}"
    raise HooklineError(f"unknown host {name!r}: {hint}")


def real_host(named: Host, given: Wire, env: Mapping[str, str]) -> Host:
    """The host that calls, where one reads the settings of another (HOSTS rule 9)."""
    return named
