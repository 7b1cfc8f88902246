"""Hooks over a bus: contracts, buses, client and server.

The names are loaded on first use: a program that asks over NATS loads only what that
needs, and one without a bus loads nothing.
"""

from __future__ import annotations

from importlib import import_module

_NAMES = {
    "client": ["HookBusClient"],
    "contracts": [
        *("HookExecutionRequest", "HookExecutionResponse", "MessageBus", "OnError"),
        *("MessageBusType", "RequestCarrier", "ResponseCode"),
    ],
    "memory": ["InMemoryMessageBus"],
    "nats": ["NatsBus"],
    "remote": ["RemoteHooks"],
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names}

__all__ = sorted(_MODULES)  # noqa: PLE0605 - a list of the strings above


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module 'hookline.bus' has no attribute {name!r}")
    value = getattr(import_module(f"hookline.bus.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    from importlib.util import find_spec

    # A prompt that completes looks at every name, and must not fail at one.
    missing = set() if find_spec("nats") else {"NatsBus"}
    return sorted({*__all__, *globals()} - missing)
