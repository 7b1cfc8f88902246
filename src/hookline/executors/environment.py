"""The environment that a hook's process gets."""

from __future__ import annotations

import os
import re
import sys

from hookline.limits import DEPTH_VARIABLE
from hookline.registry import RegisteredHook
from hookline.settings.schema import EnvPolicy

from .contract import HookCall

PROJECT_DIR_NAMES = tuple(
    f"{brand}_PROJECT_DIR" for brand in ("HOOKLINE", "LLXPRT", "GEMINI", "CLAUDE")
)

CLEAN_NAMES = frozenset(
    {
        *("HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR"),
        *("TZ", "USER", "VIRTUAL_ENV", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"),
        *("XDG_DATA_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME", "HOOKLINE_REPLAY"),
    }
)
"""What passes under ``"envPolicy": "clean"``, beside ``LC_*`` and the hook's own."""

_CREDENTIAL = (
    r"key|token|secret|pass|pwd|credential|auth|cookie|session|private|bearer|jwt"
)


def hook_environment(hook: RegisteredHook, call: HookCall) -> dict[str, str]:
    """The host's environment by policy, Hookline's variables, then the hook's own."""
    env = _host.by(hook.options.env_policy)
    for name in PROJECT_DIR_NAMES:
        env[name] = call.cwd
    env["PWD"] = call.cwd
    env["HOOKLINE_PYTHON"] = sys.executable
    if hook.seal is not None:
        # A cached module beside a trusted one would count as a change of the folder.
        env["PYTHONDONTWRITEBYTECODE"] = "1"
    env |= request_environment(hook, call)
    return env


def worker_environment(hook: RegisteredHook, call: HookCall) -> dict[str, str]:
    """The same for a process kept warm: what an event brings comes with each request.

    A hook's own variable of the same name still counts, as it does for a command.
    """
    env = hook_environment(hook, call)
    for name in event_environment(call).keys() - hook.config.env.keys():
        del env[name]
    env["HOOKLINE_WORKER"] = "1"
    return env


def request_environment(hook: RegisteredHook, call: HookCall) -> dict[str, str]:
    """What an event brings, and the hook's own."""
    env = event_environment(call) | hook.config.env
    # Last: no hook talks itself out of how deep it runs.
    env[DEPTH_VARIABLE] = str(call.depth + 1)
    return env


def event_environment(call: HookCall) -> dict[str, str]:
    """What changes from one event to the next."""
    return {
        "HOOKLINE_SESSION_ID": call.session_id,
        "HOOKLINE_EVENT": call.event.value,
        DEPTH_VARIABLE: str(call.depth + 1),
    }


class _HostEnvironment:
    """The host's variables by policy, read again only where they have changed."""

    def __init__(self) -> None:
        self._seen: dict[bytes, bytes] = {}
        self._kept: dict[str, dict[str, str]] = {}

    def by(self, policy: EnvPolicy) -> dict[str, str]:
        """A copy that the caller may change."""
        # Comparing the raw mapping takes a microsecond, decoding it fifty.
        raw = getattr(os.environ, "_data", None)
        if raw is None or raw != self._seen:
            self._seen, self._kept = dict(raw or {}), {}
        kept = self._kept.get(policy.value)
        if kept is None:
            kept = self._kept[policy.value] = _inherited(policy)
        return kept.copy()


_host = _HostEnvironment()


def _inherited(policy: EnvPolicy) -> dict[str, str]:
    if policy is EnvPolicy.INHERIT:
        return dict(os.environ)
    return {
        name: value
        for name, value in os.environ.items()
        if (name in CLEAN_NAMES or name.startswith("LC_"))
        and not re.search(_CREDENTIAL, name, re.IGNORECASE)
    }
