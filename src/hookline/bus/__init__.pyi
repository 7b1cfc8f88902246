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

__all__ = [
    "HookBusClient",
    "HookExecutionRequest",
    "HookExecutionResponse",
    "InMemoryMessageBus",
    "MessageBus",
    "MessageBusType",
    "NatsBus",
    "OnError",
    "RemoteHooks",
    "RequestCarrier",
    "ResponseCode",
]
