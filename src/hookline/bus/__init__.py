"""The mediated path: contracts, carriers and clients.

The names are loaded on first use: a program that asks over NATS loads no more than
that, and one that has no bus loads nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .client import HookBusClient as HookBusClient
    from .contracts import HookExecutionRequest as HookExecutionRequest
    from .contracts import HookExecutionResponse as HookExecutionResponse
    from .contracts import MessageBus as MessageBus
    from .contracts import MessageBusType as MessageBusType
    from .contracts import OnError as OnError
    from .contracts import RequestCarrier as RequestCarrier
    from .contracts import ResponseCode as ResponseCode
    from .memory import InMemoryMessageBus as InMemoryMessageBus
    from .nats import NatsBus as NatsBus
    from .remote import RemoteHooks as RemoteHooks

_HOMES = {
    "HookBusClient": "client",
    "HookExecutionRequest": "contracts",
    "HookExecutionResponse": "contracts",
    "InMemoryMessageBus": "memory",
    "MessageBus": "contracts",
    "MessageBusType": "contracts",
    "NatsBus": "nats",
    "OnError": "contracts",
    "RemoteHooks": "remote",
    "RequestCarrier": "contracts",
    "ResponseCode": "contracts",
}

__all__ = sorted(_HOMES)  # noqa: PLE0605 - a list of the strings above


def __getattr__(name: str) -> Any:
    try:
        home = _HOMES[name]
    except KeyError:
        problem = f"module 'hookline.bus' has no attribute {name!r}"
        raise AttributeError(problem) from None
    value = getattr(import_module(f"hookline.bus.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, *globals()]
