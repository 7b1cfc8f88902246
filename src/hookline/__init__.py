"""The hook system for AI agents in Python.

The names below are loaded on first use: ``hookline.script`` must cost a hook author
nothing, and ``hookline fire`` must not load what it does not need (decision 0002).
"""

import sys

if sys.platform == "win32":
    from .errors import UnsupportedPlatformError

    raise UnsupportedPlatformError

_HOMES = {
    "Config": "config",
    "DebugLogger": "_internal.log",
    "HookBusClient": "bus.client",
    "HookEventName": "protocol.events",
    "HookRegistryNotInitializedError": "errors",
    "HookSystem": "engine.system",
    "HookSystemNotInitializedError": "errors",
    "HooklineError": "errors",
    "InMemoryMessageBus": "bus.memory",
    "NotificationType": "protocol.events",
    "PreCompressTrigger": "protocol.events",
    "ProcessedHookResult": "protocol.results",
    "RemoteHooks": "bus.remote",
    "SessionEndReason": "protocol.events",
    "SessionStartSource": "protocol.events",
    "Settings": "settings.load",
    "SettingsError": "errors",
}

_PACKAGES = (
    "adapters",
    "agent",
    "bus",
    "errors",
    "script",
    "testing",
    "translators",
    "types",
)
"""Public modules: ``hookline.agent`` works after ``import hookline`` too."""

__all__ = sorted(_HOMES)  # noqa: PLE0605 - a list of the strings above


def __getattr__(name: str) -> object:
    if name == "__version__":
        return _version()
    home = _HOMES.get(name)
    if home is None and name not in _PACKAGES:
        raise AttributeError(f"module 'hookline' has no attribute {name!r}")
    from importlib import import_module

    if home is None:
        return import_module(f"hookline.{name}")
    value = getattr(import_module(f"hookline.{home}"), name)
    globals()[name] = value
    return value


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("hookline")
    except PackageNotFoundError:
        return "unknown"  # the source alone: in a zip file, or on PYTHONPATH


def __dir__() -> list[str]:
    return sorted({*__all__, *_PACKAGES, "__version__", *globals()})
